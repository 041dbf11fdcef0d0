"""Selects the due work units that a run takes on, if it cannot take on all.

New windows go first, by window; then those with the lowest high. So a backlog drains and no unit starves:
ordered by window alone, windows that grace reads again would fill every run, and nothing new would ever be
read.

Failed work units have their own order, the oldest try first. They get at most half of the slots while
anything else is due: units that always fail have the oldest windows, and would sooner or later fill every
plan.

See docs/reference/windows.md.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple, TypeVar

from partitions.window.due_ranges import DueRange
from partitions.window.reasons import Reason

AnyT = TypeVar("AnyT")


def slots_for_failed(failed_count: int, other_count: int, slots: int, *, turn: bool = True) -> int:
    """Return the number of slots for failed work: half if not all fit, more if other work leaves some.

    Args:
        failed_count: the number of failed items that are due.
        other_count: the number of other due items.
        slots: the number of slots for all work.
        turn: whether a single slot goes to failed work.
    """
    half = slots // 2 or int(turn)
    return min(failed_count, max(half, slots - other_count))


def share_slots(healthy: Sequence[AnyT], failed: Sequence[AnyT], slots: int) -> list[AnyT]:
    """Share slots among failed items and all others, each in its order."""
    failed_slots = slots_for_failed(len(failed), len(healthy), slots)
    return [*healthy[: slots - failed_slots], *failed[:failed_slots]]


class UnitDueRange(NamedTuple):
    """A due range of one unit, with the unit's index in the order of units."""

    due: DueRange
    unit_index: int


Candidate = tuple[int, int, DueRange]
"""A work unit: the index of its window, the index of its unit, and its due range."""


@dataclass(frozen=True)
class PlanBudget:
    """The limits of one plan.

    Attributes:
        slices: the most slices; a work unit that failed more than once has its own.
        limit: the most work units of a slice.
        parallelism: the most work units; None: only the slices limit them.
    """

    slices: int
    limit: int
    parallelism: int | None = None

    @property
    def max_work_units(self) -> int:
        """Return the most work units of the plan."""
        in_slices = self.slices * self.limit
        return in_slices if self.parallelism is None else min(in_slices, self.parallelism)

    def remaining(self, slices: int, work_units: int) -> PlanBudget:
        """Return the remaining budget after some slices and work units."""
        parallelism = None if self.parallelism is None else max(self.parallelism - work_units, 0)
        return replace(self, slices=max(self.slices - slices, 0), parallelism=parallelism)

    def slots_for(self, alone: int, other_count: int) -> tuple[int, int]:
        """Return how many work units with their own slice, and how many others, fit.

        Neither starves if possible.
        """
        alone, other_count = min(alone, self.max_work_units), min(other_count, self.max_work_units)
        needed = -(-other_count // self.limit)
        if needed + alone <= self.slices:
            return alone, other_count
        reserved = max(self.slices // 10, 1) if self.slices > 1 or not other_count else 0
        alone = min(alone, max(self.slices - needed, reserved))
        return alone, min(other_count, (self.slices - alone) * self.limit)


class UnitSelector:
    """Selects work units from the due ranges that it is offered."""

    def __init__(self, budget: PlanBudget, ends: Sequence[int], now: int = 0, *, turn: bool = True) -> None:
        """Start without any due range.

        Args:
            budget: limits the selection.
            ends: the ends of all windows, epoch milliseconds.
            now: the plan's clock, epoch milliseconds.
            turn: whether a single slot goes to failed work.
        """
        self.max_work_units = budget.max_work_units
        self._budget = budget
        self._ends = ends
        self._now = now
        self._turn = turn
        self.counts: Counter[Reason] = Counter()
        self._fresh = _EarliestWorkUnits(budget.max_work_units)
        self._served: list[UnitDueRange] = []
        self._failed: list[tuple[int, Candidate]] = []

    @property
    def until(self) -> int:
        """Return the index from which new windows only need to be counted."""
        after = self._fresh.after
        return len(self._ends) if after is None else after

    def offer(self, part: UnitDueRange) -> None:
        """Add a due range; units come in their order."""
        due = part.due
        self.counts[due.reason] += due.after - due.first
        if due.failure is not None:
            self._failed.append((due.failure.at or 0, (due.first, part.unit_index, due)))
        elif due.served:
            self._served.append(part)
        else:
            self._fresh.offer(part)

    def count_new(self, count: int) -> None:
        """Count new windows from ``until`` on."""
        if count:
            self.counts["new"] += count

    @cached_property
    def selected(self) -> list[Candidate]:
        """Return the selected work units in planning order: windows ascending outside, units inside."""
        total = self.counts.total()
        other_count = total - len(self._failed)
        tried = self._failed_in_order(crowded=total > self.max_work_units)
        tried = tried[: slots_for_failed(len(tried), other_count, self.max_work_units, turn=self._turn)]
        alone = sum(candidate[2].is_alone for candidate in tried)
        slots = list(self._budget.slots_for(alone, other_count + len(tried) - alone))
        chosen: list[Candidate] = []
        for candidate in chain(tried, self._candidates()):
            if len(chosen) == self.max_work_units or not any(slots):
                break
            shares_slice = not candidate[2].is_alone
            if slots[shares_slice]:
                slots[shares_slice] -= 1
                chosen.append(candidate)
        return sorted(chosen, key=lambda candidate: candidate[:2])

    def _failed_in_order(self, *, crowded: bool) -> list[Candidate]:
        """Return failed work units, the oldest try first; if not all fit, only those whose pause is over."""
        return [
            candidate
            for _, candidate in sorted(self._failed, key=lambda failed: (failed[0], failed[1][:2]))
            if not crowded or candidate[2].failure is None or candidate[2].failure.rested(self._now)
        ]

    @cached_property
    def over_cap(self) -> list[tuple[int, int, UnitDueRange]]:
        """Return the ranges of windows with a high that are not selected and have no failure on record."""
        selected: dict[int, list[int]] = defaultdict(list)
        for index, unit_index, _ in self.selected:
            selected[unit_index].append(index)
        return [
            (first, after, part)
            for part in self._served
            for first, after in _parts_not_selected(part.due, selected[part.unit_index])
        ]

    def _candidates(self) -> Iterator[Candidate]:
        """Yield all other candidates: new windows first, then by lowest high."""
        yield from in_planning_order(self._fresh.parts)
        oldest = heapq.merge(*(self._by_high(part) for part in self._served))
        yield from ((index, unit_index, due) for _, index, unit_index, due in oldest)

    def _by_high(self, part: UnitDueRange) -> Iterator[tuple[int, int, int, DueRange]]:
        due = part.due
        for index in range(due.first, due.after):
            yield self._ends[index] if due.high is None else due.high, index, part.unit_index, due


class _EarliestWorkUnits:
    """Keeps the earliest work units of the offered ranges: at least as many as the plan can take."""

    def __init__(self, max_work_units: int) -> None:
        self.parts: list[UnitDueRange] = []
        self._max_work_units = max_work_units
        self._count, self._limit = 0, 2 * max_work_units
        self.after: int | None = None
        """No window from this index on is among them; None: there is no such limit yet."""

    def offer(self, part: UnitDueRange) -> None:
        if self.after is not None:
            if part.due.first >= self.after:
                return
            part = self._clip(part)
        self.parts.append(part)
        self._count += part.due.after - part.due.first
        if self._count > self._limit:
            self._prune()

    def _prune(self) -> None:
        """Drop windows that lie behind as many work units as the plan can take."""
        begins, ends = Counter[int](), Counter[int]()
        for due, _ in self.parts:
            begins[due.first] += 1
            ends[due.after] += 1
        work_units = active = 0
        edges = sorted({*begins, *ends})
        for number, edge in enumerate(edges):
            active += begins[edge] - ends[edge]
            width = edges[number + 1] - edge if number + 1 < len(edges) else 0
            if active and work_units + active * width >= self._max_work_units:
                self.after = edge + -(-(self._max_work_units - work_units) // active)
                break
            work_units += active * width
        self.parts = [
            self._clip(part) for part in self.parts if self.after is None or part.due.first < self.after
        ]
        self._count = sum(due.after - due.first for due, _ in self.parts)
        self._limit = 2 * max(self._max_work_units, self._count)

    def _clip(self, part: UnitDueRange) -> UnitDueRange:
        due, unit_index = part
        if self.after is None or due.after <= self.after:
            return part
        return UnitDueRange(due._replace(after=self.after), unit_index)


def in_planning_order(parts: Iterable[UnitDueRange]) -> Iterator[Candidate]:
    """Yield the work units of due ranges: windows ascending outside, units in their order inside."""
    begins: dict[int, list[UnitDueRange]] = defaultdict(list)
    for part in parts:
        begins[part.due.first].append(part)
    waiting = sorted(begins, reverse=True)
    active: list[UnitDueRange] = []
    index = 0
    while waiting or active:
        if not active:
            index = waiting[-1]
        if waiting and waiting[-1] == index:
            active = sorted([*active, *begins[waiting.pop()]], key=lambda part: part.unit_index)
        for due, unit_index in active:
            yield index, unit_index, due
        index += 1
        active = [part for part in active if part.due.after > index]


def _parts_not_selected(due: DueRange, selected: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a due range without the given indexes, which are ascending."""
    first = due.first
    for index in selected[bisect_left(selected, due.first) : bisect_left(selected, due.after)]:
        if first < index:
            yield first, index
        first = index + 1
    if first < due.after:
        yield first, due.after
