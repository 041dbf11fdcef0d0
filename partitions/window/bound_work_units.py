"""Work units that must share a commit, since they share old windows (``partitions.window.stale``)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from partitions.intervals import Interval
from partitions.window.due_ranges import DueRange
from partitions.window.stale import (
    BoundWindows,
    bind_windows,
    find_bound_windows,
    missing_stretches,
    split_windows,
)
from partitions.window.state import WindowState
from partitions.window.windows import Windows
from partitions.window.work_outcomes import Failure


class WorkUnitGroup(NamedTuple):
    """Work units that a run takes on together or not at all.

    Attributes:
        place: of the unit, in the order of units.
        bound: the windows, the old windows that are deleted, and the parts of these that no current window
        holds.
        failure: the latest failure of its work units; None if no last try failed.
    """

    place: int
    bound: BoundWindows
    failure: Failure | None

    @property
    def size(self) -> int:
        """Return the number of work units."""
        return self.bound.after - self.bound.first + len(self.bound.rest)


@dataclass
class WorkUnitGroups:
    """The groups of all units.

    Attributes:
        state: the committed state.
        windows: all windows of the plan.
        units: identities, in the order of the definition.
        ranged: whether the source can read any stretch of time; else it reads whole windows only.
        waiting: groups that wait for future windows: the unit's place, the bound windows, and the
        stretches that are missing.
    """

    state: WindowState
    windows: Windows
    units: Sequence[str]
    ranged: bool
    waiting: list[tuple[int, BoundWindows, Sequence[Interval]]] = field(default_factory=list)
    _bounds_cache: dict[str, list[BoundWindows]] = field(default_factory=dict)

    def bounds(self, unit: str) -> list[BoundWindows]:
        """Return the bound windows of a unit; the result is cached, since most units have the same ones."""
        intervals = self.state.stale.get(unit)
        if not intervals:
            return []
        key = repr(intervals)
        if key not in self._bounds_cache:
            old = sorted((start, end) for start, end, _ in split_windows(intervals, self.state.grid))
            all_bounds = bind_windows(old, self.windows)
            self._bounds_cache[key] = [
                bound if self.ranged or missing_stretches(bound, self.windows) else bound._replace(rest=())
                for bound in all_bounds
            ]
        return self._bounds_cache[key]

    def bound_of(self, unit: str, index: int) -> BoundWindows | None:
        """Return the bound windows that include a window; None if it is bound to none."""
        return find_bound_windows(self.bounds(unit), index) if unit in self.state.stale else None

    def due(self, units: Container[str] | None, chosen: Sequence[int] | None) -> list[WorkUnitGroup]:
        """Return all groups that can be read now.

        First come those that did not fail, by window; then the others, the oldest try first.

        Args:
            units: the requested units; None: all.
            chosen: the requested windows, ascending; a group is requested if one of its windows is. None:
            all.
        """
        self.waiting.clear()
        due_groups = []
        for place, unit in enumerate(self.units):
            if unit not in self.state.stale or (units is not None and unit not in units):
                continue
            for bound in self.bounds(unit):
                if not is_group(bound) or not _is_requested(bound, chosen):
                    continue
                if bound.rest and not self.ranged:
                    self.waiting.append((place, bound, missing_stretches(bound, self.windows)))
                else:
                    due_groups.append(WorkUnitGroup(place, bound, self._failure(unit, bound)))
        return sorted(due_groups, key=_order)

    def ungrouped(self, unit: str, dues: Sequence[DueRange]) -> list[DueRange]:
        """Return the due ranges of a unit that belong to no group."""
        if unit not in self.state.stale:
            return list(dues)
        grouped = [bound for bound in self.bounds(unit) if is_group(bound)]
        return [part for due in dues for part in _outside(due, grouped)]

    def _failure(self, unit: str, bound: BoundWindows) -> Failure | None:
        failed, starts = self.state.failed.get(unit, {}), self.windows.starts[bound.first : bound.after]
        return max((failed[start] for start in starts if start in failed), key=_at, default=None)


def is_group(bound: BoundWindows) -> bool:
    """Return whether more than one work unit is bound; a single one is planned like any other."""
    return bound.after - bound.first + len(bound.rest) > 1


def select_groups(groups: Sequence[WorkUnitGroup], most: int, *, at_least_one: bool) -> list[WorkUnitGroup]:
    """Return the leading groups that fit into a number of work units.

    Args:
        groups: in their order.
        most: the number of work units.
        at_least_one: whether the first group is taken even if it does not fit.
    """
    chosen: list[WorkUnitGroup] = []
    room = most
    for group in groups:
        if group.size > room and (chosen or not at_least_one):
            break
        chosen.append(group)
        room -= group.size
    return chosen


def pack_groups(groups: Sequence[WorkUnitGroup], limit: int) -> Iterator[list[WorkUnitGroup]]:
    """Yield the groups of each slice: as many as fit; a group that failed gets its own slice."""
    portion: list[WorkUnitGroup] = []
    for group in groups:
        full = sum(group_in_slice.size for group_in_slice in portion) + group.size > limit
        if portion and (full or group.failure or portion[-1].failure):
            yield portion
            portion = []
        portion.append(group)
    if portion:
        yield portion


def _is_requested(bound: BoundWindows, chosen: Sequence[int] | None) -> bool:
    return chosen is None or bisect_left(chosen, bound.first) < bisect_left(chosen, bound.after)


def _outside(due: DueRange, bounds: Sequence[BoundWindows]) -> Iterator[DueRange]:
    first = due.first
    for bound in bounds:
        if bound.first < due.after and first < bound.after:
            if first < bound.first:
                yield due._replace(first=first, after=bound.first)
            first = bound.after
    if first < due.after:
        yield due._replace(first=first)


def _order(group: WorkUnitGroup) -> tuple[bool, int, int, int]:
    return group.failure is not None, _at(group.failure), group.bound.first, group.place


def _at(failure: Failure | None) -> int:
    return (failure.at or 0) if failure else 0
