"""The path kind: files above the last committed one (docs/guide-files.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import BadFile, BadPart, SchemaError
from partitions.loads import ByPath, Lacking, Load, ReplaceKeys, load_into
from partitions.path.bad_files import is_passed_over
from partitions.path.cold_start import first_state
from partitions.path.hive import partition_columns
from partitions.path.plan import PendingFiles, plan
from partitions.path.position_of_state import at_or_below, between, position
from partitions.path.quarantined_files import Quarantined
from partitions.path.settle import ready, settles
from partitions.path.slices import PathSlice, cut_pending, slice_of, watermark_of
from partitions.path.source import ListedFiles, SourceFile, in_pair_order
from partitions.path.state import PathState
from partitions.plan import Plan, Skip, counted
from partitions.predicate import EVERYTHING, NOTHING, Among
from partitions.request import DUE, ReplayFiles, Request
from partitions.sentinels import Watermark, deserialise
from partitions.table_names import bad_records_table
from resources.kinds.kind import Kind, SliceBase
from resources.kinds.path.sweep import unhandled
from resources.kinds.state_of_entry import cold_start_of, state_of
from resources.listing import Budget, Listing
from resources.sources.files.checked import BadRecord
from resources.sources.files.paths import SOURCE_FILE
from resources.sources.files.source import FileSource
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.ingested import Ingested
from resources.watermarks.lists import INGESTED_FILES, QUARANTINED_FILES, ListKind, StoredList
from resources.watermarks.log import WatermarkLog
from resources.watermarks.quarantine_list import read_quarantine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


_NAMED = 5
"""Files that a warning names."""

_LATE_AT_ONCE = 10_000
"""Late files that one plan looks at; a run plans again when these are loaded."""


class PathKind(Kind[PathSlice]):
    """Files above the last committed one."""

    replans_after_load: ClassVar[bool] = True
    """Files may come while others are loaded."""
    one_query: ClassVar[bool] = True
    """Files are what slices differ in."""
    pacing: ClassVar[timedelta] = timedelta(0)

    def __init__(self, dataflow: Dataflow, source: FileSource, log: WatermarkLog) -> None:
        """Bind a dataflow to its files, and to what the log remembers of them."""
        self._dataflow = dataflow
        self._definition = dataflow.path
        self._source = source
        self._log = log
        self._set_aside: dict[str, None] = {}

    @property
    def remarks(self) -> Sequence[str]:
        """What the source has to say of the files, and which records were set aside."""
        return (*self._source.remarks, *self._set_aside)

    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[PathSlice]:
        """List above the watermark, in full, and cut slices; or plan files that are read again, as they are now."""
        if isinstance(request, ReplayFiles):
            return self._plan_again(entry, now, request)
        state = state_of(PathState, self._dataflow, entry)
        listing = self._source.list_above(position(self._definition, state, now, cold_start_of(entry)))
        made = plan(
            self._definition,
            state,
            listing.listed,
            now,
            dataflow=self._dataflow.name,
            number=entry.number if entry else 0,
            pending=self._pending(entry, state, listing.listed, now),
            request=request,
        )
        reminder = read_quarantine(self._log, entry).reminder(self._dataflow.name)
        return replace(made, calls=listing.listed.calls, warnings=(*made.warnings, *filter(None, [reminder])))

    def _plan_again(self, entry: Entry | None, now: datetime, request: ReplayFiles) -> Plan[PathSlice]:
        """One slice, whatever its size; whoever died with it may have loaded it already."""
        made = Plan[PathSlice](self._dataflow.name, "path", entry.number if entry else 0, now, "")
        unmoved = watermark_of(self._definition, state_of(PathState, self._dataflow, entry))
        files = in_pair_order(self._there(request.paths))
        if not files:
            return replace(made, why="its files are gone at the source")
        after = slice_of(self._definition, unmoved, files, None).after if request.saves else unmoved
        slice_ = PathSlice(files, unmoved, after, self._definition, why="replay", replaces=request.replaces)
        done = entry is not None and entry.number > request.since and entry.reason == request.reason
        if done and entry is not None and entry.upper and deserialise(entry.upper) == slice_.upper:
            return replace(made, why=f"loaded before: {counted(len(files), 'file')}")
        return replace(made, why=f"replay of {counted(len(files), 'file')}", slices=(slice_,))

    def read_again(
        self, entry: Entry | None, start: str, end: str, now: datetime, *, replaces: bool
    ) -> Plan[PathSlice]:
        """Plan what a replay of partitions reads: files at or below the watermark that are there and have settled, but none in quarantine.

        Args:
            entry: the newest.
            start: the first partition, in byte order.
            end: where they end; it is no part.
            now: the clock, aware.
            replaces: whether rows of these files go.
        """
        definition, state = self._definition, state_of(PathState, self._dataflow, entry)
        listing = self._source.list_above(between(start, end))
        listed = listing.listed.files
        dealt_with = self.not_new(entry, [file.path for file in listed])
        files = tuple(file for file in listed if file.path in dealt_with)
        held = {aside.file.path for aside in read_quarantine(self._log, entry).held}
        files = tuple(file for file in files if file.path not in held and not settles(definition, file, now))
        slices = cut_pending(definition, watermark_of(definition, state), files, "replay", replaces=replaces)
        left, there = len(listed) - len(files), {file.path for file in listed}
        held_back = f"{counted(left, 'file')} above the watermark, in quarantine, or still settling"
        nothing = (f"nothing is read again: {held_back}",) if left and not files else ()
        why = f"{counted(len(files), 'file')} of partitions from {start!r} to {end!r}"
        return Plan(
            self._dataflow.name,
            "path",
            entry.number if entry else 0,
            now,
            why,
            tuple(slices),
            (Skip(counted(left, "file"), "above the watermark, in quarantine, or still settling"),)
            if left
            else (),
            (*nothing, *self._gone(entry, start, end, there)),
            listing.listed.calls,
        )

    def not_new(self, entry: Entry | None, paths: Sequence[str]) -> set[str]:
        """Return those of these paths that lie at or below the watermark; with ``tracking: set`` those that were ingested."""
        if entry is None:
            return set()
        if self._definition.tracking == "set":
            return self._known(entry, paths)
        state = state_of(PathState, self._dataflow, entry)
        below = at_or_below(self._definition, state, cold_start_of(entry))
        return {path for path in paths if below.above(path)}

    def count_first_loads(self, entry: Entry | None, slice_: PathSlice) -> int:
        """Return how many files of a slice were not loaded before; those in quarantine were not."""
        paths = [file.path for file in slice_.files]
        if entry is None or not paths:
            return len(paths)
        aside = {quarantined.file.path for quarantined in read_quarantine(self._log, entry).files}
        return len(paths) - len(self._known(entry, paths) - aside)

    def _gone(self, entry: Entry | None, start: str, end: str, there: Collection[str]) -> Iterator[str]:
        """Say which files of these partitions were loaded and are gone."""
        if entry is None:
            return
        within = between(start, end)
        known = Ingested(self._log, self._dataflow.name, entry).all()
        gone = [file.path for file in known if within.above(file.path) and file.path not in there]
        if gone:
            more = f" and {len(gone) - _NAMED:,} more" if len(gone) > _NAMED else ""
            yield f"gone at the source, so their rows stay: {', '.join(gone[:_NAMED])}{more}"

    def _pending(
        self, entry: Entry | None, state: PathState, listed: ListedFiles, now: datetime
    ) -> PendingFiles:
        """What waits beside the watermark. What was dealt with is looked up only if something waits for the answer."""
        if entry is None:
            return PendingFiles()
        by_set, until = self._definition.tracking == "set", entry.replace_until
        paths = [file.path for file in listed.files]
        return PendingFiles(
            late=() if by_set else self._late(entry, state, now),
            released=self._released(entry, state),
            replace_until=PathState.of(deserialise(until)) if until else None,
            known=frozenset(self._known(entry, paths)) if by_set else frozenset(),
        )

    def _known(self, entry: Entry, paths: Sequence[str]) -> set[str]:
        return Ingested(self._log, self._dataflow.name, entry).known(paths)

    def _late(self, entry: Entry, state: PathState, now: datetime) -> tuple[SourceFile, ...]:
        """What the sweep has found and no entry has dealt with since, as it is now; what did not settle comes last."""
        if self._dataflow.late_files != "ingest":
            return ()
        below = at_or_below(self._definition, state, cold_start_of(entry))
        late = unhandled(self._log, self._dataflow, entry, now)
        paths = [file.path for file in (*late.files, *late.settling) if below.above(file.path)]
        return self._there(paths[:_LATE_AT_ONCE])

    def _released(self, entry: Entry, state: PathState) -> tuple[SourceFile, ...]:
        """What was taken out of quarantine. What lies above the watermark is read with all that is new there."""
        below = at_or_below(self._definition, state, cold_start_of(entry))
        paths = [released.file.path for released in read_quarantine(self._log, entry).released]
        by_set = self._definition.tracking == "set"
        return self._there([path for path in paths if by_set or below.above(path)])

    def _there(self, paths: Sequence[str]) -> tuple[SourceFile, ...]:
        there = self._source.look(paths)
        return tuple(there[path] for path in paths if path in there)

    def peek(self, entry: Entry | None, now: datetime, budget: Budget, resume: str | None) -> Listing:
        """Look for what the next run would load within a budget, to see whether a run is worth asking for, and count what ``settle`` holds back."""
        definition, state = self._definition, state_of(PathState, self._dataflow, entry)
        start = position(definition, state, now, cold_start_of(entry))
        listing = self._source.list_above(start, budget=budget, resume=resume)
        files = listing.listed.files
        if entry is not None and definition.tracking == "set":
            known = self._known(entry, [file.path for file in files])
            files = tuple(file for file in files if file.path not in known)
        new, files = len(files), ready(definition, files, now)
        settling = new - len(files)
        if entry is not None:
            released = (file for file in self._released(entry, state) if not settles(definition, file, now))
            files = in_pair_order([*files, *released])
        return replace(listing, listed=replace(listing.listed, files=files), settling=settling)

    def covers(self, state: str, other: str) -> bool:
        """Compare the last file, or that of every open partition."""
        newer, older = (PathState.of(deserialise(text)) for text in (state, other))
        return newer.covers(older, self._definition.template)

    @override
    def modified(self, slice_: PathSlice, before: Watermark, now: datetime) -> int | None:
        """Of the file modified last; what is late or released tells nothing of how far the source is loaded."""
        times = (file.modified for file in slice_.all_files)
        return max(times, default=None) if slice_.why == "run" else None

    @property
    def list_kind(self) -> ListKind:
        """Files."""
        return INGESTED_FILES

    def slice_to_rows(self, slice_: PathSlice) -> StoredList:
        """Path, size, version and modification time of each file, and why, if it is passed over."""
        loaded = [(*file.row, None) for file in slice_.files]
        passed_over = [(*aside.file.row, aside.reason) for aside in slice_.quarantined]
        return StoredList(INGESTED_FILES, [*loaded, *passed_over])

    def slice_from_rows(self, intent: Intent, stored: StoredList) -> PathSlice:
        """The same files, and the same state after them."""
        files = [(SourceFile(*row), reason) for *row, reason in stored.rows]
        since = deserialise(intent.since) if intent.since else None
        return PathSlice(
            tuple(file for file, reason in files if reason is None),
            first_state(self._definition, PathState.of(deserialise(intent.before)), since),
            deserialise(intent.watermark),
            self._definition,
            why=intent.why if intent.why in ("late", "release", "replay") else "run",
            quarantined=tuple(Quarantined(file, reason) for file, reason in files if reason is not None),
            replaces=intent.replaces == "own",
            since=since,
        )

    def pin(self, spark: SparkSession, pending: Sequence[PathSlice]) -> str | None:
        """Declared, or inferred from a bounded sample of all files that wait."""
        files = [file for slice_ in pending for file in slice_.files]
        passed_over = [aside.file for slice_ in pending for aside in slice_.quarantined]
        return self._source.pin(spark, files, passed_over)

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Compare ``source.schema`` with what was pinned."""
        self._source.check_schema(spark, pinned)

    def lacking(self, spark: SparkSession, slice_: PathSlice, pinned: str) -> Sequence[Lacking]:
        """Return the columns that some of the slice's files do not have."""
        return self._source.lacking(spark, slice_.files, pinned)

    @override
    def fix(self, slice_: PathSlice, base: SliceBase) -> PathSlice:
        """A slice is planned from exact files: compare each with what was listed."""
        self.check_unchanged(slice_)
        return slice_

    def check_unchanged(self, slice_: PathSlice) -> None:
        """Compare size and version of every file with what was listed."""
        self._source.check_unchanged(slice_.files)

    def read(self, spark: SparkSession, slice_: PathSlice | None, pinned: str) -> DataFrame:
        """Read exactly the slice's files.

        Raises:
            SchemaError: the folders of a file name a column that the pinned schema does not have.
            BadFile: that file, if it lies beside the watermark: it must not hold back what is above it; or the first with an
                open quote, or with fields that the pinned schema lacks (``unknown_fields: check``).
        """
        files = slice_.files if slice_ else ()
        try:
            return self._source.read(spark, files, pinned)
        except SchemaError as error:
            if slice_ is not None and slice_.why != "run" and (bad_file := _with_folder(error, files)):
                raise bad_file from error
            raise

    def columns(self, pinned: str) -> StructType | None:
        """Return the pinned columns and those that tell a row's file."""
        return self._source.columns(pinned)

    @override
    def load(self, slice_: PathSlice, rows: DataFrame) -> Load:
        """As the target says; after a rewind that replaces, the rows of the same files go, also of those that it passes over: released, they add theirs.

        A file that is loaded beside the watermark, or again, leaves the rows of later ones as they are.
        """
        paths = tuple(file.path for file in slice_.all_files)
        by_file = (ByPath(SOURCE_FILE),)
        where = Among(SOURCE_FILE, paths) if slice_.replaces else NOTHING
        load = load_into(self._dataflow.target, where, by_file, guard=by_file)
        if slice_.why == "replay" and isinstance(load, ReplaceKeys):
            return replace(load, later=EVERYTHING, order=by_file, own=Among(SOURCE_FILE, paths))
        return load

    def find_bad_part(
        self, spark: SparkSession, slice_: PathSlice, pinned: str, error: Exception
    ) -> BadFile | None:
        """Return the file that Spark names, with its line if a record does not parse."""
        files = {file.path: file for file in slice_.files}
        return self._source.find_bad_file(spark, files, pinned, error)

    def bad_records(
        self, spark: SparkSession, slice_: PathSlice, pinned: str
    ) -> Sequence[tuple[str, BadRecord]]:
        """Look through the files, up to the first record that is one too many.

        Raises:
            BadFile: the file of that record.
        """
        records = self._source.bad_records(spark, slice_.files, pinned)
        if records:
            path, first = records[0]
            where = f"{path}, line {first.line}" if first.line else path
            self._set_aside[
                f"{counted(len(records), 'record')} of {counted(len({path for path, _ in records}), 'file')} did not parse: see table"
                f" {bad_records_table(self._dataflow)}. The first: file {where}: {first.why}"
            ] = None
        return records

    def parts(self, slice_: PathSlice) -> Sequence[str]:
        """The paths of its files."""
        return [file.path for file in slice_.all_files]

    def slice_without(self, slice_: PathSlice, bad: BadPart) -> PathSlice | None:
        """Return the slice without the file, if it is one to pass over."""
        if not is_passed_over(self._dataflow.on_bad_file, bad.code) or not slice_.contains(bad):
            return None
        return slice_.without(bad.part, bad.why)

    def defer(self, slice_: PathSlice, parts: Collection[str]) -> PathSlice | None:
        """Without these files: what lies beside the watermark is found again, whatever was loaded since."""
        return slice_.leaving(parts)

    def find_other_bad_parts(
        self, spark: SparkSession, slice_: PathSlice, pinned: str, bad: BadPart
    ) -> Sequence[BadFile]:
        """All files that are bad in the same way: one by one, each would cost a number and a write."""
        if not isinstance(bad, BadFile):
            return ()
        return self._source.find_similar(spark, slice_.files, pinned, bad)

    def quarantine(self, entry: Entry | None, slice_: PathSlice) -> tuple[StoredList | None, int]:
        """The files that are in quarantine after the slice."""
        before = read_quarantine(self._log, entry)
        after = before.after([file.path for file in slice_.files], slice_.quarantined)
        kept = None if after == before else StoredList(QUARANTINED_FILES, after.rows())
        return kept, len(slice_.quarantined)


def _with_folder(error: SchemaError, files: Sequence[SourceFile]) -> BadFile | None:
    """The first file below a folder of the column that an error names."""
    path = next((file.path for file in files if error.field in partition_columns([file.path])), None)
    if path is None:
        return None
    return BadFile(f"file {path}: {error.message}", path=path, why=error.message, choices=error.choices)
