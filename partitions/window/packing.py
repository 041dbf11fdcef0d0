"""Pack the selected work units into slices; repeatedly failing ones get a slice each.

See docs/reference/windows.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from partitions.instants import milliseconds
from partitions.intervals import Interval, intersect, union
from partitions.window.due_ranges import DueRange
from partitions.window.reasons import WHOLE
from partitions.window.slices import WindowSlice
from partitions.window.work_outcomes import TimeBound
from partitions.window.work_unit import OldWindow, WorkUnit
from partitions.window.work_unit_groups import WorkUnitGroup, pack_groups
from partitions.window.workload import Workload


@dataclass(frozen=True)
class SlicePacker:
    """Packs the work units that a workload selects.

    Attributes:
        workload: the workload.
        rereads_whole_windows: whether a window that is read again is read from its start; else from the
            cutoff within it.
        only_adds: whether the load finds no earlier rows of what it reads. Work units that are read as a
            whole again, or that windows of an earlier definition have loaded in part, are then in slices
            that delete them.
        has_step: whether the rows of a part of a window may be its sums, by a user's step.
    """

    workload: Workload
    rereads_whole_windows: bool
    only_adds: bool
    has_step: bool
    _made_room: set[tuple[TimeBound, str]] = field(default_factory=set)
    _loaded: dict[str, list[Interval]] = field(default_factory=dict)

    def slices(self) -> Iterator[WindowSlice]:
        """Yield the slices in planning order.

        Failed work units share no slice with others, unless the plan would then exceed its budget of
        slices. One that failed repeatedly gets its own slice in any case.
        """
        definition = self.workload.definition
        name = definition.time_entry.name if definition.time_entry else "window"
        now = milliseconds(self.workload.now)
        blank = WindowSlice((), definition.zone, definition.default_grid.text, name, now)
        awaited, units = self.workload.awaited, self.workload.units
        upstream = awaited.read._replace(changed=awaited.changes(units)) if awaited else None
        deferred = tuple(self.workload.deferred())
        groups = [*self._ungrouped_slices(), *self._group_slices()]
        if not groups and awaited is not None and awaited.has_grown_long:
            groups = [()]  # it only moves the position: a log that nobody reads may be cleaned
        for number, work_units in enumerate(groups):
            yield replace(
                blank,
                works=work_units,
                makes_room=any(work_unit.key in self._made_room for work_unit in work_units),
                deferred=() if number else deferred,
                early=() if number else self.workload.early,
                old=tuple(self._replaced_windows(work_units)),
                upstream=upstream,
            )

    def _ungrouped_slices(self) -> Iterator[tuple[WorkUnit, ...]]:
        """Yield one tuple of work units per slice, for work units outside groups."""
        budget = self.workload.budget
        # A slice whose commit deletes rows deletes those of all its work units. So units that only append must not be in it.
        by_replacing_and_failed: dict[tuple[bool, bool], list[WorkUnit]] = {
            (replaces, has_failed): [] for replaces in (False, True) for has_failed in (False, True)
        }
        alone: list[WorkUnit] = []
        for window_index, unit_index, due in self.workload.selector.selected:
            work_unit = self._work_unit(window_index, self.workload.units[unit_index], due)
            replaces = (
                work_unit.group_start is not None
                or work_unit.reason in WHOLE
                or work_unit.key in self._made_room
            )
            if due.is_alone:
                alone.append(work_unit)
            else:
                by_replacing_and_failed[replaces, due.failure is not None].append(work_unit)
        slices = [
            slice_
            for work_units in by_replacing_and_failed.values()
            for slice_ in _rectangles(work_units, budget.limit)
        ]
        if len(slices) + len(alone) > budget.slices:
            by_replacing = (
                [*by_replacing_and_failed[replaces, False], *by_replacing_and_failed[replaces, True]]
                for replaces in (False, True)
            )
            slices = [slice_ for work_units in by_replacing for slice_ in _dense(work_units, budget.limit)]
        yield from slices
        yield from ((work_unit,) for work_unit in alone)

    def _group_slices(self) -> Iterator[tuple[WorkUnit, ...]]:
        """Yield one tuple of work units per slice, for groups."""
        for groups in pack_groups(self.workload.taken_groups, self.workload.budget.limit):
            yield tuple(work_unit for group in groups for work_unit in self._group_work_units(group))

    def _group_work_units(self, group: WorkUnitGroup) -> Iterator[WorkUnit]:
        """Yield the work units of a group, each read as a whole and at least up to its previous high."""
        unit, reason = self.workload.units[group.unit_index], self.workload.reason(group)
        tied_windows, windows = group.tied_windows, self.workload.windows
        if windows is None:
            return
        group_start = windows.starts[tied_windows.first]
        for index in range(tied_windows.first, tied_windows.after):
            start, end = windows[index]
            end = max(end, self.workload.state.high(unit, start) or end)
            is_open = index in windows.open
            yield WorkUnit(start, end, unit, start, reason, is_open, windows.grid(index).text, group_start)
        for start, end in tied_windows.rest:
            yield WorkUnit(start, end, unit, start, "rest", group_start=group_start)

    def _replaced_windows(self, work_units: Iterable[WorkUnit]) -> Iterator[OldWindow]:
        """Yield the old windows that these work units replace."""
        windows = self.workload.windows
        if windows is None:
            return
        group_starts = dict.fromkeys(
            (work_unit.unit, work_unit.group_start)
            for work_unit in work_units
            if work_unit.group_start is not None
        )
        for unit, group_start in group_starts:
            tied_windows = self.workload.groups.tied_windows_of(unit, windows.index[group_start])
            for start, _ in tied_windows.old if tied_windows else ():
                yield OldWindow(unit, start, group_start)

    def _work_unit(self, index: int, unit: str, due: DueRange) -> WorkUnit:
        windows = self.workload.windows
        if windows is None:
            return WorkUnit(None, None, unit, None, due.reason)
        start, end = windows.starts[index], windows.ends[index]
        lower, tied_windows = start, self.workload.groups.tied_windows_of(unit, index)
        is_reread = due.served and due.reason not in WHOLE and tied_windows is None
        high, definition = end if due.high is None else due.high, self.workload.definition
        # With partial: false, only an earlier definition can have loaded a part of a window, with sums of it.
        is_rest_of_sums = self.has_step and high < end and not definition.partial
        if is_reread and (definition.rereads_whole or is_rest_of_sums):
            if self.only_adds:
                self._made_room.add((start, unit))
        elif is_reread and not self.rereads_whole_windows:
            lower = min(self.workload.cutoffs.lower(start, high), end)
        if not due.served and self.only_adds and self._holds_rows_of(unit, start, end):
            self._made_room.add((start, unit))
        is_open, group_start = index in windows.open, start if tied_windows else None
        return WorkUnit(start, end, unit, lower, due.reason, is_open, windows.grid(index).text, group_start)

    def _holds_rows_of(self, unit: str, start: int, end: int) -> bool:
        """Return whether windows of an earlier definition have loaded rows of a stretch."""
        if unit not in self._loaded:
            intervals = self.workload.state.units.get(unit, ())
            self._loaded[unit] = union(sorted((interval[0], interval[1]) for interval in intervals))
        return bool(intersect([(start, end, None)], self._loaded[unit]))


def _rectangles(work_units: Sequence[WorkUnit], limit: int) -> Iterator[tuple[WorkUnit, ...]]:
    """Yield slices that keep all units of a window together where they fit.

    One range of windows and one set of units then describe a read.
    """
    slice_: list[WorkUnit] = []
    for _, same_start in groupby(work_units, lambda work_unit: work_unit.start):
        units_of_window = list(same_start)
        if slice_ and len(slice_) + len(units_of_window) > limit:
            yield tuple(slice_)
            slice_ = []
        slice_ += units_of_window
        while len(slice_) > limit:
            yield tuple(slice_[:limit])
            slice_ = slice_[limit:]
    if slice_:
        yield tuple(slice_)


def _dense(work_units: Sequence[WorkUnit], limit: int) -> Iterator[tuple[WorkUnit, ...]]:
    """Return as few slices as possible."""
    return (tuple(work_units[first : first + limit]) for first in range(0, len(work_units), limit))
