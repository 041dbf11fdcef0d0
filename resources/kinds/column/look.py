"""Look at a source above a column: what is new, how far a run reads, where it cuts (docs/reference/columns.md)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from partitions.column.definition import ColumnWatermark
from partitions.column.plan import check_types, plan, plan_nothing, ranges_to_read, time_limit
from partitions.column.predicates import ColumnRange, replaced_rows, rows_in_ranges
from partitions.column.slices import ColumnSlice
from partitions.column.source import SourceObservation
from partitions.column.source_set_back import check_highest, check_identity, source_behind_error
from partitions.column.state import ColumnState, ReadBound
from partitions.column.writers import AwaitedTransactions
from partitions.dataflow import Dataflow
from partitions.errors import PlanError
from partitions.plan import Plan
from partitions.predicate import AllOf, Among, Between, Predicate, any_of
from partitions.replay.chunk_slice import chunk_slice, is_done
from partitions.request import Replay
from partitions.sentinels import deserialise
from partitions.target import Target
from partitions.unit_values import ValueType, value_type_of
from resources.kinds.column.open_transactions import OpenTransactions
from resources.kinds.state_of_entry import state_of
from resources.sources.source import (
    PARTS,
    FetchesRows,
    LooksOnce,
    ReadsAbove,
    TellsChanges,
    TellsCuts,
    at_version,
)
from resources.watermarks.entry import Entry

T = TypeVar("T")

_OPEN: tuple[ValueType, ...] = ("whole", "number", "text")
"""What a column holds whose highest value must be looked up: no clock bounds it."""

_LOOK_SECONDS = 10.0
"""What a look for new rows may take: a sensor looks every minute, and ``list`` answers people."""


@dataclass(frozen=True)
class ColumnLook:
    """Looks at one source.

    Attributes:
        dataflow: what the user declared.
        above: its source, as rows above a watermark are read from it.
        awaited: looks up what the last run has left to open transactions.
    """

    dataflow: Dataflow
    above: ReadsAbove
    awaited: Callable[[], AwaitedTransactions | None] = lambda: None

    @property
    def _definition(self) -> ColumnWatermark:
        return self.dataflow.column

    def plan_replay(self, entry: Entry | None, now: datetime, request: Replay) -> Plan[ColumnSlice]:
        """The chunk, if it holds rows; whoever died with it may have loaded it already."""
        state, number = state_of(ColumnState, self.dataflow, entry), entry.number if entry else 0
        empty_plan = Plan[ColumnSlice](self.dataflow.name, "column", number, now, "")
        if entry is not None and entry.why == "replay" and entry.number > request.since:
            upper = deserialise(entry.upper) if entry.upper else {}
            if entry.reason == request.reason and is_done(request.chunk, upper):
                return replace(empty_plan, why=f"{request.chunk.words} was loaded before")
        version = self.above.observe(self._definition.columns, now).version
        slice_ = chunk_slice(self.dataflow.target, self._definition.columns, state, request, version)
        if slice_ is None:
            return replace(
                empty_plan, why=f"{request.chunk.words} lies above the watermark, and is left to the next run"
            )
        if request.clears or self._has_rows(slice_):
            return replace(empty_plan, why=f"replay of {slice_.words}", slices=(slice_,))
        return replace(empty_plan, why=f"no row has {slice_.words}")

    def plan_due(self, entry: Entry | None, now: datetime) -> Plan[ColumnSlice]:
        """Fix how far a run reads, and cut slices.

        Raises:
            PlanError, NeedsDecision, SourceError: as :meth:`resources.kinds.column.planning.ColumnPlanning.plan`.
        """
        definition, state = self._definition, state_of(ColumnState, self.dataflow, entry)
        seen = self.above.observe(definition.columns, now)
        self._check_source(entry, state, seen, now)
        seen = self._completed(seen, state, fixes=True)
        transactions = OpenTransactions(self.dataflow, self.above, self.awaited)
        seen, awaited = transactions.settled(seen, state)
        until = ColumnState.of(deserialise(entry.replace_until)) if entry and entry.replace_until else None
        ranges = ranges_to_read(definition, state, seen, now, until)
        self._refuse_nulls(seen.nulls, at_version(self.above, seen.version))
        due_plan = plan(
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
        due_plan = replace(due_plan, snapshot=seen.snapshot, awaited=awaited)
        # A slice that replaces what it reads is also loaded empty: its rows may be gone at the source.
        if any(deletes(slice_, self.dataflow.target) or self._has_rows(slice_) for slice_ in due_plan.slices):
            return due_plan
        self._check_rows_are_there(entry, state, seen)
        return plan_nothing(due_plan, definition, state, seen)

    def _check_source(
        self, entry: Entry | None, state: ColumnState, seen: SourceObservation, now: datetime
    ) -> None:
        """Raise NeedsDecision if the source is another one than was read, or its index tells that its rows end below what was read."""
        if not self._watches(entry):
            return
        name, source = self.dataflow.name, self.dataflow.source.label
        check_types(state, seen, name)
        check_identity(name, source, entry.source if entry else None, seen.source, state)
        ranges = ranges_to_read(self._definition, state, seen, now)
        check_highest(name, source, ranges, seen, state)

    def _check_rows_are_there(self, entry: Entry | None, state: ColumnState, seen: SourceObservation) -> None:
        """Raise NeedsDecision if a table of the lake has no row at the watermark or above it; of a database only an index tells that."""
        if seen.version is None or self._definition.looks_back or not self._watches(entry):
            return
        at_or_above_watermark = any_of(Between(name, mark.value, None) for name, mark in state.bounds.items())
        if state.bounds and not at_version(self.above, seen.version).holds_any(at_or_above_watermark):
            raise source_behind_error(self.dataflow.name, self.dataflow.source.label, state)

    def _watches(self, entry: Entry | None) -> bool:
        """Whether rows were read from a source that tells itself from others, and no decision has been about it since."""
        return entry is not None and entry.source is not None and self._definition.on_set_back == "stop"

    def contents(self) -> str:
        """Return what tells the source as it is from what it was, if it says so without being read; else nothing."""
        return self.above.contents() if isinstance(self.above, TellsChanges) else ""

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
        return self.in_one_look(lambda once: once._finds_new_rows(entry, now), _LOOK_SECONDS)

    def _finds_new_rows(self, entry: Entry | None, now: datetime) -> bool:
        definition = self._definition.model_copy(update={"backward": None, "boundary": "exclusive"})
        state = state_of(ColumnState, self.dataflow, entry)
        seen = self.above.observe(definition.columns, now)
        self._check_source(entry, state, seen, now)
        seen = self._completed(seen, state)
        ranges = ranges_to_read(definition, state, seen, now)
        due_plan = plan(definition, state, ranges, seen, now, dataflow=self.dataflow.name, number=0)
        if any(self._has_rows(slice_) for slice_ in due_plan.slices):
            return True
        self._check_rows_are_there(entry, state, seen)
        return False

    def in_one_look(self, ask: Callable[[ColumnLook], T], seconds: float | None = None) -> T:
        """Return what ``ask`` finds out with the source as of one moment, over one connection if the source needs some."""
        if not isinstance(self.above, LooksOnce):
            return ask(self)
        return self.above.in_one_look(lambda above: ask(replace(self, above=above)), seconds)

    @property
    def _parts(self) -> int:
        """Parts of a full slice that are read at the same time."""
        return 1 if isinstance(self.above, FetchesRows) else PARTS

    def _completed(
        self, seen: SourceObservation, state: ColumnState, *, fixes: bool = False
    ) -> SourceObservation:
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
            and (seen.kinds.get(name) in _OPEN or (fixes and self.dataflow.has_step and name in seen.kinds))
        ]
        above = at_version(self.above, seen.version)
        highest = {
            name: above.highest(name, rows_above(name, state, time_limit(self._definition, name, seen)))
            for name in open_
        }
        return replace(seen, maxima={**seen.maxima, **highest})

    def _with_kinds(
        self, source: FetchesRows, seen: SourceObservation, state: ColumnState
    ) -> SourceObservation:
        """The look, with what each column holds that no declared schema tells: as its stored value, or else as some rows have it."""
        columns = [name for name in self._definition.columns if name not in seen.kinds]
        stored = {name: value_type_of(state.bounds[name].value) for name in columns if name in state.bounds}
        rest = [name for name in columns if stored.get(name) is None]
        rows = source.look_at(rest) if rest else {}
        kinds: dict[str, ValueType] = {**seen.kinds}
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

    def with_kinds(self, seen: SourceObservation) -> Mapping[str, ValueType]:
        """Return what each column holds, as the source tells it; of one that fetches its rows as some of them have it."""
        above = self.above
        return (
            self._with_kinds(above, seen, ColumnState()).kinds
            if isinstance(above, FetchesRows)
            else seen.kinds
        )

    def _cuts(self, ranges: Sequence[ColumnRange], state: ColumnState, above: ReadsAbove) -> Sequence[Any]:
        """Where parts end: all of what a look-back reads again, and as many above the watermark as a run may read."""
        if len(ranges) != 1 or ranges[0].is_empty or not isinstance(above, TellsCuts):
            return ()
        (range_,) = ranges
        limits = self._definition.checkpoint, self._definition.max_slices
        rows, most = max(1, limits[0].interval_rows // self._parts), (limits[1] + 1) * self._parts
        again: list[Any] = []
        stored = state.bounds.get(range_.column)
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

    def _has_rows(self, slice_: ColumnSlice) -> bool:
        """Whether the source has a row that makes a slice worth reading."""
        return at_version(self.above, slice_.version).holds_any(self._sought(slice_))

    def _sought(self, slice_: ColumnSlice) -> Predicate:
        """The rows that make a slice worth reading: with a value, if NULL is not read by every run.

        How far a column goes that only fetched rows tell is not known yet.
        """
        sought = slice_ if self._definition.nulls == "read" else replace(slice_, reads_nulls=False)
        return sought.rows_to_fetch if isinstance(self.above, FetchesRows) else sought.rows

    def _refuse_nulls(self, null_count: int | None, above: ReadsAbove) -> None:
        if self._definition.nulls != "fail" or null_count == 0:
            return
        if null_count or above.holds_any(_without_value(self._definition.columns)):
            raise PlanError(
                f"dataflow {self.dataflow.name}: expected a value in {', '.join(self._definition.columns)} of each row (nulls: fail),"
                f" found {null_count if null_count else 'at least one'} without. Correct them at the source, or set nulls to first or skip"
            )


def deletes(slice_: ColumnSlice, target: Target) -> bool:
    """Return whether a slice deletes rows of the table: those that it replaces, or those that it reads again by the definition."""
    # before any column has a stored value nothing that a slice reads is in the table
    return slice_.replaces or (target.replace_by_watermark and replaced_rows(slice_.ranges) is not None)


def rows_above(column: str, state: ColumnState, limit: ReadBound | None) -> Predicate:
    """The rows above the stored value of a column, or at it if it was not read itself, and up to a limit; without either all rows."""
    mark = state.bounds.get(column)
    lower, upper = mark.value if mark else None, limit.value if limit else None
    begins_at = mark is not None and not mark.inclusive
    return rows_in_ranges([ColumnRange(column, lower, upper, begins_at, limit is None or limit.inclusive)])


def _without_value(columns: Sequence[str]) -> Predicate:
    return AllOf(tuple(Among(name, (None,)) for name in columns))
