"""Replays of files, chosen by folder, by a column of their rows or by arrival.

They are cut by ``checkpoint``.

A promote swaps the rows of each file.

See docs/reference/replay.md, Files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, get_args

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.instants import milliseconds
from partitions.path.copies import (
    freed_copies_preview,
)
from partitions.path.gone import GoneFiles
from partitions.path.ledger_partitions import FilePlace, PartitionNames
from partitions.path.position_of_state import start_between
from partitions.path.slices import PathSlice
from partitions.path.state import PathState
from partitions.plan import Plan
from partitions.predicate import Between
from partitions.replay.column_bounds import range_of_column
from partitions.request import ReplayFiles
from partitions.retention import refuse_below_retention
from partitions.sentinels import serialise
from partitions.spelling import describe_missing
from resources.decisions.gone_files import gone_files_error
from resources.decisions.reasons import LOADED_REASONS
from resources.kinds.contract.kind import Kind
from resources.kinds.contract.lost_rows import LostRows
from resources.kinds.path.copies import CopyFinder
from resources.kinds.path.gone import find_gone_files
from resources.kinds.path.lost import find_lost_rows
from resources.kinds.path.opening import open_path, path_planning
from resources.kinds.path.rows_by_path import check_rows_have_paths
from resources.kinds.path.swap import FileSwap
from resources.platform.stores import Stores
from resources.replay.chunks import ReplayChunk
from resources.replay.isolated.standing import IsolatedReplay
from resources.replay.kind import Cut, ReplayKind, Swap
from resources.replay.options import (
    name_dataflow_in_errors,
    refuse_chunks,
    requested_arrival,
    requested_partitions,
)
from resources.sources.files.paths import SOURCE_FILE
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry
from resources.watermarks.folder_counts import files_modified
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.record_tables import RecordTables


@dataclass(frozen=True)
class FileReplay(ReplayKind):
    """A replay of the files of a range of partitions, of a column's values, or of times of arrival."""

    @property
    def _replaces(self) -> bool:
        """Whether the files' earlier rows are deleted."""
        return self.options.replace or self.options.is_isolated

    def check(self) -> None:
        """Check the range, and that rows tell their files if the replay looks for them by file."""
        options = self.options
        if options.column and options.by:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: expected --column or --by arrival, found both"
            )
        if options.column:
            self._check_files_of_rows()
            self._refuse_expired(options.column, self._rows_of_column().upper)
        elif options.by:
            requested_arrival(self.dataflow, options)
        else:
            _, end = requested_partitions(self.dataflow, options)
            name = end.rpartition("/")[2].partition("=")[0]
            self._refuse_expired(name, PartitionNames().partition_of(FilePlace(end)).start)
            self._check_has_folders()
        if self.options.gone_files is not None and not self._replaces:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: --gone decides about rows of missing files when the rows around them are replaced: expected"
                " --replace or --into with --gone, found neither"
            )
        if self._replaces or self.dataflow.target.way == "merge_overwrite":
            self._check_files_of_rows()

    def _refuse_expired(self, column: str, end: Any) -> None:
        """Raise ConfigurationError if a range of a column lies below the retention."""
        refuse_below_retention(self.dataflow.name, self.dataflow.target.retention, column, end, self.now)

    def _check_has_folders(self) -> None:
        """Raise ConfigurationError if all loaded files lie in the root, where no range of folders has any."""
        state = PathState.of(self.newest.state() if self.newest else None)
        partitions = {state.last.partition} if state.last else set(state.names)
        if partitions != {""}:
            return
        by_arrival = replace(self.options, by="arrival", replace=self._replaces)
        choices: list[str] = []
        with suppress(ConfigurationError):
            requested_arrival(self.dataflow, by_arrival)
            choices.append(by_arrival.command(self.dataflow.name))
        raise ConfigurationError(
            f"dataflow {self.dataflow.name}: expected files in partition folders from {self.options.start} to "
            f"{self.options.end}, found all loaded files in the root folder, which no range of folders has. "
            "Choose them by the time of their arrival with --by arrival, or by a column of their rows with --column",
            choices=choices,
        )

    def _check_files_of_rows(self) -> None:
        """Raise ConfigurationError if the table's rows do not tell their files."""
        dataflow, table = self.dataflow, self.platform.table(self.dataflow)
        by_default = [SOURCE_FILE] if dataflow.target.origin_columns else []
        columns = table.contents.columns() if table.exists() else by_default
        if SOURCE_FILE not in columns:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: a replay finds the rows of a file by their path: expected a "
                f"column {SOURCE_FILE} in table {dataflow.table}, found "
                f"{', '.join(columns) or 'none (origin_columns: false)'}. Set origin_columns: true, and reload the "
                f"table: strandline state reset {dataflow.name} --replace --reason TEXT"
            )

    def range(self) -> str:
        """Return the bounds: values of the column, times of arrival, or folders."""
        if self.options.column:
            rows = self._rows_of_column()
            return serialise({"lower": rows.lower, "upper": rows.upper})
        requested = requested_arrival if self.options.by else requested_partitions
        lower, upper = requested(self.dataflow, self.options)
        return serialise({"lower": lower, "upper": upper})

    def _rows_of_column(self) -> Between:
        """Return the requested rows of a column of the table.

        Raises:
            ConfigurationError: there is no such column, or the bounds do not fit it.
        """
        dataflow, column = self.dataflow, str(self.options.column)
        refuse_chunks(dataflow, self.options, "a replay of files cuts its chunks by checkpoint")
        described = self.platform.table(dataflow).contents.schema()
        types = (
            {field["name"]: field["type"] for field in json.loads(described[1])["fields"]}
            if described
            else {}
        )
        if column not in types:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: --column: expected a column of table {dataflow.table}, found {describe_missing([column], list(types))}"
            )
        with name_dataflow_in_errors(dataflow):
            return range_of_column(column, types[column], self.options.start, self.options.end)

    def _chosen_files(self) -> tuple[set[str], str]:
        """Return the loaded files of the range by a column or by arrival, and what chose them, for people."""
        dataflow, options = self.dataflow, self.options
        span = f"from {options.start} to {options.end}"
        if options.column:
            counts = self.platform.table(dataflow).contents.text_counts(SOURCE_FILE, self._rows_of_column())
            return set(counts["text"].to_pylist()), f"rows with {options.column} {span}, read whole"
        record = IngestedFiles(self.platform.log, dataflow.name, self.newest)
        first, after = map(milliseconds, requested_arrival(dataflow, options))
        return files_modified(RecordTables(record).tables(), first, after, LOADED_REASONS), f"arrival {span}"

    @override
    def check_answers(self, ended: Stores) -> None:
        """Ask also what becomes of the rows of files that are gone at the source, if there are some.

        A promote of an isolated replay keeps them unless ``--gone delete`` was said.
        """
        options, name = self.options, self.dataflow.name
        self._check_rows_have_paths()
        if (
            options.replace
            and not options.is_isolated
            and options.gone_files is None
            and (gone_paths := self._find_gone())
        ):
            commands = [replace(options, gone_files=answer).command(name) for answer in get_args(GoneFiles)]
            raise gone_files_error(name, gone_paths, commands)
        super().check_answers(ended)

    def _check_rows_have_paths(self) -> None:
        """Raise ConfigurationError if rows are to be replaced that do not carry the path of their file."""
        if self._replaces:
            stores = self.platform
            table = stores.table(self.dataflow)
            check_rows_have_paths(stores.log, self.dataflow, table, self.newest, self._chosen_paths())

    @override
    def lost_rows(self, ended: Stores) -> LostRows:
        """Count the rows of the files of the range."""
        log, flow = ended.log, self.dataflow
        entry = log.newest(flow.name)
        if entry is None:
            return LostRows()
        return find_lost_rows(log, flow, self.platform.table(flow), entry, self._chosen_paths())

    def _chosen_paths(self) -> Callable[[str], bool]:
        """Return a function that tells whether a path is in the range."""
        if self.options.column or self.options.by:
            return self._chosen_files()[0].__contains__
        return start_between(*requested_partitions(self.dataflow, self.options)).is_above

    def _find_gone(self) -> Mapping[str, int]:
        """Return the rows in the table of each loaded file of the range that is gone at the source."""
        stores, flow = self.platform, self.dataflow
        source = stores.files(flow)
        if self.options.column or self.options.by:
            paths = self._chosen_files()[0]
            existing = {*source.find_files(sorted(paths))}
        else:
            within = start_between(*requested_partitions(flow, self.options))
            existing = {file.path for file in source.list_above(within).listed.files}
        return find_gone_files(
            stores.log, flow.name, stores.table(flow), self.newest, self._chosen_paths(), existing
        )

    @override
    def cut(self, range_: str | None = None) -> Cut:
        """List the source: the files as they are now."""
        self._check_rows_have_paths()
        planning = path_planning(self.platform, self.dataflow)
        deletes = self._replaces and self.options.gone_files == "delete"
        gone_paths = tuple(self._find_gone()) if deletes else ()
        if self.options.column or self.options.by:
            paths, why = self._chosen_files()
            plan = planning.plan_files(
                self.newest, paths, self.now, why, replaces=self._replaces, gone_paths=gone_paths
            )
        else:
            folders = requested_partitions(self.dataflow, self.options)
            plan = planning.plan_partitions(
                self.newest, *folders, self.now, replaces=self._replaces, gone_paths=gone_paths
            )
        target = self.dataflow.target
        slices = plan.slices
        if target.merges and self._replaces and not self.options.is_isolated:
            # A key that a later file no longer holds gets the row of an earlier one only after that file's row went.
            slices = slices[::-1]
        return Cut(
            [_chunk(slice_) for slice_ in slices],
            [(slice_,) for slice_ in slices],
            plan.skips,
            plan.warnings,
        )

    @override
    def plan(self, cut: Cut, done: Collection[ReplayChunk]) -> Plan[Any]:
        """Return the plan, with a warning about skipped copies that the replay frees; a promote has its own."""
        planned = super().plan(cut, done)
        if self.options.is_isolated:
            return planned
        platform, flow = self.platform, self.dataflow
        finder = CopyFinder(flow, platform.root_of(flow), platform.log, platform.table(flow))
        freed_copies = finder.foresee_freed_copies(planned.slices, self.newest)
        warnings = [freed_copies_preview(freed_copies)] if freed_copies else []
        return replace(planned, warnings=(*planned.warnings, *warnings))

    @override
    def request(self, chunk: ReplayChunk, since: int = 0, table: Table | None = None) -> ReplayFiles:
        """Return the request for the chunk's files, as they are when they are read.

        An isolated table holds no rows of files that are gone; the promote deletes those of the live table.
        """
        return ReplayFiles(
            chunk.files,
            since,
            self.reason(chunk),
            replaces=self._replaces,
            saves=self.options.is_isolated,
            gone_paths=() if self.options.is_isolated else chunk.gone_paths,
        )

    def kind_of(self, dataflow: Dataflow) -> Kind[PathSlice]:
        """Return the path kind."""
        return open_path(self.platform, dataflow)

    @override
    def swap(self, isolated: IsolatedReplay, entry: Entry | None, since: Sequence[Entry]) -> Swap:
        """Swap the rows of the replayed files, except files that live runs have loaded since or will load."""
        return FileSwap(self.platform, self.dataflow).swap(isolated, entry)


def _chunk(slice_: PathSlice) -> ReplayChunk:
    paths = [file.path for file in slice_.files]
    named = paths or slice_.gone_paths
    return ReplayChunk.of(named[0], named[-1], files=paths, gone_paths=slice_.gone_paths)
