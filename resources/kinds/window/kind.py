"""The window kind: windows x units, each with a high watermark of its own (docs/guide-windows.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import BadPart, BadUnits, SourceError, StrandlineError
from partitions.instants import milliseconds
from partitions.loads import Append, ByValue, Lacking, Load, Order, Replace, ReplaceAll, load_into
from partitions.plan import Plan
from partitions.predicate import EVERYTHING, NOTHING, Predicate
from partitions.request import DUE, Request
from partitions.sentinels import Watermark, deserialise
from partitions.window.definition import WindowWatermark
from partitions.window.early import began_ahead
from partitions.window.plan import plan
from partitions.window.slices import WindowSlice, files_of
from partitions.window.state import WindowState, highest_of
from partitions.window.work_outcomes import DeferredUnits
from partitions.window.work_unit import FailedUnit, Old, WorkUnit
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.kinds.contract.bad_parts import BadParts
from resources.kinds.contract.planning import Planning
from resources.kinds.contract.reading import Reading, SliceBase
from resources.kinds.contract.stored_slices import StoredSlices
from resources.kinds.contract.writing import StatsReader, WriteStats, Writing
from resources.kinds.state_of_entry import state_of
from resources.kinds.window.columns import WindowColumns
from resources.kinds.window.failures import bad_units, failing
from resources.kinds.window.observed_changes import observe
from resources.kinds.window.sources import AskedWindows, FolderWindows, NumberedWindows, WindowSource
from resources.kinds.window.stream_completeness import Waits
from resources.spark.errors import EngineLost
from resources.spark.failures import cause
from resources.spark.process import engine_lost
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.lists import SEEN_WORK_UNITS, ListKind, StoredList
from resources.watermarks.work_units import WORK_UNITS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class WindowKind(
    Planning[WindowSlice],
    StoredSlices[WindowSlice],
    Reading[WindowSlice],
    Writing[WindowSlice],
    BadParts[WindowSlice],
):
    """Windows x units.

    Attributes:
        dataflow: what the user declared.
        source: as windows x units read it.
        units: looks up the identities of all units.
        history: all entries of the log that are left.
        waits: looks up what windows wait for; None if they wait for nothing.
    """

    replans_after_load: ClassVar[bool] = False
    """What was read within the grace would be due for ever."""

    dataflow: Dataflow
    source: WindowSource
    units: Callable[[], tuple[str, ...]]
    history: Callable[[], Iterable[Entry]] = tuple
    waits: Callable[[], Waits | None] = lambda: None

    @cached_property
    def _columns(self) -> WindowColumns:
        """Which columns tell a row's window and unit."""
        return WindowColumns.of(self.dataflow)

    @property
    def _definition(self) -> WindowWatermark:
        return self.dataflow.window

    @property
    def remarks(self) -> Sequence[str]:
        """What the source has to say."""
        return self.source.remarks

    @property
    def one_query(self) -> bool:
        """Of folders files are what slices differ in; else a condition names the windows."""
        return self._columns.tagged and isinstance(self.source, FolderWindows)

    def columns(self, pinned: str) -> StructType | None:
        """Return the columns of the files, and those that tell a row's window and unit."""
        file_columns = self.source.columns(pinned) if isinstance(self.source, FolderWindows) else None
        return None if file_columns is None else self._columns.tagging(file_columns)

    @property
    def pacing(self) -> timedelta:
        """As the user declares; a slice is one work unit then."""
        return self._definition.pacing

    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[WindowSlice]:
        """Plan on top of the entry; only the units are looked up."""
        state = state_of(WindowState, self.dataflow, entry)
        rewound = entry is not None and entry.replace_until is not None
        deletes = self.dataflow.target.replace_by_watermark or rewound
        waits = self.waits()
        planned = plan(
            self._definition.up_to(waits.reached) if waits else self._definition,
            state,
            self.units(),
            now,
            dataflow=self.dataflow.name,
            number=entry.number if entry else 0,
            # If only the window's start tells its rows, what is deleted is all of them.
            whole=self._columns.tagged and deletes,
            ranged=self.source.ranged,
            request=request,
            since=began_ahead(state, now, self._highs()),
        )
        if waits is not None:
            planned = replace(planned, why=f"{planned.why}; {waits.in_words}")
        if isinstance(self.source, FolderWindows):
            works = [work for slice_ in planned.slices for work in slice_.works]
            planned = replace(planned, skips=(*planned.skips, *self.source.empty_windows(works)))
        if not rewound:
            return planned
        return replace(planned, slices=tuple(replace(slice_, makes_room=True) for slice_ in planned.slices))

    def _highs(self) -> Iterator[tuple[int, int]]:
        """Of each entry, the newest first: its time, and the highest high of its state."""
        for entry in self.history():
            time = milliseconds(datetime.fromisoformat(entry.time))
            yield time, state_of(WindowState, self.dataflow, entry).highest or 0

    def covers(self, state: str, other: str) -> bool:
        """Compare the high watermarks of all windows."""
        return WindowState.of(deserialise(state)).covers(WindowState.of(deserialise(other)))

    def modified(self, slice_: WindowSlice, before: Watermark, now: datetime) -> int | None:
        """The end of the newest window that is loaded."""
        ends = [work.end for work in slice_.works if work.end is not None]
        return max([*ends, min(highest_of(before) or 0, milliseconds(now))]) if ends else None

    @property
    def list_kind(self) -> ListKind:
        """Work units."""
        return WORK_UNITS

    def to_rows(self, slice_: WindowSlice) -> StoredList:
        """Each work unit, with the error if it is passed over; and what is read, when it was planned, and what was deferred."""
        head: dict[str, Any] = {
            "read_from": slice_.version,
            "at": slice_.at,
            "deferred": list(map(list, slice_.deferred)),
            "early": list(map(list, slice_.early)),
            "old": list(map(list, slice_.old)),
        }
        if slice_.files is not None:
            head["files"] = [[list(file.row) for file in slice_.files[work.key]] for work in slice_.works]
        loaded = [[*work, None] for work in slice_.works]
        failed = [[*unit.work, unit.error] for unit in slice_.failed]
        return StoredList(WORK_UNITS, [*loaded, *failed], head)

    def from_rows(self, intent: Intent, stored: StoredList) -> WindowSlice:
        """The same work units, read from the same. Its definition is the one that the slice was made with."""
        rows = [(WorkUnit(*row), error) for *row, error in stored.rows]
        works = tuple(work for work, error in rows if error is None)
        time, listed = self._definition.time_entry, stored.head.get("files")
        return WindowSlice(
            works,
            self._definition.zone,
            self._definition.default_grid.text,
            time.name if time else WindowSlice.name,
            stored.head["at"],
            failed=tuple(FailedUnit(work, error) for work, error in rows if error is not None),
            deferred=tuple(DeferredUnits(*each) for each in stored.head["deferred"]),
            early=tuple(DeferredUnits(*each) for each in stored.head["early"]),
            old=tuple(Old(*each) for each in stored.head["old"]),
            makes_room=intent.replaces == "own",
            version=stored.head["read_from"],
            files=None if listed is None else files_of(works, listed),
            why="replay" if intent.why == "replay" else "run",
        )

    def pin(self, spark: SparkSession, pending: Sequence[WindowSlice]) -> str | None:
        """As the source says."""
        return self.source.pin(spark, pending)

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Compare the source's columns with what was pinned."""
        self.source.check_schema(spark, pinned)

    def at_one_version(self, slices: Sequence[WindowSlice]) -> list[WindowSlice]:
        """The slices of a plan read one version of a table."""
        return self.source.at_one_version(slices) if isinstance(self.source, AskedWindows) else list(slices)

    @override
    def fix(self, slice_: WindowSlice, base: SliceBase) -> WindowSlice:
        """List the folders that were not listed yet; what is asked for by a query is fixed with the plan."""
        return self.source.fix(slice_) if isinstance(self.source, FolderWindows) else slice_

    def check_unchanged(self, slice_: WindowSlice) -> None:
        """Compare each file with what was listed. A version does not change; whether a database has is unknown."""
        if isinstance(self.source, FolderWindows):
            self.source.check_unchanged(slice_)

    def read(self, spark: SparkSession, slice_: WindowSlice | None, pinned: str) -> DataFrame:
        """The rows of the slice's work units.

        Raises:
            BadUnits: the source refuses some of them before they are read, or would read them otherwise than they are meant.
        """
        source = self.source
        if slice_ and isinstance(source, FolderWindows) and (bad := source.misleading(spark, slice_, pinned)):
            raise self._bad(bad)
        return self._read(spark, slice_, slice_.works if slice_ else (), pinned)

    def _read(
        self, spark: SparkSession, slice_: WindowSlice | None, works: Sequence[WorkUnit], pinned: str
    ) -> DataFrame:
        try:
            rows = self._rows(spark, slice_, works, pinned)
        except SourceError as error:  # a database may look at values before it is asked for rows
            refused = {} if error.transient else self._refused(spark, slice_, works, pinned)
            if not refused:
                raise
            raise self._bad(refused) from error
        return rows if self._columns.tagged and not works else self._columns.latest(rows)

    def _rows(
        self, spark: SparkSession, slice_: WindowSlice | None, works: Sequence[WorkUnit], pinned: str
    ) -> DataFrame:
        """The rows of some work units; with what tells their window and unit, if no column of the source does."""
        if not self._columns.tagged:
            return self.source.read(spark, slice_, works, pinned)
        if not works or slice_ is None:
            return self._columns.tag(self.source.read(spark, slice_, (), pinned), None)
        if isinstance(self.source, NumberedWindows):
            return self.source.read_tagged(spark, works, pinned)
        frames = [self._columns.tag(self.source.read(spark, slice_, (work,), pinned), work) for work in works]
        rows = frames[0]
        for frame in frames[1:]:
            rows = rows.unionByName(frame)
        return rows

    def _refused(
        self, spark: SparkSession, slice_: WindowSlice | None, works: Sequence[WorkUnit], pinned: str
    ) -> Mapping[WorkUnit, str]:
        """The work units whose query the source refuses; none if it takes each by itself."""
        refused: dict[WorkUnit, str] = {}
        for work in works:
            try:
                self.source.read(spark, slice_, (work,), pinned)
            except SourceError as error:
                if error.transient:
                    raise
                refused[work] = error.message
        return refused

    def lacking(self, spark: SparkSession, slice_: WindowSlice, pinned: str) -> Sequence[Lacking]:
        """As the source says."""
        if isinstance(self.source, FolderWindows):
            return self.source.lacking(spark, slice_, pinned)
        return self.source.lacking(spark, pinned)

    def load(self, slice_: WindowSlice, rows: DataFrame) -> Load:
        """As the target says; exactly what was read goes if the target replaces by watermark or the slice is forced.

        A window that is loaded late leaves the rows of later times as they are; not if windows are cut otherwise now, whose starts are earlier.
        """
        if not slice_.works:
            return Append()
        order = self._order
        guard = () if slice_.old else order
        load = load_into(self.dataflow.target, self._replaced(slice_, rows), order, guard)
        return ReplaceAll() if load == Replace(EVERYTHING) else load

    def _replaced(self, slice_: WindowSlice, rows: DataFrame) -> Predicate:
        """The rows that the slice deletes, whatever their keys."""
        target = self.dataflow.target
        if target.load == "overwrite":
            return EVERYTHING
        if slice_.replaces or target.replace_by_watermark:
            return self._columns.where(slice_.works, rows, slice_.old)
        return NOTHING

    @property
    def _order(self) -> Order:
        """Later times are later; without a column with times the windows' starts are."""
        name = self._columns.time
        return (ByValue(name),) if name else ()

    def check_rows(self, rows: DataFrame) -> None:
        """Rows must still tell their window and unit after the user's step."""
        self._columns.check(rows)

    def observe(self, rows: DataFrame, slice_: WindowSlice) -> tuple[DataFrame, StatsReader]:
        """Rows, and whether they changed, of each work unit."""
        return observe(rows, slice_.works, lambda work: sql(self._columns.where((work,), rows), SPARK))

    def stats_to_rows(self, stats: WriteStats) -> StoredList:
        """Rows and digest of each work unit, for the simulator."""
        return StoredList(SEEN_WORK_UNITS, [[*key, *value] for key, value in stats.items()])

    def find(
        self, spark: SparkSession, slice_: WindowSlice, pinned: str, error: Exception
    ) -> BadUnits | None:
        """The work units that the error names; else each is read alone, halving what fails, until all that do are known.

        Raises:
            SourceError: the source as a whole does not answer: no work unit is to blame then.
        """
        of_source = self._failure(error)
        if of_source is not None and of_source.transient:
            raise of_source from None  # Spark's own text may quote the options of a connection
        source, bad = self.source, None
        if isinstance(source, FolderWindows):
            bad = source.named_by(spark, slice_, pinned, error)
        bad = bad or failing(slice_.works, lambda works: self._fails(spark, slice_, works, pinned))
        return self._bad(bad) if bad else None

    def _failure(self, error: Exception) -> StrandlineError | None:
        """What an error says of a source that is asked; of a file Spark names it."""
        return self.source.failure(error) if isinstance(self.source, AskedWindows) else None

    def _fails(
        self, spark: SparkSession, slice_: WindowSlice, works: Sequence[WorkUnit], pinned: str
    ) -> str | None:
        try:
            self._read(spark, slice_, works, pinned).write.format("noop").mode("overwrite").save()
        except StrandlineError as error:
            if error.transient:
                raise
            return error.why if isinstance(error, BadPart) else error.message
        except Exception as error:
            if lost := engine_lost(error):
                doing = "looking for the work units that cannot be read"
                raise EngineLost.of(self.dataflow.name, doing, lost) from error
            of_source = self._failure(error)
            if of_source is not None and of_source.transient:
                raise of_source from None  # as above
            return of_source.message if of_source is not None else cause(error)
        return None

    def _bad(self, works: Mapping[WorkUnit, str]) -> BadUnits:
        return bad_units(works, self._definition.zone)

    def slice_without(self, slice_: WindowSlice, bad: BadPart) -> WindowSlice | None:
        """The slice that passes over them, and says so in its entry."""
        if not isinstance(bad, BadUnits) or not slice_.contains(bad):
            return None
        return slice_.without(
            [FailedUnit(work, bad.units[work.key]) for work in slice_.works if work.key in bad.units]
        )
