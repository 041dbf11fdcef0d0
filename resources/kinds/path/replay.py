"""Replays of files, chosen by folder, by a column of their rows or by arrival.

They are cut by ``checkpoint``.

A promote swaps the rows of each file.

See docs/reference/replay.md, Files.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.instants import milliseconds
from partitions.path.slices import PathSlice, watermark_of
from partitions.path.source import SourceFile, in_pair_order
from partitions.path.state import PathState
from partitions.plan import pluralize
from partitions.predicate import Among, Between, Predicate
from partitions.replay.column_bounds import range_of_column
from partitions.replay.promoted import promoted_files, rows_of_files
from partitions.request import ReplayFiles
from partitions.sentinels import serialise
from partitions.spelling import describe_missing, first_few
from resources.decisions.reasons import LOADED_REASONS
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.kinds.contract.kind import Kind
from resources.kinds.path.opening import open_path, path_planning
from resources.replay.chunks import ReplayChunk
from resources.replay.isolated.refusals import never_loaded, range_loaded_again
from resources.replay.isolated.standing import IsolatedReplay
from resources.replay.kind import Cut, ReplayKind, Swap
from resources.replay.options import (
    name_dataflow_in_errors,
    refuse_chunks,
    requested_arrival,
    requested_partitions,
)
from resources.sources.files.paths import SOURCE_FILE
from resources.sql import quoted
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry
from resources.watermarks.folder_counts import files_modified
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.quarantine_list import read_quarantine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MAX_NAMED = 100
"""Files of one condition that are named."""


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
                f"dataflow {self.dataflow.name}: expected --column or --by arrival, found both: each chooses files"
            )
        if options.column:
            self._check_files_of_rows()
            self._rows_of_column()
        elif options.by:
            requested_arrival(self.dataflow, options)
        else:
            requested_partitions(self.dataflow, options)
        if self._replaces or self.dataflow.target.way == "merge_overwrite":
            self._check_files_of_rows()

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
        refuse_chunks(dataflow, self.options, "files have no chunks but those of checkpoint")
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
        return files_modified(record.tables(), first, after, LOADED_REASONS), f"arrival {span}"

    @override
    def cut(self, range_: str | None = None) -> Cut:
        """List the source: the files as they are now."""
        planning = path_planning(self.platform, self.dataflow)
        if self.options.column or self.options.by:
            paths, why = self._chosen_files()
            plan = planning.plan_files(self.newest, paths, self.now, why, replaces=self._replaces)
        else:
            folders = requested_partitions(self.dataflow, self.options)
            plan = planning.plan_partitions(self.newest, *folders, self.now, replaces=self._replaces)
        chunks = [
            ReplayChunk.of(slice_.files[0].path, slice_.files[-1].path, files=tuple(slice_.keys))
            for slice_ in plan.slices
        ]
        return Cut(chunks, [(slice_,) for slice_ in plan.slices], plan.skips, plan.warnings)

    @override
    def request(self, chunk: ReplayChunk, since: int = 0, table: Table | None = None) -> ReplayFiles:
        """Return the request for the chunk's files, as they are when they are read."""
        return ReplayFiles(
            chunk.files,
            since,
            self.reason(chunk),
            replaces=self._replaces,
            saves=self.options.is_isolated,
        )

    def kind_of(self, dataflow: Dataflow) -> Kind[PathSlice]:
        """Return the path kind."""
        return open_path(self.platform, dataflow)

    @override
    def swap(self, isolated: IsolatedReplay, entry: Entry | None, since: Sequence[Entry]) -> Swap:
        """Swap the rows of the replayed files, except files that live runs have loaded since or will load."""
        log, dataflow = self.platform.log, self.dataflow
        replayed_files = list(IngestedFiles(log, isolated.log, log.newest(isolated.log)).all())
        loaded = [SourceFile(*file[:4]) for file in replayed_files if file.reason is None]
        paths = [file.path for file in loaded]
        recorded = IngestedFiles(log, dataflow.name, entry).find_records(paths)
        newer = {path for path, file in recorded.items() if file.number > isolated.number}
        released = {file.file.path for file in read_quarantine(log, entry).released}
        below = path_planning(self.platform, dataflow).at_or_below_watermark(entry, paths) - released
        files = in_pair_order(list(promoted_files(loaded, newer, below)))
        if not files and newer:
            number = max(recorded[path].number for path in newer)
            raise range_loaded_again(isolated, f"entry {number}")
        if not files:
            raise never_loaded(isolated)
        state = watermark_of(dataflow.path, PathState.of(entry.state() if entry else None))
        slice_ = PathSlice(files, state, state, dataflow.path, why="replay", replaces=True)
        unread = [file.path for file in replayed_files if file.reason is not None]
        paths_by_reason = {
            "the files could not be read": unread,
            "later runs loaded them": sorted(newer),
            "the next run loads them": sorted({*paths} - below - newer),
        }
        stays = [
            f"rows of {_named(names)} stay as they are: {why}"
            for why, names in paths_by_reason.items()
            if names
        ]
        swapped = {file.path for file in files}
        where = partial(self._where, swapped, {file.path for file in replayed_files} - swapped)
        amount = f"rows of {pluralize(len(files), 'file')} ({isolated.words})"
        return Swap(slice_, None, slice_.upper, where, amount, stays)

    def _where(self, swapped: Collection[str], other_paths: Collection[str], rows: DataFrame) -> Predicate:
        """Return the predicate of the rows of files.

        Many files become ranges of paths that hold no other file of either table, since each path costs
        some milliseconds.
        """
        live = self.platform.table(self.dataflow)
        if len(swapped) <= _MAX_NAMED or not live.exists():
            return Among(SOURCE_FILE, tuple(sorted(swapped)))
        within = Between(SOURCE_FILE, min(swapped), max(swapped), upper_inclusive=True)
        live_rows = live.contents.read(rows.sparkSession, live.contents.newest_version(), within).where(
            predicate_sql(within, SPARK)
        )
        live_paths = {row[0] for row in live_rows.select(quoted(SOURCE_FILE)).distinct().collect()}
        return rows_of_files(SOURCE_FILE, swapped, live_paths.union(other_paths))


def _named(paths: Sequence[str]) -> str:
    return f"{pluralize(len(paths), 'file')} ({first_few(paths, 5)})"
