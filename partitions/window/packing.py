"""Pack the work units of a plan into slices: shared, or on their own (docs/reference/windows.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from partitions.instants import milliseconds
from partitions.window.bound_work_units import WorkUnitGroup, pack_groups
from partitions.window.due_ranges import DueRange
from partitions.window.slices import WindowSlice
from partitions.window.work_unit import OldWindow, WorkUnit
from partitions.window.workload import Workload


@dataclass(frozen=True)
class SlicePacker:
    """Packs the work units that a workload selects.

    Attributes:
        load: the workload.
        whole: whether a window is always read as a whole.
    """

    load: Workload
    whole: bool

    def slices(self) -> Iterator[WindowSlice]:
        """Yield the slices in planning order.

        Failed work units do not share slices with others; one that failed twice gets its own slice.
        """
        definition = self.load.definition
        name = definition.time_entry.name if definition.time_entry else "window"
        now = milliseconds(self.load.now)
        blank = WindowSlice((), definition.zone, definition.default_grid.text, name, now)
        deferred = tuple(self.load.deferred())
        for number, portion in enumerate([*self._portions(), *self._group_portions()]):
            yield replace(
                blank,
                works=portion,
                deferred=() if number else deferred,
                early=() if number else self.load.early,
                old=tuple(self._replaced_windows(portion)),
            )

    def _portions(self) -> Iterator[tuple[WorkUnit, ...]]:
        """Yield the work units of each slice that holds no group."""
        budget = self.load.budget
        # A commit with deletes deletes the rows of all its work units, so all of them must be read as a whole.
        kinds: dict[tuple[bool, bool], list[WorkUnit]] = {
            (a, b): [] for a in (False, True) for b in (False, True)
        }
        alone: list[WorkUnit] = []
        for index, place, due in self.load.selector.selected:
            work = self._work_unit(index, self.load.units[place], due)
            replaces = work.bound is not None or work.reason == "forced"
            (alone if due.is_alone else kinds[replaces, due.failure is not None]).append(work)
        portions = [part for works in kinds.values() for part in _rectangles(works, budget.limit)]
        if len(portions) + len(alone) > budget.slices:
            pairs = ([*kinds[replaces, False], *kinds[replaces, True]] for replaces in (False, True))
            portions = [part for works in pairs for part in _dense(works, budget.limit)]
        yield from portions
        yield from ((work,) for work in alone)

    def _group_portions(self) -> Iterator[tuple[WorkUnit, ...]]:
        for portion in pack_groups(self.load.taken_groups, self.load.budget.limit):
            yield tuple(work for group in portion for work in self._group_work_units(group))

    def _group_work_units(self, group: WorkUnitGroup) -> Iterator[WorkUnit]:
        """Yield the work units of a group, each read as a whole and at least as far as before."""
        unit, bound, reason = self.load.units[group.place], group.bound, self.load.reason(group)
        windows = self.load.windows
        if windows is None:
            return
        name = windows.starts[bound.first]
        for index in range(bound.first, bound.after):
            start, end = windows[index]
            end = max(end, self.load.state.high(unit, start) or end)
            is_open = index in windows.open
            yield WorkUnit(start, end, unit, start, reason, is_open, windows.grid(index).text, name)
        for start, end in bound.rest:
            yield WorkUnit(start, end, unit, start, "rest", bound=name)

    def _replaced_windows(self, works: Iterable[WorkUnit]) -> Iterator[OldWindow]:
        """Yield the old windows that these work units replace."""
        windows = self.load.windows
        bound = dict.fromkeys((work.unit, work.bound) for work in works if work.bound is not None)
        for unit, name in bound:
            holding = (
                self.load.groups.bound_of(unit, windows.index[name or 0]) if windows is not None else None
            )
            for start, _ in holding.old if holding else ():
                yield OldWindow(unit, start, name)

    def _work_unit(self, index: int, unit: str, due: DueRange) -> WorkUnit:
        windows = self.load.windows
        if windows is None:
            return WorkUnit(None, None, unit, None, due.reason)
        start, end = windows.starts[index], windows.ends[index]
        lower, bound = start, self.load.groups.bound_of(unit, index)
        if due.served and due.reason != "forced" and not self.whole and bound is None:
            lower = min(self.load.cutoffs.lower(start, end if due.high is None else due.high), end)
        is_open, name = index in windows.open, start if bound else None
        return WorkUnit(start, end, unit, lower, due.reason, is_open, windows.grid(index).text, name)


def _rectangles(works: Sequence[WorkUnit], limit: int) -> Iterator[tuple[WorkUnit, ...]]:
    """Yield slices of whole rows, the units of one window, if a row fits; so a read is a rectangle."""
    portion: list[WorkUnit] = []
    for _, same in groupby(works, lambda work: work.start):
        row = list(same)
        if portion and len(portion) + len(row) > limit:
            yield tuple(portion)
            portion = []
        portion += row
        while len(portion) > limit:
            yield tuple(portion[:limit])
            portion = portion[limit:]
    if portion:
        yield tuple(portion)


def _dense(works: Sequence[WorkUnit], limit: int) -> Iterator[tuple[WorkUnit, ...]]:
    """Return as few slices as possible."""
    return (tuple(works[first : first + limit]) for first in range(0, len(works), limit))
