"""The window kind: windows x units, each with a high of its own (spec 03)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import (
    BadPart,
    BadUnits,
    ConfigurationError,
    CorruptWatermark,
    SourceError,
    StrandlineError,
)
from partitions.instants import milliseconds
from partitions.intervals import difference, union
from partitions.load import Append, Load, Replace, ReplaceAll
from partitions.path.source import SourceFile
from partitions.plan import Plan
from partitions.predicate import EVERYTHING
from partitions.request import DUE, Request
from partitions.sentinels import Watermark, deserialise, serialise
from partitions.window.carrying import carried_over
from partitions.window.covering import covering
from partitions.window.plan import AHEAD, plan
from partitions.window.slices import FailedUnit, Old, WindowSlice, WorkUnit
from partitions.window.state import LeftOut, Run, WindowState
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.kinds.window_failing import bad_units, failing
from resources.kinds.window_observed import observe
from resources.kinds.window_rows import WindowColumns
from resources.loop.flow import Observed, Size
from resources.readers.failures import cause
from resources.spark import EngineLost
from resources.spark_process import engine_lost
from resources.tables.table import Table
from resources.watermarks.entry import Entry, Intent, Replaces, corrupt
from resources.watermarks.lists import ListKind, StoredList
from resources.watermarks.work_units import WORK_UNITS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BYTES_PER_ROW = 100
"""A guess, to choose between two ways to run a small query."""


@dataclass
class WindowFlow(ABC):
    """Windows x units; what differs between sources is in the classes below it.

    Attributes:
        dataflow: what the user declared.
        units: looks up the identities of all units.
        history: all entries of the log that are left.
    """

    dataflow: Dataflow
    units: Callable[[], tuple[str, ...]]
    history: Callable[[], Iterable[Entry]] = tuple
    _row_size: int | None = field(default=None, init=False)
    _fixed: Any = field(default=None, init=False)
    _highest: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Know which columns tell a row's window and unit."""
        self._columns = WindowColumns.of(self.dataflow)
        self._definition = self.dataflow.window

    @property
    def calls(self) -> int:
        """Nothing is listed to plan windows."""
        return 0

    @property
    def ranged(self) -> bool:
        """Whether the source can be asked for any stretch of time."""
        return True

    @property
    def remarks(self) -> Sequence[str]:
        """Nothing: columns are read as they are."""
        return ()

    @property
    def repeats(self) -> bool:
        """What was read within the grace would be due for ever."""
        return False

    @property
    def one_query(self) -> bool:
        """A condition names the windows."""
        return False

    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[WindowSlice]:
        """Plan on top of the entry; only the units are looked up."""
        state = self.state(entry)
        self.begin()
        self._highest = min(state.highest or 0, milliseconds(now))
        if entry and entry.work_units:
            self._row_size = entry.rows * _BYTES_PER_ROW // entry.work_units
        made = plan(
            self._definition,
            state,
            self.units(),
            now,
            dataflow=self.dataflow.name,
            number=entry.number if entry else 0,
            whole=self._columns.tagged and self._replaces(entry),
            ranged=self.ranged,
            request=request,
            since=self._since(state, now),
        )
        if entry is None or entry.replace_until is None:
            return made
        return replace(made, slices=tuple(replace(piece, makes_room=True) for piece in made.slices))

    def _since(self, state: WindowState, now: datetime) -> int | None:
        """Where a clock that ran ahead has begun to load windows before their time; None where none did, or the state says it already."""
        limit = milliseconds(now) + AHEAD
        found = state.loaded_after(limit)
        known = all(
            not difference(
                sorted(run[:2] for run in runs), union(sorted(run[:2] for run in state.early.get(unit, ())))
            )
            for unit, runs in found.items()
        )
        if known:
            return None
        # The first that ran ahead knows what time it was, unless its machine did not; then the one before it; then how far that had come.
        times: list[int] = []
        for entry in self.history():
            times.insert(0, milliseconds(datetime.fromisoformat(entry.time)))
            highest = self.state(entry).highest or 0
            if highest <= limit:
                times = [*times[1:2], times[0], highest]
                break
        return next((at for at in times[:3] if at <= milliseconds(now)), 0)

    def _replaces(self, entry: Entry | None) -> bool:
        """Whether what is read makes room: where only the window's start tells its rows, that is all of them."""
        rewound = entry is not None and entry.replace_until is not None
        return self.dataflow.target.load != "append" or rewound

    def state(self, entry: Entry | None) -> WindowState:
        """What an entry says is loaded.

        Raises:
            CorruptWatermark: where it is of another form.
        """
        try:
            return WindowState.of(entry.state() if entry else None)
        except CorruptWatermark as error:
            raise corrupt(
                f"entry {entry.number if entry else 0} of {self.dataflow.name}", error.message
            ) from error

    def begin(self) -> None:
        """Forget what an unfinished slice was read from: what is planned now is read anew."""
        self._fixed = None

    @abstractmethod
    def check(self, piece: WindowSlice) -> None:
        """Fix what the slice is read from, or compare it with what was fixed.

        Raises:
            BadPart: some of it is not there, or has changed.
        """

    @abstractmethod
    def rows_of(self, spark: SparkSession, works: Sequence[WorkUnit], pinned: str) -> DataFrame:
        """Exactly the rows of some work units; none for none.

        Raises:
            SourceError: where the source refuses, or does not answer.
        """

    @abstractmethod
    def failure(self, error: Exception) -> Exception | None:
        """What an error says of the source, where a read of it failed while its rows were written; None where it says nothing."""

    @property
    def list_kind(self) -> ListKind:
        """Work units."""
        return WORK_UNITS

    def record(self, piece: WindowSlice) -> StoredList:
        """Each work unit, with the error if it is passed over; and what is read, when it was planned, and what was deferred."""
        head = {
            "read_from": self._fixed,
            "at": piece.at,
            "deferred": list(map(list, piece.left_out)),
            "early": list(map(list, piece.early)),
            "old": list(map(list, piece.old)),
        }
        loaded = [[*one, None] for one in piece.works]
        failed = [[*one.work, one.error] for one in piece.failed]
        return StoredList(WORK_UNITS, [*loaded, *failed], head)

    def restore(self, intent: Intent, stored: StoredList) -> WindowSlice:
        """The same work units, read from the same. Its definition is the one that the slice was made with."""
        self._fixed = stored.head["read_from"]
        works = [(WorkUnit(*row), error) for *row, error in stored.rows]
        entry = self._definition.time_entry
        return WindowSlice(
            tuple(one for one, error in works if error is None),
            self._definition.zone,
            self._definition.default_grid.text,
            entry.name if entry else WindowSlice.name,
            stored.head["at"],
            failed=tuple(FailedUnit(one, error) for one, error in works if error is not None),
            left_out=tuple(LeftOut(*one) for one in stored.head["deferred"]),
            early=tuple(LeftOut(*one) for one in stored.head["early"]),
            old=tuple(Old(*one) for one in stored.head["old"]),
            makes_room=intent.replaces == "own",
        )

    @abstractmethod
    def pin(self, spark: SparkSession, pending: Sequence[WindowSlice]) -> str | None:
        """The schema that all slices are read with, as text; None while nothing tells it."""

    @abstractmethod
    def agree(self, spark: SparkSession, pinned: str) -> None:
        """Raise SchemaError where the source or the definition has another schema than the pinned one."""

    def read(self, spark: SparkSession, piece: WindowSlice | None, pinned: str) -> DataFrame:
        """The rows of the slice's work units.

        Raises:
            BadUnits: where the source refuses some of them before it is read.
        """
        works, tagged = piece.works if piece else (), self._columns.tagged
        try:
            rows = (
                self.tagged_rows_of(spark, works, pinned)
                if tagged and works
                else self.rows_of(spark, works, pinned)
            )
        except SourceError as error:  # a database may look at values before it is asked for rows
            bad = None if error.transient else self._refused(spark, works, pinned)
            if bad is None:
                raise
            raise bad from error
        return self._columns.tag(rows, None) if tagged and not works else self._columns.latest(rows)

    def tagged_rows_of(self, spark: SparkSession, works: Sequence[WorkUnit], pinned: str) -> DataFrame:
        """The rows of at least one work unit, with what tells it."""
        found: DataFrame | None = None
        for one in works:
            rows = self._columns.tag(self.rows_of(spark, (one,), pinned), one)
            found = rows if found is None else found.unionByName(rows)
        if found is None:
            raise AssertionError("no work units")
        return found

    def _refused(self, spark: SparkSession, works: Sequence[WorkUnit], pinned: str) -> BadUnits | None:
        """The work units whose query the source refuses; None where it takes each by itself."""
        refused: dict[WorkUnit, str] = {}
        for one in works:
            try:
                self.rows_of(spark, (one,), pinned)
            except SourceError as error:
                if error.transient:
                    raise
                refused[one] = error.message
        return self._bad(refused) if refused else None

    def prepared(self, df: DataFrame, piece: WindowSlice | None) -> DataFrame:
        """Rows must still tell their window and unit after the user's step."""
        self._columns.check(df)
        return df

    def blame(
        self, spark: SparkSession, piece: WindowSlice, pinned: str, error: Exception
    ) -> BadUnits | None:
        """Read alone, halving what fails, until each work unit that does is known.

        Raises:
            SourceError: where the source as a whole does not answer: no work unit is to blame then.
        """
        found = failing(piece.works, lambda works: self._fails(spark, works, pinned))
        return self._bad(found) if found else None

    def _fails(self, spark: SparkSession, works: Sequence[WorkUnit], pinned: str) -> str | None:
        try:
            piece = WindowSlice(tuple(works), self._definition.zone)
            self.read(spark, piece, pinned).write.format("noop").mode("overwrite").save()
        except StrandlineError as error:
            if error.transient:
                raise
            return error.why if isinstance(error, BadPart) else error.message
        except Exception as error:
            if lost := engine_lost(error):
                doing = "looking for the work units that cannot be read"
                raise EngineLost.of(self.dataflow.name, doing, lost) from error
            of_source = self.failure(error)
            if isinstance(of_source, StrandlineError) and of_source.transient:
                raise of_source from error
            return of_source.message if isinstance(of_source, StrandlineError) else cause(error)
        return None

    def _bad(self, found: Mapping[WorkUnit, str]) -> BadUnits:
        return bad_units(found, self._definition.zone)

    def holds(self, piece: WindowSlice, bad: BadPart) -> bool:
        """Whether one of them is of this slice."""
        return isinstance(bad, BadUnits) and any(one.key in bad.units for one in piece.works)

    def before(self, piece: WindowSlice, bad: BadPart) -> WindowSlice | None:
        """A work unit stands for itself: none is before another."""
        return None

    def without(self, piece: WindowSlice, bad: BadPart) -> WindowSlice | None:
        """The slice that passes over them, and says so in its entry."""
        if not isinstance(bad, BadUnits) or not self.holds(piece, bad):
            return None
        return piece.without(
            [FailedUnit(one, bad.units[one.key]) for one in piece.works if one.key in bad.units]
        )

    def also_bad(
        self, spark: SparkSession, piece: WindowSlice, pinned: str, bad: BadPart
    ) -> Sequence[BadPart]:
        """All that failed were looked for at once."""
        return ()

    def quarantine(self, entry: Entry | None, piece: WindowSlice) -> tuple[None, int]:
        """No file is set aside."""
        return None, 0

    def observe(self, df: DataFrame, piece: WindowSlice) -> tuple[DataFrame, Observed]:
        """Rows, and whether they changed, of each work unit."""
        return observe(df, piece.works, lambda one: sql(self._columns.where((one,), df), SPARK))

    def load(self, piece: WindowSlice, replaces: Replaces | None, df: DataFrame) -> Load:
        """Replace exactly what was read, if the target replaces by watermark or somebody forces it; else append."""
        if replaces == "table":
            return ReplaceAll()
        if (replaces is None and not self.dataflow.target.replace_by_watermark) or not piece.works:
            return Append()
        where = self._columns.where(piece.works, df, piece.old)
        return ReplaceAll() if where == EVERYTHING else Replace(where)

    def covers(self, state: str, other: str) -> bool:
        """Compare the highs of all windows."""
        return WindowState.of(deserialise(state)).covers(WindowState.of(deserialise(other)))

    def size(self, piece: WindowSlice) -> Size:
        """Work units; their bytes are guessed from the rows of those that were loaded last."""
        known = None if self._row_size is None else self._row_size * len(piece.works)
        return Size(bytes=known, work_units=len(piece.works), failed_units=len(piece.failed))

    @property
    def pacing(self) -> timedelta:
        """As the user declares; a slice is one work unit then."""
        return self._definition.pacing

    def modified(self, piece: WindowSlice) -> int | None:
        """The end of the newest window that is loaded."""
        ends = [one.end for one in piece.works if one.end is not None]
        return max([*ends, self._highest]) if ends else None

    def parsed(self, text: str) -> str:
        """``{"grid": …, "units": {…}}``."""
        try:
            state = WindowState.of(deserialise(text))
        except CorruptWatermark as error:
            raise ConfigurationError(
                f'dataflow {self.dataflow.name}: expected a watermark such as {{"grid": "daily UTC", "units": {{"{{}}": [[start, high]]}}}} in'
                f" epoch milliseconds, found {text[:200]!r} ({error.message})"
            ) from error
        return serialise(state.watermark())

    def carried(self, text: str, now: datetime, last: Entry | None) -> str:
        """Windows that start where old ones started keep their highs; what waits to be read waits on."""
        state, before = WindowState.of(deserialise(text)), self.state(last) if last else None
        tagged = self._columns.tagged
        return serialise(carried_over(state, self._definition, now, tagged=tagged, before=before).watermark())

    def up_to(self, watermark: Watermark, above: Entry | None) -> Sequence[SourceFile]:
        """No file is passed over."""
        return ()

    def told_by_rows(self, table: Table) -> str | None:
        """A window without rows is loaded like any other, so rows do not tell what is."""
        return None

    def makes_room(self, table: Table) -> bool:
        """Where a slice deletes what it reads."""
        return self.dataflow.target.replace_by_watermark

    def reached(self, entry: Entry, table: Table) -> str:
        """Above all that was ever loaded: rows of windows that another rewind has passed may be in the table."""
        states = [self.state(one) for one in (entry, *self.history())]
        return serialise(covering(states).watermark())

    def check_rewind(self) -> None:  # noqa: B027 - the protocol's: no source refuses it
        """Highs have an order."""

    def loaded_before(self, pieces: Sequence[WindowSlice], last: Entry | None) -> tuple[int, str]:
        """Work units of which something was read before, whatever the windows were then."""
        state = self.state(last)
        again = [
            one
            for piece in pieces
            for one in piece.works
            if _touches(one, state.units.get(one.unit)) or _touches(one, state.stale.get(one.unit))
        ]
        return len(again), "work unit"

    def unread(self, pieces: Sequence[WindowSlice]) -> int:
        """A slice that another run began may have passed over what this one could read."""
        failed: set[tuple[int | None, str]] = set()
        for piece in pieces:
            failed |= {one.work.key for one in piece.failed}
            failed -= {one.key for one in piece.works}
        return len(failed)

    def passed_over(self, piece: WindowSlice) -> Sequence[str]:
        """Each work unit that could not be read, with the reason."""
        return [f"{one.work.label(self._definition.zone)}: {one.error}" for one in piece.failed]


def _touches(one: WorkUnit, runs: Sequence[Run] | None) -> bool:
    if one.lower is None or one.end is None:
        return runs is not None
    return any(run[0] < one.end and one.lower < run[1] for run in runs or ())
