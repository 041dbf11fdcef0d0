"""A look at a source above a column: what is new, how far a run reads, where it cuts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from partitions.column.definition import ColumnWatermark
from partitions.column.open_transactions import AwaitedTransactions
from partitions.column.plan import check_types, plan, plan_nothing, ranges_to_read, time_limit
from partitions.column.predicates import ColumnRange, replaced_rows, rows_in_ranges
from partitions.column.slices import ColumnSlice
from partitions.column.source import SourceObservation
from partitions.column.source_set_back import check_highest, check_identity, source_behind_error
from partitions.column.state import ColumnState, ReadBound
from partitions.dataflow import Dataflow
from partitions.errors import PlanError
from partitions.plan import Plan, pluralize
from partitions.predicate import AllOf, Among, Between, Predicate, any_of
from partitions.reconcile.repair import RepairedRanges
from partitions.replay.chunk_slice import chunk_slice, is_done
from partitions.request import Repair, Replay
from partitions.sentinels import deserialise
from partitions.target import Target
from partitions.unit_values import ValueType, value_type_of
from resources.kinds.column.open_transactions import OpenTransactions
from resources.kinds.repairs import check_base
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

_UNBOUNDED_TYPES: tuple[ValueType, ...] = ("whole", "number", "text")
"""The types of columns whose highest value must be looked up, since no clock bounds it."""

_LOOK_SECONDS = 10.0
"""The seconds that a look for new rows may take: a sensor looks every minute, and ``list`` answers people."""


@dataclass(frozen=True)
class ColumnLook:
    """Looks at one source of rows.

    Attributes:
        dataflow: the definition.
        above: the source, as a reader of rows above a watermark.
        awaited: returns the values that the last run left to open transactions.
    """

    dataflow: Dataflow
    above: ReadsAbove
    awaited: Callable[[], AwaitedTransactions | None] = lambda: None

    @property
    def _definition(self) -> ColumnWatermark:
        return self.dataflow.column

    def plan_replay(self, entry: Entry | None, now: datetime, request: Replay) -> Plan[ColumnSlice]:
        """Plan a chunk, if it holds rows and a run that died has not loaded it already."""
        state, number = state_of(ColumnState, self.dataflow, entry), entry.number if entry else 0
        empty_plan = Plan[ColumnSlice](self.dataflow.name, "column", number, now, "")
        if entry is not None and entry.why == "replay" and entry.number > request.since:
            upper = deserialise(entry.upper) if entry.upper else {}
            if entry.reason == request.reason and is_done(request.chunk, upper):
                return replace(empty_plan, why=f"{request.chunk.words} was already loaded")
        version = self.above.observe(self._definition.columns, now).version
        slice_ = chunk_slice(self.dataflow.target, self._definition.columns, state, request, version)
        if slice_ is None:
            return replace(
                empty_plan, why=f"{request.chunk.words} lies above the watermark; the next run reads it"
            )
        if request.clears or self._has_rows(slice_):
            return replace(empty_plan, why=f"replay of {slice_.words}", slices=(slice_,))
        return replace(empty_plan, why=f"no row has {slice_.words}")

    def plan_repair(self, entry: Entry | None, now: datetime, request: Repair) -> Plan[ColumnSlice]:
        """Plan a repair as one slice, on the entry that it builds on."""
        check_base(self.dataflow.name, entry, request)
        state = state_of(ColumnState, self.dataflow, entry)
        slice_ = ColumnSlice(
            state.watermark(),
            (),
            replaces=isinstance(request.repaired, RepairedRanges),
            version=self.above.observe(self._definition.columns, now).version,
            why="reconcile",
            saves=False,
            repairs=request.repaired,
        )
        why = f"repair of {slice_.words}"
        return Plan(self.dataflow.name, "column", request.number, now, why, slices=(slice_,))

    def plan_due(self, entry: Entry | None, now: datetime) -> Plan[ColumnSlice]:
        """Fix how far a run reads, and cut slices.

        Raises:
            PlanError, NeedsDecision, SourceError: as
                :meth:`resources.kinds.column.planning.ColumnPlanning.plan`.
        """
        definition, state = self._definition, state_of(ColumnState, self.dataflow, entry)
        observed = self.above.observe(definition.columns, now)
        self._check_source(entry, state, observed, now)
        observed = self._with_highest_values(observed, state, fixes=True)
        transactions = OpenTransactions(self.dataflow, self.above, self.awaited)
        observed, awaited = transactions.settle(observed, state)
        until = ColumnState.of(deserialise(entry.replace_until)) if entry and entry.replace_until else None
        ranges = ranges_to_read(definition, state, observed, now, until)
        self._refuse_nulls(observed.nulls, at_version(self.above, observed.version))
        due_plan = plan(
            definition,
            state,
            ranges,
            observed,
            now,
            dataflow=self.dataflow.name,
            state_number=entry.number if entry else 0,
            cuts=self._cuts(ranges, state, at_version(self.above, observed.version)),
            parts=self._parts,
            replace_until=until,
        )
        due_plan = replace(due_plan, snapshot=observed.snapshot, awaited=awaited)
        # A slice that replaces what it reads is also loaded empty: its rows may be gone at the source.
        if any(deletes(slice_, self.dataflow.target) or self._has_rows(slice_) for slice_ in due_plan.slices):
            return due_plan
        self._check_rows_exist(entry, state, observed)
        return plan_nothing(due_plan, definition, state, observed)

    def _check_source(
        self, entry: Entry | None, state: ColumnState, observed: SourceObservation, now: datetime
    ) -> None:
        """Raise NeedsDecision if the source was replaced, or its index ends below the rows read before."""
        if not self._watches(entry):
            return
        name, source = self.dataflow.name, self.dataflow.source.label
        check_types(state, observed, name)
        check_identity(name, source, entry.source if entry else None, observed.source, state)
        ranges = ranges_to_read(self._definition, state, observed, now)
        check_highest(name, source, ranges, observed, state)

    def _check_rows_exist(self, entry: Entry | None, state: ColumnState, observed: SourceObservation) -> None:
        """Raise NeedsDecision if a lake table has no row at or above the watermark.

        A database would have to scan for that unless it has an index.
        """
        if observed.version is None or self._definition.looks_back or not self._watches(entry):
            return
        at_or_above_watermark = any_of(Between(name, mark.value, None) for name, mark in state.bounds.items())
        if state.bounds and not at_version(self.above, observed.version).holds_any(at_or_above_watermark):
            raise source_behind_error(self.dataflow.name, self.dataflow.source.label, state)

    def _watches(self, entry: Entry | None) -> bool:
        """Return whether the source has an identity on record, and must not be set back."""
        return entry is not None and entry.source is not None and self._definition.on_set_back == "stop"

    def contents(self) -> str:
        """Return a text that changes with the source's rows; "" if only a read shows changes."""
        return self.above.contents() if isinstance(self.above, TellsChanges) else ""

    def has_new_rows(self, entry: Entry | None, now: datetime) -> bool:
        """Return whether rows lie above the stored values, or a rewind still has rows to replace.

        Rows that only a look-back would read again do not count.

        Raises:
            PlanError, SourceError, NeedsDecision: as :meth:`plan_due`.
            SourceUnreachable: the look would have scanned for too long.
        """
        if entry is not None and entry.replace_until is not None:
            return True
        if isinstance(self.above, TellsChanges):
            return self.above.has_changed(now)
        return self.in_one_look(lambda once: once._finds_new_rows(entry, now), _LOOK_SECONDS)

    def _finds_new_rows(self, entry: Entry | None, now: datetime) -> bool:
        definition = self._definition.model_copy(update={"backward": None, "boundary": "exclusive"})
        state = state_of(ColumnState, self.dataflow, entry)
        observed = self.above.observe(definition.columns, now)
        self._check_source(entry, state, observed, now)
        observed = self._with_highest_values(observed, state)
        ranges = ranges_to_read(definition, state, observed, now)
        due_plan = plan(definition, state, ranges, observed, now, dataflow=self.dataflow.name, state_number=0)
        if any(self._has_rows(slice_) for slice_ in due_plan.slices):
            return True
        self._check_rows_exist(entry, state, observed)
        return False

    def in_one_look(self, query: Callable[[ColumnLook], T], seconds: float | None = None) -> T:
        """Return the result of ``query``; the source answers it as of one moment, over one connection."""
        if not isinstance(self.above, LooksOnce):
            return query(self)
        return self.above.in_one_look(lambda above: query(replace(self, above=above)), seconds)

    @property
    def _parts(self) -> int:
        """The number of parts of a full slice that are read at the same time."""
        return 1 if isinstance(self.above, FetchesRows) else PARTS

    def _with_highest_values(
        self, observed: SourceObservation, state: ColumnState, *, fixes: bool = False
    ) -> SourceObservation:
        """Add the highest new value of each column that neither time nor an index bounds.

        A source that must fetch its rows shows these values only after the fetch.

        Args:
            observed: what the look has observed so far.
            state: the loaded state.
            fixes: whether the bounds are stored. If a step of the user follows, they become the watermark.
                Time alone must not bound them then: rows that arrive later with values below now would lie
                below the watermark.
        """
        if isinstance(self.above, FetchesRows):
            observed = self._with_data_types(self.above, observed, state)
            check_types(state, observed, self.dataflow.name)
            return observed
        check_types(state, observed, self.dataflow.name)
        unbounded = [
            name
            for name in self._definition.columns
            if name not in observed.maxima
            and (
                observed.kinds.get(name) in _UNBOUNDED_TYPES
                or (fixes and self.dataflow.has_step and name in observed.kinds)
            )
        ]
        above = at_version(self.above, observed.version)
        highest = {
            name: above.highest(name, rows_above(name, state, time_limit(self._definition, name, observed)))
            for name in unbounded
        }
        return replace(observed, maxima={**observed.maxima, **highest})

    def _with_data_types(
        self, source: FetchesRows, observed: SourceObservation, state: ColumnState
    ) -> SourceObservation:
        """Add the data type of columns without a declared one: their stored value's, or that of some rows."""
        columns = [name for name in self._definition.columns if name not in observed.kinds]
        stored = {name: value_type_of(state.bounds[name].value) for name in columns if name in state.bounds}
        rest = [name for name in columns if stored.get(name) is None]
        rows = source.look_at(rest) if rest else {}
        kinds: dict[str, ValueType] = {**observed.kinds}
        for name in columns:
            if (kind := stored.get(name) or rows.get(name)) is not None:
                kinds[name] = kind
        # Without any value nothing tells what a column holds, and nothing is read.
        empty = [name for name in rest if name in rows and rows[name] is None]
        return replace(
            observed,
            kinds={**kinds, **dict.fromkeys(empty, "text")},
            maxima={**observed.maxima, **dict.fromkeys(empty)},
        )

    def data_types(self, observed: SourceObservation) -> Mapping[str, ValueType]:
        """Return the data type of each column; for a source that fetches its rows, as some rows show it."""
        above = self.above
        return (
            self._with_data_types(above, observed, ColumnState()).kinds
            if isinstance(above, FetchesRows)
            else observed.kinds
        )

    def _cuts(self, ranges: Sequence[ColumnRange], state: ColumnState, above: ReadsAbove) -> Sequence[Any]:
        """Return the values at which parts end, for the look-back and for the new rows of one run."""
        if len(ranges) != 1 or ranges[0].is_empty or not isinstance(above, TellsCuts):
            return ()
        (range_,) = ranges
        limits = self._definition.checkpoint, self._definition.max_slices
        rows, max_cuts = max(1, limits[0].interval_rows // self._parts), (limits[1] + 1) * self._parts
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
        return [*again, *above.cuts(rest, rows, max_cuts)]

    def _has_rows(self, slice_: ColumnSlice) -> bool:
        """Return whether the source has a row that makes a slice worth reading."""
        return at_version(self.above, slice_.version).holds_any(self._rows_worth_reading(slice_))

    def _rows_worth_reading(self, slice_: ColumnSlice) -> Predicate:
        """Return the predicate of the rows that make a slice worth reading.

        Rows without a value count only if every run reads NULL. How far a column goes that only fetched
        rows show is not known yet.
        """
        sought = slice_ if self._definition.nulls == "read" else replace(slice_, reads_nulls=False)
        return sought.rows_to_fetch if isinstance(self.above, FetchesRows) else sought.rows

    def _refuse_nulls(self, null_count: int | None, above: ReadsAbove) -> None:
        if self._definition.nulls != "fail" or null_count == 0:
            return
        if null_count or above.holds_any(_without_value(self._definition.columns)):
            raise PlanError(
                f"dataflow {self.dataflow.name}: expected a value in {', '.join(self._definition.columns)} of "
                f"each row (nulls: fail), found {pluralize(null_count, 'row') if null_count else 'at least one row'} without a value. "
                "Correct the rows at the source, or set nulls to first or skip"
            )


def deletes(slice_: ColumnSlice, target: Target) -> bool:
    """Return whether a slice deletes rows of the table that it replaces or reads again."""
    # before any column has a stored value nothing that a slice reads is in the table
    return slice_.replaces or (target.replace_by_watermark and replaced_rows(slice_.ranges) is not None)


def rows_above(column: str, state: ColumnState, limit: ReadBound | None) -> Predicate:
    """Return the rows above a column's stored value and up to a limit; all rows without either.

    If the stored value itself was not read, its rows are included.
    """
    mark = state.bounds.get(column)
    lower, upper = mark.value if mark else None, limit.value if limit else None
    begins_at = mark is not None and not mark.inclusive
    return rows_in_ranges([ColumnRange(column, lower, upper, begins_at, limit is None or limit.inclusive)])


def _without_value(columns: Sequence[str]) -> Predicate:
    return AllOf(tuple(Among(name, (None,)) for name in columns))
