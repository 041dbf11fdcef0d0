"""Groups of work units that must share a commit, since they share old windows (see ``old_windows``)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from partitions.intervals import Interval
from partitions.window.due_ranges import DueRange
from partitions.window.old_windows import (
    TiedWindows,
    find_tied_windows,
    missing_stretches,
    split_windows,
    tie_windows,
)
from partitions.window.state import WindowState
from partitions.window.windows import Windows
from partitions.window.work_outcomes import Failure


class WorkUnitGroup(NamedTuple):
    """Work units that a run loads together or not at all.

    Attributes:
        unit_index: the unit's index in the order of units.
        tied_windows: the windows, the old windows that are deleted, and the parts of these that no current
        window covers.
        failure: the latest failure of its work units; None if no last try failed.
    """

    unit_index: int
    tied_windows: TiedWindows
    failure: Failure | None

    @property
    def size(self) -> int:
        """Return the number of work units."""
        return self.tied_windows.after - self.tied_windows.first + len(self.tied_windows.rest)


@dataclass
class WorkUnitGroups:
    """The groups of all units.

    Attributes:
        state: the committed state.
        windows: all windows of the plan.
        units: the units' identities, in the order of the definition.
        reads_any_stretch: whether the source can read a time range that is no window. If not, tied windows
            wait until windows cover their rest.
        waiting: groups that wait for future windows: the unit's index, the tied windows, and the
            stretches that no window covers yet.
    """

    state: WindowState
    windows: Windows
    units: Sequence[str]
    reads_any_stretch: bool
    waiting: list[tuple[int, TiedWindows, Sequence[Interval]]] = field(default_factory=list)
    _cache: dict[str, list[TiedWindows]] = field(default_factory=dict)

    def tied_windows(self, unit: str) -> list[TiedWindows]:
        """Return the tied windows of a unit; the result is cached, since most units have the same ones."""
        intervals = self.state.old.get(unit)
        if not intervals:
            return []
        key = repr(intervals)
        if key not in self._cache:
            old = sorted((start, end) for start, end, _ in split_windows(intervals, self.state.grid))
            self._cache[key] = [
                tied_windows
                if self.reads_any_stretch or missing_stretches(tied_windows, self.windows)
                else tied_windows._replace(rest=())
                for tied_windows in tie_windows(old, self.windows)
            ]
        return self._cache[key]

    def tied_windows_of(self, unit: str, index: int) -> TiedWindows | None:
        """Return the tied windows that include a window; None if it overlaps no old window.

        A single window that overlaps an old one is returned, too (:func:`is_group`).
        """
        return find_tied_windows(self.tied_windows(unit), index) if unit in self.state.old else None

    def due(self, units: Container[str] | None, chosen: Sequence[int] | None) -> list[WorkUnitGroup]:
        """Return all groups that can be read now; keep those that must wait in ``waiting``.

        First come the groups that did not fail, by window; then the others, the oldest try first.

        Args:
            units: the requested units; None: all.
            chosen: the requested windows, ascending; a group is requested if one of its windows is. None:
            all.
        """
        self.waiting.clear()
        due_groups = []
        for unit_index, unit in enumerate(self.units):
            if unit not in self.state.old or (units is not None and unit not in units):
                continue
            for tied_windows in self.tied_windows(unit):
                if not is_group(tied_windows) or not _is_requested(tied_windows, chosen):
                    continue
                if tied_windows.rest and not self.reads_any_stretch:
                    self.waiting.append(
                        (unit_index, tied_windows, missing_stretches(tied_windows, self.windows))
                    )
                else:
                    due_groups.append(
                        WorkUnitGroup(unit_index, tied_windows, self._failure(unit, tied_windows))
                    )
        return sorted(due_groups, key=_priority)

    def ungrouped(self, unit: str, dues: Sequence[DueRange]) -> list[DueRange]:
        """Return the due ranges of a unit that belong to no group."""
        if unit not in self.state.old:
            return list(dues)
        grouped = [tied_windows for tied_windows in self.tied_windows(unit) if is_group(tied_windows)]
        return [part for due in dues for part in _cut_out(due, grouped)]

    def _failure(self, unit: str, tied_windows: TiedWindows) -> Failure | None:
        failed = self.state.failed.get(unit, {})
        starts = self.windows.starts[tied_windows.first : tied_windows.after]
        return max((failed[start] for start in starts if start in failed), key=_at, default=None)


def is_group(tied_windows: TiedWindows) -> bool:
    """Return whether there is more than one work unit; a single one is planned like any other."""
    return tied_windows.after - tied_windows.first + len(tied_windows.rest) > 1


def select_groups(
    groups: Sequence[WorkUnitGroup], max_work_units: int, *, at_least_one: bool
) -> list[WorkUnitGroup]:
    """Return the first groups that together have at most ``max_work_units`` work units.

    Args:
        groups: the due groups, in order of priority.
        max_work_units: the most work units of all returned groups.
        at_least_one: whether the first group is taken even if it does not fit.
    """
    chosen: list[WorkUnitGroup] = []
    room = max_work_units
    for group in groups:
        if group.size > room and (chosen or not at_least_one):
            break
        chosen.append(group)
        room -= group.size
    return chosen


def pack_groups(groups: Sequence[WorkUnitGroup], limit: int) -> Iterator[list[WorkUnitGroup]]:
    """Yield the groups of each slice: as many as fit; a group that failed gets its own slice."""
    slice_groups: list[WorkUnitGroup] = []
    for group in groups:
        is_full = sum(slice_group.size for slice_group in slice_groups) + group.size > limit
        if slice_groups and (is_full or group.failure or slice_groups[-1].failure):
            yield slice_groups
            slice_groups = []
        slice_groups.append(group)
    if slice_groups:
        yield slice_groups


def _is_requested(tied_windows: TiedWindows, chosen: Sequence[int] | None) -> bool:
    return chosen is None or bisect_left(chosen, tied_windows.first) < bisect_left(chosen, tied_windows.after)


def _cut_out(due: DueRange, groups: Sequence[TiedWindows]) -> Iterator[DueRange]:
    first = due.first
    for tied_windows in groups:
        if tied_windows.first < due.after and first < tied_windows.after:
            if first < tied_windows.first:
                yield due._replace(first=first, after=tied_windows.first)
            first = tied_windows.after
    if first < due.after:
        yield due._replace(first=first)


def _priority(group: WorkUnitGroup) -> tuple[bool, int, int, int]:
    return group.failure is not None, _at(group.failure), group.tied_windows.first, group.unit_index


def _at(failure: Failure | None) -> int:
    return (failure.at or 0) if failure else 0
