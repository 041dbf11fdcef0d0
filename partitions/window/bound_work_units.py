"""Work units that must be read in one commit, since they share windows as they were cut before (``partitions.window.stale``)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from partitions.intervals import Interval
from partitions.window.due_ranges import DueRange
from partitions.window.stale import Bound, bounds, each, holding, waits
from partitions.window.state import WindowState
from partitions.window.windows import Windows
from partitions.window.work_outcomes import Failure


class Group(NamedTuple):
    """All or nothing of a run.

    Attributes:
        place: of the unit, in the order of units.
        bound: the windows, the old ones that are deleted, and what of these no window holds now.
        failure: of a work unit of it whose last attempt failed, the latest; None if none has.
    """

    place: int
    bound: Bound
    failure: Failure | None

    @property
    def size(self) -> int:
        """Work units."""
        return self.bound.after - self.bound.first + len(self.bound.rest)


@dataclass
class Groups:
    """The groups of all units.

    Attributes:
        state: what is committed.
        windows: all of the plan.
        units: identities, in the order that they were given.
        ranged: whether the source can be asked for any stretch of time; else only for whole windows.
        waiting: by the place of the unit: what waits for windows to come, and the stretches that these must hold.
    """

    state: WindowState
    windows: Windows
    units: Sequence[str]
    ranged: bool
    waiting: list[tuple[int, Bound, Sequence[Interval]]] = field(default_factory=list)
    _known: dict[str, list[Bound]] = field(default_factory=dict)

    def bounds(self, unit: str) -> list[Bound]:
        """What old windows bind; most units have the same ones."""
        intervals = self.state.stale.get(unit)
        if not intervals:
            return []
        key = repr(intervals)
        if key not in self._known:
            old = sorted((start, end) for start, end, _ in each(intervals, self.state.grid))
            all_bounds = bounds(old, self.windows)
            self._known[key] = [
                bound if self.ranged or waits(bound, self.windows) else bound._replace(rest=())
                for bound in all_bounds
            ]
        return self._known[key]

    def of(self, unit: str, index: int) -> Bound | None:
        """What binds a window."""
        return holding(self.bounds(unit), index) if unit in self.state.stale else None

    def due(self, units: Container[str] | None, chosen: Sequence[int] | None) -> list[Group]:
        """All groups that can be read now: those that did not fail first, the earliest first; then the oldest attempt.

        Args:
            units: those that are meant; None: all.
            chosen: the windows that are meant, ascending; a group is meant if one of its windows is. None: all.
        """
        self.waiting.clear()
        due_groups = []
        for place, unit in enumerate(self.units):
            if unit not in self.state.stale or (units is not None and unit not in units):
                continue
            for bound in self.bounds(unit):
                if not is_group(bound) or not _meant(bound, chosen):
                    continue
                if bound.rest and not self.ranged:
                    self.waiting.append((place, bound, waits(bound, self.windows)))
                else:
                    due_groups.append(Group(place, bound, self._failure(unit, bound)))
        return sorted(due_groups, key=_order)

    def others(self, unit: str, dues: Sequence[DueRange]) -> list[DueRange]:
        """Of what is due of a unit all that is in no group."""
        if unit not in self.state.stale:
            return list(dues)
        grouped = [bound for bound in self.bounds(unit) if is_group(bound)]
        return [part for due in dues for part in _outside(due, grouped)]

    def _failure(self, unit: str, bound: Bound) -> Failure | None:
        failed, starts = self.state.failed.get(unit, {}), self.windows.starts[bound.first : bound.after]
        return max((failed[start] for start in starts if start in failed), key=_at, default=None)


def is_group(bound: Bound) -> bool:
    """Whether several work units are bound; one by itself is planned like any other."""
    return bound.after - bound.first + len(bound.rest) > 1


def taken(groups: Sequence[Group], most: int, *, at_least_one: bool) -> list[Group]:
    """The first of them that fit; a group that is too large for any plan is taken by itself.

    Args:
        groups: in their order.
        most: work units.
        at_least_one: whether the first is taken although it does not fit.
    """
    chosen: list[Group] = []
    room = most
    for group in groups:
        if group.size > room and (chosen or not at_least_one):
            break
        chosen.append(group)
        room -= group.size
    return chosen


def packed(groups: Sequence[Group], limit: int) -> Iterator[list[Group]]:
    """Groups that share a slice: as many as fit; one that failed has a slice of its own."""
    portion: list[Group] = []
    for group in groups:
        full = sum(other.size for other in portion) + group.size > limit
        if portion and (full or group.failure or portion[-1].failure):
            yield portion
            portion = []
        portion.append(group)
    if portion:
        yield portion


def _meant(bound: Bound, chosen: Sequence[int] | None) -> bool:
    return chosen is None or bisect_left(chosen, bound.first) < bisect_left(chosen, bound.after)


def _outside(due: DueRange, bounds: Sequence[Bound]) -> Iterator[DueRange]:
    first = due.first
    for bound in bounds:
        if bound.first < due.after and first < bound.after:
            if first < bound.first:
                yield due._replace(first=first, after=bound.first)
            first = bound.after
    if first < due.after:
        yield due._replace(first=first)


def _order(group: Group) -> tuple[bool, int, int, int]:
    return group.failure is not None, _at(group.failure), group.bound.first, group.place


def _at(failure: Failure | None) -> int:
    return (failure.at or 0) if failure else 0
