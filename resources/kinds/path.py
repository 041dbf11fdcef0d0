"""The path kind: files above the last committed one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import (
    BadFile,
    BadPart,
    ConfigurationError,
    CorruptWatermark,
    SchemaError,
    StrandlineError,
)
from partitions.load import Append, Load, Replace, ReplaceAll
from partitions.path.hive import partition_columns
from partitions.path.plan import Beside, adopted, at_or_below, covering, plan, position, ready, settles
from partitions.path.position import Start
from partitions.path.quarantine import Quarantined
from partitions.path.slices import PathSlice
from partitions.path.source import Found, SourceFile, in_pair_order
from partitions.path.state import PathState
from partitions.plan import Plan
from partitions.predicate import Among
from partitions.request import DUE, Request
from partitions.sentinels import Watermark, deserialise, serialise
from resources.listing import FILE_CHANGED, FILE_VANISHED, Budget, Listing, check_unchanged, list_above, look
from resources.loop.flow import Observed, Size
from resources.places import Place
from resources.readers.bad_files import BadFiles
from resources.readers.failures import bad_file
from resources.readers.files import SOURCE_FILE, FilesReader, PinnedSchema
from resources.sweep import unhandled
from resources.tables.table import Table
from resources.watermarks.entry import Entry, Intent, Replaces, corrupt
from resources.watermarks.ingested import Ingested
from resources.watermarks.lists import INGESTED_FILES, QUARANTINED_FILES, ListKind, StoredList
from resources.watermarks.log import WatermarkLog
from resources.watermarks.quarantine import read_quarantine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_LATE_AT_ONCE = 10_000
"""Late files that one plan looks at; a run plans again when these are loaded."""


class PathFlow:
    """The path kind: files above the last committed one."""

    def __init__(self, dataflow: Dataflow, source: Place, log: WatermarkLog) -> None:
        """Bind a dataflow to the root of its files, and to what the log remembers of them."""
        self._dataflow = dataflow
        self._place = source
        self._log = log
        self._reader = FilesReader(source, dataflow.files)
        self._bad = BadFiles(source, self._reader, dataflow)
        self._calls = 0

    @property
    def calls(self) -> int:
        """LIST calls, or folders opened, so far."""
        return self._calls

    @property
    def remarks(self) -> Sequence[str]:
        """What the reader has to say of the files."""
        return self._reader.remarks

    @property
    def repeats(self) -> bool:
        """Files may come while others are loaded."""
        return True

    @property
    def one_query(self) -> bool:
        """Files are what slices differ in."""
        return True

    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[PathSlice]:
        """List above the watermark, in full, and cut slices."""
        state, since = self._state(entry), self._since(entry)
        definition = self._dataflow.path
        start = position(definition, state, now, since)
        listing = list_above(self._place, start, self._dataflow.files.endings)
        self._calls += listing.found.calls
        return plan(
            definition,
            state,
            listing.found,
            now,
            dataflow=self._dataflow.name,
            number=entry.number if entry else 0,
            beside=self._beside(entry, state, listing.found, now),
            request=request,
        )

    def _beside(self, entry: Entry | None, state: PathState, found: Found, now: datetime) -> Beside:
        """What waits beside the watermark. What was dealt with is looked up only where something waits for the answer."""
        if entry is None:
            return Beside()
        by_set, until = self._dataflow.path.tracking == "set", entry.replace_until
        return Beside(
            late=() if by_set else self._late(entry, state, now),
            released=self._released(entry, state),
            replace_until=PathState.of(deserialise(until)) if until else None,
            known=frozenset(self._known(entry, [file.path for file in found.files]))
            if by_set
            else frozenset(),
        )

    def _known(self, entry: Entry, paths: Sequence[str]) -> set[str]:
        return Ingested(self._log, self._dataflow.name, entry).known(paths)

    def _late(self, entry: Entry, state: PathState, now: datetime) -> tuple[SourceFile, ...]:
        """What the sweep has found and nobody has dealt with since, as it is now; what did not settle comes last."""
        if self._dataflow.late_files != "ingest":
            return ()
        below = at_or_below(self._dataflow.path, state, self._since(entry))
        found = unhandled(self._log, self._dataflow, entry, now)
        paths = [file.path for file in (*found.files, *found.settling) if below.above(file.path)]
        return self._there(paths[:_LATE_AT_ONCE])

    def _released(self, entry: Entry, state: PathState) -> tuple[SourceFile, ...]:
        """What somebody took out of quarantine. What lies above the watermark is read with all that is new there."""
        definition = self._dataflow.path
        below = at_or_below(definition, state, self._since(entry))
        paths = [one.file.path for one in read_quarantine(self._log, entry).released]
        return self._there([path for path in paths if definition.tracking == "set" or below.above(path)])

    def _there(self, paths: Sequence[str]) -> tuple[SourceFile, ...]:
        there = look(self._place, paths) if paths else {}
        return tuple(there[path] for path in paths if path in there)

    def _since(self, entry: Entry | None) -> PathState | None:
        return PathState.of(deserialise(entry.since)) if entry and entry.since else None

    def peek(self, entry: Entry | None, now: datetime, budget: Budget, resume: str | None) -> Listing:
        """Look for what the next run would load within a budget, to see whether one is worth asking for."""
        definition, state = self._dataflow.path, self._state(entry)
        start = position(definition, state, now, self._since(entry))
        listing = list_above(self._place, start, self._dataflow.files.endings, budget=budget, resume=resume)
        files = listing.found.files
        if entry is not None and definition.tracking == "set":
            known = self._known(entry, [file.path for file in files])
            files = tuple(file for file in files if file.path not in known)
        files = ready(definition, files, now)
        if entry is not None:
            released = (one for one in self._released(entry, state) if not settles(definition, one, now))
            files = in_pair_order([*files, *released])
        return replace(listing, found=replace(listing.found, files=files))

    def carried(self, text: str, now: datetime, last: Entry | None) -> str:
        """All of it: a path means the same files."""
        return text

    def up_to(self, watermark: Watermark, above: Entry | None) -> list[SourceFile]:
        """The files that the source holds at or below a watermark, and above an entry's: what a decision passes over."""
        definition, state = self._dataflow.path, self._state(above)
        start = self._since(above) if state.status == "initial" else state
        by_set = definition.tracking == "set"  # which has no order: whatever is there
        reached = Start() if by_set else at_or_below(definition, PathState.of(watermark), start)
        return list(list_above(self._place, reached, self._dataflow.files.endings).found.files)

    def _state(self, entry: Entry | None) -> PathState:
        try:
            return PathState.of(entry.state() if entry else None)
        except CorruptWatermark as error:
            raise corrupt(
                f"entry {entry.number if entry else 0} of {self._dataflow.name}", error.message
            ) from error

    def check(self, piece: PathSlice) -> None:
        """Compare size and version of every file with what was listed."""
        check_unchanged(self._place, piece.files)

    @property
    def list_kind(self) -> ListKind:
        """Files."""
        return INGESTED_FILES

    def record(self, piece: PathSlice) -> StoredList:
        """Path, size, version and modification time of each file, and why, where it is passed over."""
        loaded = [(*file.row, None) for file in piece.files]
        passed_over = [(*one.file.row, one.reason) for one in piece.quarantined]
        return StoredList(INGESTED_FILES, [*loaded, *passed_over])

    def restore(self, intent: Intent, stored: StoredList) -> PathSlice:
        """The same files, and the same state after them."""
        files = [(SourceFile(*row), reason) for *row, reason in stored.rows]
        return PathSlice(
            tuple(file for file, reason in files if reason is None),
            deserialise(intent.before),
            deserialise(intent.watermark),
            self._dataflow.path,
            why="late" if intent.why == "late" else "release" if intent.why == "release" else "run",
            quarantined=tuple(Quarantined(file, reason) for file, reason in files if reason is not None),
            replaces=intent.replaces == "own",
        )

    def pin(self, spark: SparkSession, pending: Sequence[PathSlice]) -> str | None:
        """Declared, or inferred from a bounded sample of all files that wait; raises BadFile for one that does not read."""
        files = [file for piece in pending for file in piece.files]
        try:
            pinned = self._reader.pin(spark, files)
        except StrandlineError:
            raise
        except Exception as error:
            bad = bad_file(error, (file.path for file in files))
            if bad is None:
                raise
            raise bad from error
        return pinned.to_text() if pinned else None

    def agree(self, spark: SparkSession, pinned: str) -> None:
        """Compare ``source.schema`` with what was pinned."""
        self._reader.agree(spark, PinnedSchema.of(pinned), self._dataflow.name)

    def read(self, spark: SparkSession, piece: PathSlice | None, pinned: str) -> DataFrame:
        """Read exactly the slice's files.

        Raises:
            SchemaError: where the folders of one name a column that the pinned schema does not have.
            BadFile: that file, where it lies beside the watermark: it must not hold back what is above it; or the first with an
                open quote, or with fields that the pinned schema lacks (``unknown_fields: check``).
        """
        files = piece.files if piece else ()
        for bad in self._bad.misleading(spark, files, PinnedSchema.of(pinned)):
            raise bad
        try:
            return self._rows(spark, files, pinned)
        except SchemaError as error:
            if piece is not None and piece.why != "run" and (found := _with_folder(error, files)):
                raise found from error
            raise

    def _rows(self, spark: SparkSession, files: Sequence[SourceFile], pinned: str) -> DataFrame:
        return self._reader.read(
            spark, files, PinnedSchema.of(pinned), origin=self._dataflow.target.origin_columns
        )

    def blame(self, spark: SparkSession, piece: PathSlice, pinned: str, error: Exception) -> BadFile | None:
        """The file that Spark names, with its line where a record does not parse."""
        bad = bad_file(error, (file.path for file in piece.files))
        if bad is None and "TASK_WRITE_FAILED" in str(error):
            error = self._again(spark, piece, pinned) or error
            bad = bad_file(error, (file.path for file in piece.files))
        if bad is None or bad.code == FILE_VANISHED:
            return bad
        file = next(file for file in piece.files if file.path == bad.path)
        return self._bad.closer(spark, file, PinnedSchema.of(pinned)) or bad

    def _again(self, spark: SparkSession, piece: PathSlice, pinned: str) -> Exception | None:
        """Why reading alone fails. A Connect server loses all but an error's first line where one of its causes has no text."""
        try:
            self._rows(spark, piece.files, pinned).write.format("noop").mode("overwrite").save()
        except Exception as error:  # noqa: BLE001 - it is what was asked for
            return error
        return None

    def holds(self, piece: PathSlice, bad: BadPart) -> bool:
        """Whether the file is of this slice."""
        return any(file.path == bad.part for file in piece.files)

    def before(self, piece: PathSlice, bad: BadPart) -> PathSlice | None:
        """The files before the bad one, in order."""
        count = next((index for index, file in enumerate(piece.files) if file.path == bad.part), 0)
        return piece.take(count) if count else None

    def without(self, piece: PathSlice, bad: BadPart) -> PathSlice | None:
        """The slice that passes over the file, where the policy is quarantine. A file that grows is none of these: it is mended by time."""
        if self._dataflow.on_bad_file == "stop" or bad.code == FILE_CHANGED or not self.holds(piece, bad):
            return None
        return piece.without(bad.part, bad.why)

    def leave_out(self, piece: PathSlice, parts: Collection[str]) -> PathSlice | None:
        """Without these files: what lies beside the watermark is found again, whatever was loaded since."""
        return piece.leaving(parts)

    def also_bad(self, spark: SparkSession, piece: PathSlice, pinned: str, bad: BadPart) -> Sequence[BadFile]:
        """All files that are bad in the same way: one by one, each would cost a number and a write."""
        if not isinstance(bad, BadFile):
            return ()
        return self._bad.alike(spark, piece.files, PinnedSchema.of(pinned), bad)

    def quarantine(self, entry: Entry | None, piece: PathSlice) -> tuple[StoredList | None, int]:
        """The files that are in quarantine after the slice."""
        before = read_quarantine(self._log, entry)
        after = before.after([file.path for file in piece.files], piece.quarantined)
        kept = None if after == before else StoredList(QUARANTINED_FILES, after.rows())
        return kept, len(piece.quarantined)

    def prepared(self, df: DataFrame, piece: PathSlice | None) -> DataFrame:
        """Rows carry their file already, where they carry their origin."""
        return df

    def observe(self, df: DataFrame, piece: PathSlice) -> tuple[DataFrame, Observed]:
        """The commit counts the rows, and that is all there is to know."""
        return df, dict

    def load(self, piece: PathSlice, replaces: Replaces | None, df: DataFrame) -> Load:
        """Append, or replace the rows of the same files, also of those that it passes over: released, they add theirs."""
        if replaces is None:
            return Append()
        of_files = Among(SOURCE_FILE, tuple(file.path for file in piece.all_files))
        return Replace(of_files) if replaces == "own" else ReplaceAll()

    def covers(self, state: str, other: str) -> bool:
        """Compare the last file, or that of every open partition."""
        mine, theirs = (PathState.of(deserialise(text)) for text in (state, other))
        return mine.covers(theirs, self._dataflow.path.template)

    def size(self, piece: PathSlice) -> Size:
        """Files and bytes."""
        return Size(len(piece.files), piece.size)

    @property
    def pacing(self) -> timedelta:
        """Files need none."""
        return timedelta(0)

    def modified(self, piece: PathSlice) -> int | None:
        """Of the file modified last; what is late or released tells nothing of how far the source is loaded."""
        return max((file.modified for file in piece.all_files), default=None) if piece.why == "run" else None

    def parsed(self, text: str) -> str:
        """``{"path": …}`` or ``{"paths": …}``, as the scope is."""
        name, scope = self._dataflow.name, self._dataflow.path.scope
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

    def told_by_rows(self, table: Table) -> str | None:
        """The largest path that a row came from, with scope partition that of each partition."""
        paths = table.texts(SOURCE_FILE)
        return serialise(adopted(self._dataflow.path, paths)) if paths else None

    def makes_room(self, table: Table) -> bool:
        """A row that tells its file does."""
        return SOURCE_FILE in table.columns()

    def reached(self, entry: Entry, table: Table) -> str:
        """Above all files whose rows may be in the table: another rewind may lie before this one."""
        name, columns = self._dataflow.name, table.columns()
        if SOURCE_FILE not in columns:
            raise ConfigurationError(
                f"dataflow {name}: --replace deletes the rows of each file that is read again: expected a column {SOURCE_FILE} in table"
                f" {self._dataflow.table}, found {', '.join(columns) or 'no table'}. Keep origin_columns (and the column in sql), or reset --replace",
                choices=(f"strandline state reset {name} --replace --reason TEXT",),
            )
        known = {one.path for one in Ingested(self._log, name, entry).all()}
        if entry.era:  # what was loaded before a reset is not known any more, and its rows may be there
            known |= table.texts(SOURCE_FILE)
        return serialise(covering(self._dataflow.path, PathState.of(entry.state()), known))

    def check_rewind(self) -> None:
        """A set has no order."""
        name = self._dataflow.name
        if self._dataflow.path.tracking == "set":
            raise ConfigurationError(
                f"dataflow {name}: expected tracking: watermark, found tracking: set: a set has no order to go back in. Mark single files"
                " for another read, or start anew",
                choices=(
                    f"strandline files unprocess {name} PATH…",
                    f"strandline state reset {name} --replace --reason TEXT",
                ),
            )

    def loaded_before(self, pieces: Sequence[PathSlice], last: Entry | None) -> tuple[int, str]:
        """Files above the watermark that were ingested before; those in quarantine were not."""
        paths = [file.path for piece in pieces if piece.why == "run" for file in piece.files]
        known = self._known(last, paths) if last and paths else set()
        known -= {one.file.path for one in read_quarantine(self._log, last).files}
        return len(known), "file"

    def unread(self, pieces: Sequence[PathSlice]) -> int:
        """Files have no work units; those that are passed over are in quarantine."""
        return 0

    def passed_over(self, piece: PathSlice) -> Sequence[str]:
        """Files go to quarantine, and do not fail."""
        return ()


def _with_folder(error: SchemaError, files: Sequence[SourceFile]) -> BadFile | None:
    """The first file below a folder of the column that an error names."""
    path = next((file.path for file in files if error.field in partition_columns([file.path])), None)
    return BadFile(f"file {path}: {error.message}", path=path, why=error.message) if path else None
