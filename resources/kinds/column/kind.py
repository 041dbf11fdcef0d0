"""The column kind: rows above the highest value that was read of one or several columns (docs/guide-columns.md)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from typing_extensions import override

from partitions.column.definition import TRANSACTIONS, ColumnWatermark
from partitions.column.plan import bounds, check_types, nothing_new, plan, time_limit, upper_bound
from partitions.column.predicates import Range, cut, replaced_rows, rows_in
from partitions.column.set_back import behind, check_highest, check_identity
from partitions.column.slices import ColumnSlice
from partitions.column.source import Observed
from partitions.column.state import ColumnState, Mark, next_state
from partitions.column.writers import (
    Awaited,
    Untold,
    Writers,
    before_oldest,
    has_waiting_times,
    up_to_settled,
)
from partitions.dataflow import Dataflow
from partitions.errors import BadPart, ConfigurationError, PlanError, SourceError
from partitions.instants import milliseconds
from partitions.load import ByValue, Lacking, Load, ReplaceKeys, load_into
from partitions.plan import Plan
from partitions.predicate import NOTHING, AllOf, Among, Between, Predicate, any_of
from partitions.replay.reading import chunk_slice, is_done, later_rows
from partitions.request import DUE, Forced, LateOnly, Replay, Request
from partitions.sentinels import Watermark, deserialise, serialise
from partitions.unit_values import TIMES, Kind, kind_of_value
from resources.kinds import kind as contract
from resources.kinds.kind import ROWS, SliceBase, StatsReader, WriteStats
from resources.kinds.state_of_entry import state_of
from resources.observation import observed
from resources.sources.highest import as_value, highest_value
from resources.sources.source import (
    PARTS,
    FetchesRows,
    HasRemarks,
    HasVersions,
    LooksOnce,
    PinsRows,
    ReadsAbove,
    TellsChanges,
    TellsCuts,
    TellsFailures,
    TellsLacking,
    TellsWriters,
    at_version,
)
from resources.spark.frames import observed_rows
from resources.sql import quoted
from resources.watermarks.column_ranges import COLUMN_RANGES
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.lists import ListKind, StoredList

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from resources.tables.contract.table import Table

T = TypeVar("T")

_OPEN: tuple[Kind, ...] = ("whole", "number", "text")
"""What a column holds whose highest value must be looked up: no clock bounds it."""

_PATIENCE, _PAUSE = 2.0, 0.05
"""Seconds that a plan waits for the transactions that were open when it looked, and between two looks: most take milliseconds."""

_ANNOUNCED = 0.1
"""Seconds after which a transaction is among those that a database tells: its time is taken a moment before."""

_LOOK_SECONDS = 10.0
"""What a look for new rows may take: a sensor looks every minute, and ``list`` answers people."""


@dataclass(frozen=True)
class ColumnKind(
    contract.Kind[ColumnSlice], contract.TellsLacking[ColumnSlice], contract.WatchesRows[ColumnSlice]
):
    """Rows above the values that were read.

    Attributes:
        dataflow: what the user declared.
        rows: its source.
        above: the same source, as rows above a watermark are read from it.
        awaited: looks up what the last run has left to open transactions.
        WITHOUT: the key of the statistics of rows without a value; no column has this name.
    """

    replans_after_load: ClassVar[bool] = False
    """A run reads up to bounds that are fixed once; what comes later is the next run's."""
    one_query: ClassVar[bool] = False
    """Bounds stand in the query."""
    pacing: ClassVar[timedelta] = timedelta(0)

    WITHOUT: ClassVar[str] = ""

    dataflow: Dataflow
    rows: PinsRows
    above: ReadsAbove
    awaited: Callable[[], Awaited | None] = lambda: None

    @property
    def _definition(self) -> ColumnWatermark:
        return self.dataflow.column

    @property
    def remarks(self) -> Sequence[str]:
        """What the source has to say; the plan says the rest."""
        return self.rows.remarks if isinstance(self.rows, HasRemarks) else ()

    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[ColumnSlice]:
        """Look at the source, fix the bounds, and cut slices.

        Raises:
            ConfigurationError: something else than what is due is asked for.
            PlanError: a column cannot have a watermark, or has NULLs and must not.
            NeedsDecision: code ``source_replaced`` or ``source_behind``: the source was set back.
            SourceError: the source refuses, or does not answer.
        """
        number = entry.number if entry else 0
        if isinstance(request, LateOnly):
            return Plan(self.dataflow.name, "column", number, now, "no row of a column watermark is late")
        if isinstance(request, Forced):
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: expected a run of what is due, found a forced one; a column watermark has no windows"
            )
        if isinstance(request, Replay):
            return self._in_one_look(lambda kind: kind._plan_replay(entry, now, request))
        return self._in_one_look(lambda kind: kind._plan_due(entry, now))

    def _plan_replay(self, entry: Entry | None, now: datetime, request: Replay) -> Plan[ColumnSlice]:
        """The chunk, if it holds rows; whoever died with it may have loaded it already."""
        state, number = state_of(ColumnState, self.dataflow, entry), entry.number if entry else 0
        made = Plan[ColumnSlice](self.dataflow.name, "column", number, now, "")
        if entry is not None and entry.why == "replay" and entry.number > request.since:
            upper = deserialise(entry.upper) if entry.upper else {}
            if entry.reason == request.reason and is_done(request.chunk, upper):
                return replace(made, why=f"{request.chunk.words} was loaded before")
        version = self.above.observe(self._definition.columns, now).version
        slice_ = chunk_slice(self.dataflow.target, self._definition.columns, state, request, version)
        if slice_ is None:
            return replace(
                made, why=f"{request.chunk.words} lies above the watermark, and is left to the next run"
            )
        if request.clears or at_version(self.above, version).holds_any(self._sought(slice_)):
            return replace(made, why=f"replay of {slice_.words}", slices=(slice_,))
        return replace(made, why=f"no row has {slice_.words}")

    def _plan_due(self, entry: Entry | None, now: datetime) -> Plan[ColumnSlice]:
        definition, state = self._definition, state_of(ColumnState, self.dataflow, entry)
        seen = self.above.observe(definition.columns, now)
        self._check_source(entry, state, seen, now)
        seen = self._completed(seen, state, fixes=True)
        seen, awaited = self._settled(seen, state)
        until = ColumnState.of(deserialise(entry.replace_until)) if entry and entry.replace_until else None
        ranges = bounds(definition, state, seen, now, until)
        self._refuse_nulls(seen.nulls, at_version(self.above, seen.version))
        made = plan(
            definition,
            state,
            ranges,
            seen,
            now,
            dataflow=self.dataflow.name,
            number=entry.number if entry else 0,
            cuts=self._cuts(ranges, state, at_version(self.above, seen.version)),
            parts=self._parts,
            replace_until=until,
        )
        made = replace(made, look=seen.look, awaited=awaited)
        if self._holds_rows(made) and made.slices:
            return made
        self._check_rows_are_there(entry, state, seen)
        return nothing_new(made, definition, state, seen)

    def _check_source(self, entry: Entry | None, state: ColumnState, seen: Observed, now: datetime) -> None:
        """Raise NeedsDecision if the source is another one than was read, or its index tells that its rows end below what was read."""
        if not self._watches(entry):
            return
        name, source = self.dataflow.name, self.dataflow.source.shown
        check_types(state, seen, name)
        check_identity(name, source, entry.source if entry else None, seen.source, state)
        ranges = bounds(self._definition, state, seen, now)
        check_highest(name, source, ranges, seen, state)

    def _check_rows_are_there(self, entry: Entry | None, state: ColumnState, seen: Observed) -> None:
        """Raise NeedsDecision if a table of the lake has no row at the watermark or above it; of a database only an index tells that."""
        if seen.version is None or self._definition.looks_back or not self._watches(entry):
            return
        there = any_of(Between(name, mark.value, None) for name, mark in state.marks.items())
        if state.marks and not at_version(self.above, seen.version).holds_any(there):
            raise behind(self.dataflow.name, self.dataflow.source.shown, state)

    def _watches(self, entry: Entry | None) -> bool:
        """Whether rows were read from a source that tells itself from others, and no decision has been about it since."""
        return entry is not None and entry.source is not None and self._definition.on_set_back == "stop"

    def has_new_rows(self, entry: Entry | None, now: datetime) -> bool:
        """Return whether rows lie above the stored values, or a rewind is still to replace some; what a look-back would read again does not count.

        Raises:
            PlanError, SourceError, NeedsDecision: as :meth:`plan`.
            SourceUnreachable: the look would scan for long, and was ended.
        """
        if entry is not None and entry.replace_until is not None:
            return True
        if isinstance(self.above, TellsChanges):
            return self.above.has_changed(now)
        return self._in_one_look(lambda kind: kind._finds_new_rows(entry, now), _LOOK_SECONDS)

    def _finds_new_rows(self, entry: Entry | None, now: datetime) -> bool:
        definition = self._definition.model_copy(update={"backward": None, "boundary": "exclusive"})
        state = state_of(ColumnState, self.dataflow, entry)
        seen = self.above.observe(definition.columns, now)
        self._check_source(entry, state, seen, now)
        seen = self._completed(seen, state)
        ranges = bounds(definition, state, seen, now)
        made = plan(definition, state, ranges, seen, now, dataflow=self.dataflow.name, number=0)
        if any(
            at_version(self.above, slice_.version).holds_any(self._sought(slice_)) for slice_ in made.slices
        ):
            return True
        self._check_rows_are_there(entry, state, seen)
        return False

    def _in_one_look(self, ask: Callable[[ColumnKind], T], seconds: float | None = None) -> T:
        """Return what ``ask`` finds out with the source as of one moment, over one connection if the source needs some."""
        if not isinstance(self.above, LooksOnce):
            return ask(self)
        return self.above.in_one_look(lambda above: ask(replace(self, above=above)), seconds)

    def contents(self) -> str:
        """Return what tells the source as it is from what it was, if it says so without being read; else nothing."""
        return self.above.contents() if isinstance(self.above, TellsChanges) else ""

    @property
    def _has_step(self) -> bool:
        """Whether a step of the user may drop rows that were read, so that the rows that are written do not tell how far a run came."""
        return bool(self.dataflow.sql or self.dataflow.transform)

    @property
    def _parts(self) -> int:
        """Parts of a full slice that are read at the same time."""
        return 1 if isinstance(self.above, FetchesRows) else PARTS

    def _completed(self, seen: Observed, state: ColumnState, *, fixes: bool = False) -> Observed:
        """The look, with the highest value above the stored one of each column that neither time nor an index bounds.

        Of a source that fetches its rows only these tell it, once they are fetched.

        Args:
            seen: the look.
            state: what is read so far.
            fixes: whether the bounds are stored. If a step of the user follows they become the watermark, and time alone must not bound
                them: rows that reach the source later, with values below now, would lie below it.
        """
        if isinstance(self.above, FetchesRows):
            seen = self._with_kinds(self.above, seen, state)
            check_types(state, seen, self.dataflow.name)
            return seen
        check_types(state, seen, self.dataflow.name)
        open_ = [
            name
            for name in self._definition.columns
            if name not in seen.maxima
            and (seen.kinds.get(name) in _OPEN or (fixes and self._has_step and name in seen.kinds))
        ]
        above = at_version(self.above, seen.version)
        found = {
            name: above.highest(name, _above(name, state, time_limit(self._definition, name, seen)))
            for name in open_
        }
        return replace(seen, maxima={**seen.maxima, **found})

    def _settled(self, seen: Observed, state: ColumnState) -> tuple[Observed, Awaited | None]:
        """The look, with each column bounded by what no open transaction can still write, and what the next run may read once some have ended.

        Transactions are looked up after the highest values: whoever has taken a lower number since has a lock. A short wait lets most end.

        Raises:
            PlanError: the source does not tell its transactions, and the definition wants it.
        """
        definition = self._definition
        if not definition.waits_for_transactions or not isinstance(self.above, TellsWriters):
            return seen, None
        if not self._new_bounds(seen, state) and definition.settle is None:
            return seen, None
        if any(seen.kinds.get(name) in TIMES and _is_fresh(seen, name) for name in definition.columns):
            time.sleep(_ANNOUNCED)
        first = self.above.writers(definition.columns)
        if isinstance(first, Untold):
            return self._untold(seen, first), None
        seen = before_oldest(seen, first)
        waits = {name: first.oldest_words for name in definition.columns if has_waiting_times(seen, name)}
        seen = replace(seen, waits=waits)
        limits = self._new_bounds(seen, state)
        later, deadline = first, time.monotonic() + _PATIENCE
        while any(later.still_open(first, seen.kinds.get(name)) for name in limits):
            if time.monotonic() > deadline:
                break
            time.sleep(_PAUSE)
            again = self.above.writers(definition.columns)
            later = again if isinstance(again, Writers) else later
        return up_to_settled(seen, limits, state, (first, later), self.awaited())

    def _new_bounds(self, seen: Observed, state: ColumnState) -> Mapping[str, Mark]:
        """How far each column would be read that may have new values."""
        limits = {name: upper_bound(self._definition, name, seen) for name in self._definition.columns}
        return {
            name: limit
            for name, limit in limits.items()
            if limit is not None
            and not ((stored := state.marks.get(name)) is not None and stored.covers(limit))
        }

    def _untold(self, seen: Observed, untold: Untold) -> Observed:
        """The look, with a warning that rows may come late; none of a database that never tells."""
        remedy = "let rows settle by time (`settle: PT5M`), or look back (`backward: {by: 1000}` of numbers, `{hours: 1}` of times) with merge_keys"
        why = f"{self.dataflow.source.shown} does not tell its open transactions: {untold.why}"
        if self._definition.settle == TRANSACTIONS:
            raise PlanError(
                f"dataflow {self.dataflow.name}: watermark.settle: expected a source that tells its open transactions, found that {why}. Instead {remedy}"
            )
        if untold.always:
            return seen
        warning = f"rows that are committed late may be missed: {why}. {remedy[0].upper()}{remedy[1:]}"
        return replace(seen, warnings=(*seen.warnings, warning))

    def _with_kinds(self, source: FetchesRows, seen: Observed, state: ColumnState) -> Observed:
        """The look, with what each column holds that no declared schema tells: as its stored value, or else as some rows have it."""
        columns = [name for name in self._definition.columns if name not in seen.kinds]
        stored = {name: kind_of_value(state.marks[name].value) for name in columns if name in state.marks}
        rest = [name for name in columns if stored.get(name) is None]
        rows = source.look_at(rest) if rest else {}
        kinds: dict[str, Kind] = {**seen.kinds}
        for name in columns:
            if (kind := stored.get(name) or rows.get(name)) is not None:
                kinds[name] = kind
        # Without any value nothing tells what a column holds, and nothing is read.
        empty = [name for name in rest if name in rows and rows[name] is None]
        return replace(
            seen,
            kinds={**kinds, **dict.fromkeys(empty, "text")},
            maxima={**seen.maxima, **dict.fromkeys(empty)},
        )

    def with_kinds(self, seen: Observed) -> Mapping[str, Kind]:
        """Return what each column holds, as the source tells it; of one that fetches its rows as some of them have it."""
        above = self.above
        return (
            self._with_kinds(above, seen, ColumnState()).kinds
            if isinstance(above, FetchesRows)
            else seen.kinds
        )

    def _cuts(self, ranges: Sequence[Range], state: ColumnState, above: ReadsAbove) -> Sequence[Any]:
        """Where parts end: all of what a look-back reads again, and as many above the watermark as a run may read."""
        if len(ranges) != 1 or ranges[0].is_empty or not isinstance(above, TellsCuts):
            return ()
        (range_,) = ranges
        limits = self._definition.checkpoint, self._definition.max_slices
        rows, most = max(1, limits[0].interval_rows // self._parts), (limits[1] + 1) * self._parts
        again: list[Any] = []
        stored = state.marks.get(range_.column)
        below = replace(range_, upper=stored.value, upper_inclusive=stored.inclusive) if stored else None
        if (
            below is not None
            and below.lower is not None
            and not below.is_empty
            and below.lower != below.upper
        ):
            again += above.cuts(below, rows, sys.maxsize)
        rest = replace(range_, lower=again[-1], lower_inclusive=False) if again else range_
        return [*again, *above.cuts(rest, rows, most)]

    def _holds_rows(self, made: Plan[ColumnSlice]) -> bool:
        """Whether a plan reads anything. A slice that replaces what it reads is also loaded empty: its rows may be gone at the source."""
        for slice_ in made.slices:
            if self._deletes(slice_) or at_version(self.above, slice_.version).holds_any(
                self._sought(slice_)
            ):
                return True
        return not made.slices

    def _sought(self, slice_: ColumnSlice) -> Predicate:
        """The rows that make a slice worth reading: with a value, if NULL is not read by every run.

        How far a column goes that only fetched rows tell is not known yet.
        """
        sought = slice_ if self._definition.nulls == "read" else replace(slice_, reads_nulls=False)
        return sought.rows_to_fetch if isinstance(self.above, FetchesRows) else sought.rows

    def _deletes(self, slice_: ColumnSlice) -> bool:
        return slice_.replaces or self._replaces_what_is_read(slice_)

    def _replaces_what_is_read(self, slice_: ColumnSlice) -> bool:
        """Whether rows that a slice reads may be in the table already, by the definition: not before any column has a stored value."""
        return self.dataflow.target.replace_by_watermark and replaced_rows(slice_.ranges) is not None

    def _refuse_nulls(self, known: int | None, above: ReadsAbove) -> None:
        if self._definition.nulls != "fail" or known == 0:
            return
        if known or above.holds_any(_without_value(self._definition.columns)):
            raise PlanError(
                f"dataflow {self.dataflow.name}: expected a value in {', '.join(self._definition.columns)} of each row (nulls: fail),"
                f" found {known if known else 'at least one'} without. Correct them at the source, or set nulls to first or skip"
            )

    def covers(self, state: str, other: str) -> bool:
        """Compare each column."""
        return ColumnState.of(deserialise(state)).covers(ColumnState.of(deserialise(other)))

    @override
    def modified(self, slice_: ColumnSlice, before: Watermark, now: datetime) -> int | None:
        """The upper bound, of columns that hold a time; what is read again tells nothing of how far the source is loaded."""
        if not slice_.saves:
            return None
        times = [_milliseconds(range_.upper, self.dataflow) for range_ in slice_.ranges]
        return max((time for time in times if time is not None), default=None)

    @override
    def lacking(self, spark: SparkSession, slice_: ColumnSlice, pinned: str) -> Sequence[Lacking]:
        """Return what the source tells of the rows that were read last."""
        return self.rows.lacking(spark, pinned) if isinstance(self.rows, TellsLacking) else ()

    @property
    def list_kind(self) -> ListKind:
        """Ranges of columns."""
        return COLUMN_RANGES

    def slice_to_rows(self, slice_: ColumnSlice) -> StoredList:
        """Bounds, and where the read is cut."""
        rows = [
            [
                range_.column,
                serialise({"lower": range_.lower, "upper": range_.upper}),
                range_.lower_inclusive,
                range_.upper_inclusive,
            ]
            for range_ in slice_.ranges
        ]
        head = {
            "version": slice_.version,
            "reads_nulls": slice_.reads_nulls,
            "cuts": serialise({"cuts": list(slice_.cuts)}),
        }
        return StoredList(COLUMN_RANGES, rows, head)

    def slice_from_rows(self, intent: Intent, stored: StoredList) -> ColumnSlice:
        """The same bounds, read from the same version."""
        ranges = []
        for column, text, lower_inclusive, upper_inclusive in stored.rows:
            values = deserialise(text)
            ranges.append(Range(column, values["lower"], values["upper"], lower_inclusive, upper_inclusive))
        return ColumnSlice(
            deserialise(intent.before),
            tuple(ranges),
            stored.head["reads_nulls"],
            replaces=intent.replaces == "own",
            why="replay" if intent.why == "replay" else "run",
            version=stored.head["version"],
            cuts=tuple(deserialise(stored.head["cuts"])["cuts"]),
        )

    @override
    def pin(self, spark: SparkSession, pending: Sequence[ColumnSlice]) -> str | None:
        """What the source says of its columns."""
        return self.rows.pin(spark)

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Compare the source's columns with what was pinned."""
        self.rows.check_schema(spark, pinned, self.dataflow.name)

    @override
    def fix(self, slice_: ColumnSlice, base: SliceBase) -> ColumnSlice:
        """The bounds are fixed with the plan, and so is the version; but for columns of which only the fetched rows tell how far they go.

        Raises:
            SourceError: the source refuses, or does not answer; or no row has a value any more, so that no state would tell that those
                without one were read.
        """
        open_ = [
            range_.column for range_ in slice_.ranges if range_.upper is None or self._saves_bound_of(slice_)
        ]
        if not open_ or not isinstance(self.above, FetchesRows):
            return slice_
        highest = self.above.fetched_up_to(slice_.rows_to_fetch, open_)
        before = ColumnState.of(slice_.before)
        fixed = tuple(
            _up_to(range_, highest[range_.column], before.marks.get(range_.column))
            if range_.column in highest
            else range_
            for range_ in slice_.ranges
        )
        if not any(range_.is_bounded for range_ in fixed):
            raise SourceError(
                f"dataflow {self.dataflow.name}: expected a row with a value in {', '.join(self._definition.columns)}, as a look has found just"
                " before, found none any more. Nothing was begun; the next run looks again"
            )
        return replace(slice_, ranges=fixed)

    def _saves_bound_of(self, slice_: ColumnSlice) -> bool:
        """Whether the bounds of a slice become the watermark only because a step of the user follows: not those that the source was told."""
        is_due = slice_.why == "run" and not slice_.replaces
        return is_due and self._has_step and not self.dataflow.source.saves_bound

    def read(self, spark: SparkSession, slice_: ColumnSlice | None, pinned: str) -> DataFrame:
        """The rows between the bounds, in parts of about the same size; of those that replace others, with all that are deleted."""
        parts = _parts(slice_) if slice_ is not None else ()
        return at_version(self.above, slice_.version if slice_ else None).read_rows(spark, parts, pinned)

    @override
    def load(self, slice_: ColumnSlice, rows: DataFrame) -> Load:
        """As the target says; exactly what was read goes after a rewind that replaces, or if the target replaces by watermark."""
        order = tuple(ByValue(name) for name in self._definition.columns)
        again = slice_.why == "replay"  # what runs have loaded since is later
        load = load_into(self.dataflow.target, self._replaced(slice_), order, guard=order if again else ())
        return replace(load, later=later_rows(slice_)) if again and isinstance(load, ReplaceKeys) else load

    def _replaced(self, slice_: ColumnSlice) -> Predicate:
        """The rows that the slice deletes, whatever their keys."""
        if not self._deletes(slice_):
            return NOTHING
        return slice_.rows if slice_.replaces else slice_.rows_with_value

    def check_rows(self, rows: DataFrame) -> None:
        """Rows must still have the watermark's columns after the user's step.

        Raises:
            ConfigurationError: code ``query``.
        """
        missing = [name for name in self._definition.columns if name not in rows.columns]
        if missing:
            step = "transform" if self.dataflow.transform else "sql" if self.dataflow.sql else None
            after = f"; after `{step}` there" if step else "; there"
            remedy = "Keep" if step else "Correct watermark.columns:"
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: expected rows with the watermark's columns {', '.join(self._definition.columns)}{after}"
                f" are {', '.join(rows.columns)}. {remedy} {', '.join(missing)}",
                code="query",
            )

    @override
    def observe(self, rows: DataFrame, slice_: ColumnSlice) -> tuple[DataFrame, StatsReader]:
        """The highest value of each column, and how many rows have none."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        observation, columns = Observation(), self._definition.columns
        types = dict(rows.dtypes)
        asked = [highest_value(name, types[name]).alias(f"v{number}") for number, name in enumerate(columns)]
        without = F.expr(" AND ".join(f"{quoted(name)} IS NULL" for name in columns))

        def stats() -> WriteStats:
            answer = observed(observation)
            if not answer:
                return {}
            values = [as_value(answer[f"v{number}"], types[name]) for number, name in enumerate(columns)]
            by_column: dict[Any, Sequence[Any]] = {
                name: (value,) for name, value in zip(columns, values, strict=True)
            }
            return by_column | {self.WITHOUT: (answer["without"],), ROWS: (answer["rows"],)}

        asked += [F.count(F.when(without, 1)).alias("without"), F.count(F.lit(1)).alias("rows")]
        return observed_rows(rows, observation, *asked), stats

    def state_after(self, intent: Intent, stats: WriteStats, table: Table) -> str:
        """The highest value that was written, and never more than the bound; behind a step of the user's, the bound. So of a chunk.

        Of a write that nobody saw the table tells it.
        """
        if self.dataflow.source.saves_bound or self._has_step or intent.why == "replay":
            return intent.watermark
        stats = stats or self._written_times(intent, table)
        without = stats[self.WITHOUT][0] if stats else 0
        written = {name: value[0] for name, value in stats.items() if name != self.WITHOUT}
        has_values = any(value is not None for value in written.values())
        # Rows without a value are read once if the state is not empty any more, unless each run reads them.
        once = without and not has_values and self._definition.nulls != "read"
        if not stats or once:
            return intent.watermark
        before, bounds = deserialise(intent.before), ColumnState.of(deserialise(intent.watermark))
        reached = ColumnState.of(next_state(before, written) or before)
        return serialise(reached.capped(bounds).watermark())

    def _written_times(self, intent: Intent, table: Table) -> WriteStats:
        """What a table tells of a write: the highest times in its range; nothing if there are none. Other bounds were looked up before the read."""
        before, after = (ColumnState.of(deserialise(text)) for text in (intent.before, intent.watermark))
        found: dict[str, Sequence[Any]] = {}
        for name, bound in after.marks.items():
            stored = before.marks.get(name)
            value = bound.value
            if isinstance(value, date):  # or a datetime, which is one
                written = table.highest_values([name], None, _above(name, before, bound))[name]
                value = written if written is not None or stored is None else stored.value
            if value is not None:
                found[name] = (value,)
        return found | {self.WITHOUT: (0,)} if found else {}

    @override
    def find_bad_part(
        self, spark: SparkSession, slice_: ColumnSlice, pinned: str, error: Exception
    ) -> BadPart | None:
        """Return the file that Spark names, or the version that is gone; a range has no other parts. What else the source says is raised.

        Raises:
            SourceError: the source refused, or did not answer.
        """
        of_source = self.rows.failure(error) if isinstance(self.rows, TellsFailures) else None
        if isinstance(of_source, BadPart):
            return of_source
        if isinstance(of_source, SourceError) and not of_source.transient:
            # No run can read the slice before somebody corrects source or definition: its number must not hold that up.
            return BadPart(of_source.message, part=self.dataflow.source.shown, code=of_source.code)
        if of_source is not None:
            raise of_source from None  # Spark's own text may quote the options of a connection
        if slice_.version is not None and isinstance(self.above, HasVersions):
            return self.above.at(slice_.version).find_unreadable(spark, error)
        return None


def _is_fresh(seen: Observed, column: str) -> bool:
    """Whether the highest time is so young that a transaction may have begun before it and not be announced yet; unknown ones may be."""
    highest = seen.maxima.get(column)
    if column in seen.maxima and not isinstance(highest, datetime):
        return False
    if not isinstance(highest, datetime) or highest.tzinfo is None:
        return True
    return seen.now - highest < timedelta(seconds=1)


def _parts(slice_: ColumnSlice) -> Sequence[Predicate]:
    """The rows of a slice, cut where the plan says; those without a value go with the first part."""
    if not slice_.cuts:
        return (slice_.rows,)
    (range_,) = slice_.ranges
    first, *others = cut(range_, slice_.cuts)
    return (replace(slice_, ranges=(first,)).rows, *(part.rows for part in others))


def _above(column: str, state: ColumnState, limit: Mark | None) -> Predicate:
    """The rows above the stored value of a column, or at it if it was not read itself, and up to a limit; without either all rows."""
    mark = state.marks.get(column)
    lower, upper = mark.value if mark else None, limit.value if limit else None
    begins_at = mark is not None and not mark.inclusive
    return rows_in([Range(column, lower, upper, begins_at, limit is None or limit.inclusive)])


def _up_to(range_: Range, highest: Any, stored: Mark | None) -> Range:
    """The range up to the highest value that was fetched; of one that has a bound the lower of both, and never below what is stored."""
    if range_.upper is None:
        return range_.up_to(highest)
    found = Mark(highest) if highest is not None else stored
    if stored is not None and found is not None and stored.covers(found):
        found = stored
    if found is None or found.covers(Mark(range_.upper, range_.upper_inclusive)):
        return range_
    return replace(range_, upper=found.value, upper_inclusive=found.inclusive)


def _without_value(columns: Sequence[str]) -> Predicate:
    return AllOf(tuple(Among(name, (None,)) for name in columns))


def _milliseconds(value: Any, dataflow: Dataflow) -> int | None:
    if isinstance(value, datetime):
        return milliseconds(value if value.tzinfo else value.replace(tzinfo=dataflow.zone))
    if isinstance(value, date):
        return milliseconds(datetime(value.year, value.month, value.day, tzinfo=dataflow.zone))
    return None
