"""What differs between kinds of watermark, as the loop sees it; and the path kind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from partitions.dataflow import Dataflow
from partitions.errors import BadFile, CorruptWatermark, StrandlineError
from partitions.path.plan import plan, position
from partitions.path.slices import PathSlice
from partitions.path.source import SourceFile
from partitions.path.state import PathState
from partitions.plan import Plan, Slice
from partitions.sentinels import deserialise
from resources.listing import Budget, Listing, check_unchanged, list_above
from resources.places import Place
from resources.readers.failures import FILE_VANISHED, bad_file, bad_record, line_of
from resources.readers.files import FilesReader, PinnedSchema
from resources.watermarks.entry import Entry, Intent, corrupt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SliceT = TypeVar("SliceT", bound=Slice)


class Flow(Protocol[SliceT]):
    """A kind of watermark bound to its source."""

    @property
    def calls(self) -> int:
        """LIST calls, or folders opened, so far."""
        ...

    def plan(self, entry: Entry | None, now: datetime) -> Plan[SliceT]:
        """Observe the source and plan above the entry."""
        ...

    def check(self, piece: SliceT) -> None:
        """Raise BadFile where what the slice was planned from has changed."""
        ...

    def record(self, piece: SliceT) -> Sequence[Sequence[Any]]:
        """What must be kept so that exactly this slice can be read again."""
        ...

    def restore(self, intent: Intent, rows: Sequence[Sequence[Any]]) -> SliceT:
        """The slice of an intent."""
        ...

    def pin(self, spark: SparkSession, pending: Sequence[SliceT]) -> str | None:
        """The schema that all slices are read with, as text; None while nothing tells it."""
        ...

    def agree(self, spark: SparkSession, pinned: str) -> None:
        """Raise SchemaError where the definition asks for another schema than the pinned one."""
        ...

    def read(self, spark: SparkSession, piece: SliceT | None, pinned: str) -> DataFrame:
        """The slice's rows; without a slice no rows, of the same schema."""
        ...

    def blame(self, spark: SparkSession, piece: SliceT, pinned: str, error: Exception) -> BadFile | None:
        """The part of the source that made a write fail; None where it is not the source's fault."""
        ...

    def holds(self, piece: SliceT, path: str) -> bool:
        """Whether a bad file is of this slice."""
        ...

    def before(self, piece: SliceT, path: str) -> SliceT | None:
        """The part of a slice before a bad file, in order; None where there is none."""
        ...

    def size(self, piece: SliceT) -> tuple[int, int]:
        """Files and bytes of a slice."""
        ...

    def modified(self, piece: SliceT) -> int | None:
        """When the newest thing of the slice came to be, epoch milliseconds by the source's clock."""
        ...


class PathFlow:
    """The path kind: files above the last committed one."""

    def __init__(self, dataflow: Dataflow, source: Place) -> None:
        """Bind a dataflow to the root of its files."""
        self._dataflow = dataflow
        self._place = source
        self._reader = FilesReader(source, dataflow.source)
        self._calls = 0

    @property
    def calls(self) -> int:
        """LIST calls, or folders opened, so far."""
        return self._calls

    def plan(self, entry: Entry | None, now: datetime) -> Plan[PathSlice]:
        """List above the watermark, in full, and cut slices."""
        state = self._state(entry)
        definition = self._dataflow.watermark
        listing = list_above(self._place, position(definition, state, now), self._dataflow.source.endings)
        self._calls += listing.found.calls
        return plan(
            definition,
            state,
            listing.found,
            now,
            dataflow=self._dataflow.name,
            number=entry.number if entry else 0,
        )

    def peek(self, entry: Entry | None, now: datetime, budget: Budget, resume: str | None) -> Listing:
        """Look above the watermark within a budget, to see whether a run is worth asking for."""
        state = self._state(entry)
        start = position(self._dataflow.watermark, state, now)
        return list_above(self._place, start, self._dataflow.source.endings, budget=budget, resume=resume)

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

    def record(self, piece: PathSlice) -> Sequence[Sequence[Any]]:
        """Path, size, version and modification time of each file."""
        return [(file.path, file.size, file.version, file.modified) for file in piece.files]

    def restore(self, intent: Intent, rows: Sequence[Sequence[Any]]) -> PathSlice:
        """The same files, and the same state after them."""
        files = tuple(SourceFile(*row) for row in rows)
        return PathSlice(
            files, deserialise(intent.before), deserialise(intent.watermark), self._dataflow.watermark
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
        """Read exactly the slice's files."""
        files = piece.files if piece else ()
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
        try:
            record = self._reader.bad_record(spark, file, PinnedSchema.of(pinned))
        except Exception:  # noqa: BLE001 - looking closer is a courtesy; the file is known already
            return bad
        return bad if record is None else bad_record(bad, record, line_of(self._place, file.path, record))

    def _again(self, spark: SparkSession, piece: PathSlice, pinned: str) -> Exception | None:
        """Why reading alone fails. A Connect server loses all but an error's first line where one of its causes has no text."""
        try:
            self.read(spark, piece, pinned).write.format("noop").mode("overwrite").save()
        except Exception as error:  # noqa: BLE001 - it is what was asked for
            return error
        return None

    def holds(self, piece: PathSlice, path: str) -> bool:
        """Whether the file is of this slice."""
        return any(file.path == path for file in piece.files)

    def before(self, piece: PathSlice, path: str) -> PathSlice | None:
        """The files before the bad one."""
        count = next((index for index, file in enumerate(piece.files) if file.path == path), 0)
        return piece.take(count) if count else None

    def size(self, piece: PathSlice) -> tuple[int, int]:
        """Files and bytes."""
        return len(piece.files), piece.size

    def modified(self, piece: PathSlice) -> int | None:
        """Of the file modified last."""
        return max(file.modified for file in piece.files)
