"""The rules of path watermarks for decisions: ingested files, and their rows in the table.

See docs/reference/state.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, CorruptWatermark
from partitions.path.adopted import adopted_watermark, upper_bound
from partitions.path.cold_start import earliest_cold_start
from partitions.path.copies import SAME_CONTENT, freed_copies_preview, original_of
from partitions.path.definition import PathWatermark
from partitions.path.listing_positions import FromBeginning
from partitions.path.order import pair_order
from partitions.path.position_of_state import above_state, listing_start, sweep_start
from partitions.path.quarantined_files import Quarantine, QuarantinedFile
from partitions.path.slices import PathSlice
from partitions.path.source import SourceFile, unseen_file
from partitions.path.state import PathState
from partitions.sentinels import Watermark, deserialise, serialise
from resources.decisions.reasons import DECISION_REASONS, IN_TABLE, WITH_ROWS
from resources.kinds.contract.decisions import HeldFiles, LoadedBefore, OtherNames, StateRules
from resources.kinds.contract.lost_rows import LostRows
from resources.kinds.path.copies import CopyFinder
from resources.kinds.path.gone import find_gone_files
from resources.kinds.path.lost import find_lost_rows
from resources.kinds.path.other_names import find_other_names
from resources.kinds.path.row_counts import count_rows_of_files
from resources.kinds.path.rows_by_path import check_rows_have_paths
from resources.kinds.state_of_entry import cold_start_of, state_of
from resources.sources.files.paths import SOURCE_FILE
from resources.sources.files.source import FileSource
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry
from resources.watermarks.file_ranges import LOADED_AGAIN, IngestedFile
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.log import WatermarkLog
from resources.watermarks.quarantine_list import read_quarantine


class PathRules(StateRules):
    """The rules of one dataflow."""

    column = SOURCE_FILE

    def __init__(self, dataflow: Dataflow, source: FileSource, table: Table, log: WatermarkLog) -> None:
        """Bind to a dataflow's files, its table and its log."""
        self._dataflow, self._definition = dataflow, dataflow.path
        self._source, self._table, self._log = source, table, log

    def parse_watermark(self, text: str) -> str:
        """Parse ``{"path": …}`` or ``{"paths": …}``, as the scope requires."""
        name, scope = self._dataflow.name, self._definition.scope
        form = (
            '{"path": text}'
            if scope == "global"
            else '{"paths": {partition: name}, "closed_before": instant or null}'
        )
        try:
            state = PathState.of(deserialise(text))
        except CorruptWatermark as error:
            raise ConfigurationError(
                f"dataflow {name}: expected a watermark such as {form}, found {text[:200]!r} ({error.message})"
            ) from error
        if state.status == "initial" or (scope == "global") != (state.last is not None):
            raise ConfigurationError(
                f"dataflow {name}: expected a watermark such as {form} (scope: {scope}), found {text[:200]!r}"
            )
        return serialise(deserialise(text))

    @override
    def migrate_watermark(self, text: str, now: datetime, last: Entry | None) -> str:
        """Return the whole watermark: a path still means the same files.

        Raises:
            ConfigurationError: it has the other scope, so that all files would count as new.
        """
        name, scope, state = self._dataflow.name, self._definition.scope, PathState.of(deserialise(text))
        if state.status != "initial" and (scope == "global") != (state.last is not None):
            raise ConfigurationError(
                f"dataflow {name}: expected a watermark of scope: {scope}, found {text[:200]}, which has "
                "the other scope: every file would count as new. Run `state reset --replace` to load "
                "everything again",
                choices=(
                    f"strandline state reset {name} --replace --reason TEXT",
                    f"strandline state reset {name} --reason TEXT",
                ),
            )
        return text

    def watermark_from_rows(self) -> str | None:
        """Return the largest path that a row came from; with scope partition, the largest of each partition."""
        paths = self._table.contents.distinct_texts(SOURCE_FILE)
        return serialise(adopted_watermark(self._definition, paths)) if paths else None

    def replaces_reloaded_rows(self) -> bool:
        """Return whether rows tell their file."""
        return SOURCE_FILE in self._table.contents.columns()

    def loaded_upper_bound(self, entry: Entry) -> str:
        """Return a bound above all files whose rows may be in the table, also of earlier rewinds."""
        name, columns = self._dataflow.name, self._table.contents.columns()
        if SOURCE_FILE not in columns:
            raise ConfigurationError(
                f"dataflow {name}: --replace deletes the rows of each file that it reads again: expected "
                f"a column {SOURCE_FILE} in table {self._dataflow.table}, found "
                f"{', '.join(columns) or 'no table'}. Run `state reset --replace`. Later rewinds need "
                "origin_columns: true, and the column in sql",
                choices=(f"strandline state reset {name} --replace --reason TEXT",),
            )
        paths = {ingested.path for ingested in IngestedFiles(self._log, name, entry).all()}
        if entry.era:  # what was loaded before a reset is not known any more, and its rows may be there
            paths |= self._table.contents.distinct_texts(SOURCE_FILE)
        return serialise(upper_bound(self._definition, PathState.of(entry.state()), paths))

    def check_rewind(self) -> None:
        """Raise for ``tracking: set``: a set has no order to go back in."""
        name = self._dataflow.name
        if self._definition.tracking == "set":
            raise ConfigurationError(
                f"dataflow {name}: expected tracking: watermark, found tracking: set, whose files have no "
                "order to go back in. Mark single files with `files unprocess`, or run `state reset "
                "--replace`",
                choices=(
                    f"strandline files unprocess {name} PATH…",
                    f"strandline state reset {name} --replace --reason TEXT",
                ),
            )

    def count_already_loaded(self, slices: Sequence[PathSlice], last: Entry | None) -> LoadedBefore:
        """Return the files that were ingested, or that have rows in the table.

        Files in quarantine, and files beside the watermark, count only if they have rows.
        """
        paths = [file.path for slice_ in slices for file in slice_.files]
        above = [file.path for slice_ in slices if slice_.why == "run" for file in slice_.files]
        ingested: set[str] = set()
        if last is not None and above:
            records = IngestedFiles(self._log, self._dataflow.name, last).find_records(above)
            ingested = {
                path
                for path, record in records.items()
                if record.reason not in LOADED_AGAIN and not str(record.reason).startswith(SAME_CONTENT)
            }
            ingested -= {quarantined.file.path for quarantined in read_quarantine(self._log, last).files}
        rows = count_rows_of_files(self._table) if paths else {}
        names = [path for path in paths if path in ingested or path in rows]
        without_rows = [path for path in above if path not in rows and (last is None or path in ingested)]
        return LoadedBefore(len(names), "file", names, without_rows)

    def describe_freed_copies(self, slices: Sequence[PathSlice], last: Entry | None) -> Sequence[str]:
        """Return a sentence about skipped copies that planned slices free; none if they free none."""
        finder = CopyFinder(self._dataflow, self._source.root, self._log, self._table)
        freed_copies = finder.foresee_freed_copies(slices, last)
        return [freed_copies_preview(freed_copies)] if freed_copies else []

    def files_up_to(self, watermark: Watermark, above: Entry | None) -> Sequence[SourceFile]:
        """List the source's files at or below a watermark and above an entry's."""
        state = state_of(PathState, self._dataflow, above)
        start = cold_start_of(above) if state.status == "initial" else state
        by_set = self._definition.tracking == "set"  # which has no order: whatever is there
        bound = FromBeginning() if by_set else sweep_start(self._definition, PathState.of(watermark), start)
        return self._source.list_above(bound).listed.files

    def check_replaceable(self, entry: Entry, watermark: str) -> None:
        """Look for files and rows that the table does not hold under the file's path."""
        is_above = above_state(self._definition, PathState.of(deserialise(watermark))).is_above
        check_rows_have_paths(self._log, self._dataflow, self._table, entry, is_above)

    def gone_above(self, entry: Entry | None, watermark: str) -> Mapping[str, int]:
        """Compare the files of the table's rows with the source."""
        state = PathState.of(deserialise(watermark))
        above = listing_start(self._definition, state, datetime.now(UTC), cold_start_of(entry))
        existing = {file.path for file in self._source.list_above(above).listed.files}
        return find_gone_files(self._log, self._dataflow.name, self._table, entry, above.is_above, existing)

    def lost_above(self, entry: Entry, watermark: str) -> LostRows:
        """Compare the rows that entries count with those that the table holds, slice by slice."""
        above = above_state(self._definition, PathState.of(deserialise(watermark)))
        return find_lost_rows(self._log, self._dataflow, self._table, entry, above.is_above)

    def under_other_names(self, last: Entry | None, watermark: str) -> OtherNames:
        """Compare the records of such files with the table's rows and with its newest commit."""
        records = find_other_names(self._log, self._dataflow.name, self._table, last)
        if not (records.loaded or records.unsure):
            return OtherNames()
        rows = count_rows_of_files(self._table)
        is_above = above_state(self._definition, PathState.of(deserialise(watermark))).is_above
        loaded, unsure = (
            [SourceFile(*record[:4]) for record in part if record.path not in rows]
            for part in (records.loaded, records.unsure)
        )
        if self._definition.tracking == "set":  # which has no order: a record holds for each file
            return OtherNames(loaded, (), unsure)
        loaded_above, unsure_above = (
            [file for file in part if is_above(file.path)] for part in (loaded, unsure)
        )
        adds = (
            self._dataflow.target.only_adds
        )  # else a load finds the rows by keys, whatever file they came from
        return OtherNames(
            [file for file in loaded if file not in loaded_above],
            loaded_above if adds else (),
            [file for file in unsure if file not in unsure_above],
            unsure_above if adds else (),
        )

    def not_ingested(self, files: Sequence[SourceFile], last: Entry) -> list[SourceFile]:
        """Return the files that are in no list of ingested files."""
        paths = [file.path for file in files]
        ingested = IngestedFiles(self._log, self._dataflow.name, last).find_handled(paths) if files else ()
        return [file for file in files if file.path not in ingested]

    def held_files(
        self, last: Entry | None, base: Entry | None, watermark: str, *, beyond: bool = False
    ) -> HeldFiles:
        """Compare the files that the log counts as ingested with the files of the table's rows."""
        listed = self.files_up_to(deserialise(watermark), above=None)
        ingested = self._ingested(last, base)
        before = [file_ for file_ in (ingested or {}).values() if base and _counts_before(file_, base)]
        quarantined = self._in_quarantine(last, before)
        # Of a file that was dealt with after that commit the table says whether its rows were there before, and the
        # log which content they are of, if it still has the record of that time.
        doubtful = [
            file
            for file in listed
            if ingested is None or _is_doubtful(ingested.get(file.path), base, beyond=beyond)
        ]
        may_hold_more = ingested is None or beyond
        asks_rows = bool(doubtful or quarantined or may_hold_more or len(before) < len(ingested or ()))
        loaded = count_rows_of_files(self._table) if asks_rows else {}
        if ingested is not None:
            earlier_records = self._records_at(base, doubtful, loaded)
            before += earlier_records.values()
            doubtful = [file for file in doubtful if file.path not in earlier_records]
        rows_tell = SOURCE_FILE in self._table.contents.columns()
        since = base.since if base else last.since if last else None
        unlogged = (
            _with_rows(self._definition, doubtful, loaded, since)
            if rows_tell
            else doubtful
            if ingested is None
            else []
        )
        unlisted = loaded.keys() - {file.path for file in listed} - {file_.path for file_ in before}
        absent = self._absent(unlisted, watermark) if rows_tell or not may_hold_more else None
        paths_in_table = {file_.path for file_ in before if file_.reason is None} | (
            loaded.keys() if rows_tell else {file.path for file in unlogged}
        )
        still_quarantined = tuple(file_ for file_ in quarantined if file_.file.path not in paths_in_table)
        rows = _list_rows(still_quarantined, [*unlogged, *(absent or ())], before)
        until = _upper_bound(self._definition, watermark, loaded) if may_hold_more else None
        return HeldFiles(
            [*rows.values()],
            unlogged,
            [file for file in doubtful if file.path not in rows],
            until if until != watermark else None,
            Quarantine(still_quarantined),
            len(quarantined) - len(still_quarantined),
            loaded if asks_rows and rows_tell else None,
            {file_.path: file_.checksum for file_ in before if file_.checksum},
            absent,
            knows_loads=ingested is not None,
        )

    def _absent(self, paths: Collection[str], watermark: str) -> list[SourceFile]:
        """Return those of some files that the source lacks, in pair order. Only their paths are known.

        Files above the watermark count, too: they may come back when a run has passed them.
        """
        above = above_state(self._definition, PathState.of(deserialise(watermark)))
        at_source: set[str] = set()
        if self._definition.tracking != "set" and any(map(above.is_above, paths)):
            at_source = {file.path for file in self._source.list_above(above).listed.files}
        return [unseen_file(path) for path in sorted(set(paths) - at_source, key=pair_order)]

    def _ingested(self, last: Entry | None, base: Entry | None) -> dict[str, IngestedFile] | None:
        """Return the ingested files by path; None if the log does not reach back to a commit's entry.

        None also if the list cannot be read.
        """
        if base is None or last is None or base.number <= last.era:
            return None
        try:
            return {file.path: file for file in IngestedFiles(self._log, self._dataflow.name, last).all()}
        except CorruptWatermark:
            return None

    def _records_at(
        self, base: Entry | None, files: Sequence[SourceFile], loaded: Collection[str]
    ) -> dict[str, IngestedFile]:
        """Return the records as of an entry of files with rows, and of copies that were skipped by then.

        Empty if the log has merged them with later ones.
        """
        try:
            records = IngestedFiles(self._log, self._dataflow.name, base).find_records(
                [file.path for file in files]
            )
        except CorruptWatermark:
            return {}
        return {
            path: record
            for path, record in records.items()
            if original_of(record.reason) or (record.reason in WITH_ROWS and path in loaded)
        }

    def _in_quarantine(
        self, last: Entry | None, ingested: Sequence[IngestedFile] = ()
    ) -> Sequence[QuarantinedFile]:
        """Return the quarantined files; if their list is lost, the files that runs passed over."""
        try:
            return read_quarantine(self._log, last).files
        except CorruptWatermark:
            skipped_files = (
                file
                for file in ingested
                if file.reason
                and file.reason not in DECISION_REASONS
                and not file.reason.startswith(SAME_CONTENT)
            )
            return [QuarantinedFile(SourceFile(*file[:4]), file.reason or "") for file in skipped_files]


def _is_doubtful(ingested: IngestedFile | None, base: Entry | None, *, beyond: bool) -> bool:
    """Return whether the log does not show if a file's rows existed at the commit of an entry."""
    if ingested is None:
        return beyond
    return base is not None and not _counts_before(ingested, base)


def _counts_before(ingested: IngestedFile, base: Entry) -> bool:
    """Return whether a file counts as ingested by the time of an entry."""
    return ingested.number <= base.number


def _list_rows(
    quarantined: Sequence[QuarantinedFile], unlogged: Sequence[SourceFile], before: Sequence[IngestedFile]
) -> dict[str, Sequence[object]]:
    """Return the rows of an entry's list of files, by path; later sources override earlier ones."""
    rows: dict[str, Sequence[object]] = {
        file_.file.path: (*file_.file.row, file_.reason) for file_ in quarantined
    }
    rows |= {file.path: (*file.row, IN_TABLE) for file in unlogged}
    return rows | {
        file_.path: (file_.path, file_.size, file_.version, file_.modified, file_.reason) for file_ in before
    }


def _upper_bound(definition: PathWatermark, watermark: str, paths: Collection[str]) -> str | None:
    """Return the lowest state at or above a watermark and all paths; None if files have no order."""
    if definition.tracking == "set":
        return None
    return serialise(upper_bound(definition, PathState.of(deserialise(watermark)), paths))


def _with_rows(
    definition: PathWatermark, files: Sequence[SourceFile], loaded: Collection[str], since: str | None
) -> list[SourceFile]:
    """Return the files with rows in the table, and those that a filtered cold start did not read.

    If its start is unknown, it is taken to be the first prefix with rows.
    """
    start = deserialise(since) if since is not None else earliest_cold_start(definition, loaded)
    if start is None:
        return [file for file in files if file.path in loaded]
    is_above_start = sweep_start(definition, PathState.of(start), None).is_above
    return [file for file in files if file.path in loaded or is_above_start(file.path)]
