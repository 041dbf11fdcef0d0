"""Work units that must be read in one commit, since they share windows as they were cut before (``partitions.window.stale``)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from partitions.intervals import Interval
from partitions.window.due import Due
from partitions.window.grid import Windows
from partitions.window.stale import Bound, bounds, each, holding, waits
from partitions.window.state import Failure, WindowState


class Group(NamedTuple):
    """All or nothing of a run.

    Attributes:
        place: of the unit, in the order of units.
        bound: the windows, the old ones that make room, and what of these no window holds now.
        failure: of a work unit of it whose last attempt failed, the latest; None where none has.
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
        runs = self.state.stale.get(unit)
        if not runs:
            return []
        key = repr(runs)
        if key not in self._known:
            old = sorted((start, end) for start, end, _ in each(runs, self.state.grid))
            found = bounds(old, self.windows)
            self._known[key] = [
                one if self.ranged or waits(one, self.windows) else one._replace(rest=()) for one in found
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
        found = []
        for place, unit in enumerate(self.units):
            if unit not in self.state.stale or (units is not None and unit not in units):
                continue
            for one in self.bounds(unit):
                if not is_group(one) or not _meant(one, chosen):
                    continue
                if one.rest and not self.ranged:
                    self.waiting.append((place, one, waits(one, self.windows)))
                else:
                    found.append(Group(place, one, self._failure(unit, one)))
        return sorted(found, key=_order)

    def others(self, unit: str, found: Sequence[Due]) -> list[Due]:
        """Of what is due of a unit all that is in no group."""
        if unit not in self.state.stale:
            return list(found)
        bound = [one for one in self.bounds(unit) if is_group(one)]
        return [part for due in found for part in _outside(due, bound)]

    def _failure(self, unit: str, one: Bound) -> Failure | None:
        failed, starts = self.state.failed.get(unit, {}), self.windows.starts[one.first : one.after]
        return max((failed[start] for start in starts if start in failed), key=_at, default=None)


def is_group(one: Bound) -> bool:
    """Whether several work units are bound; one by itself is planned like any other."""
    return one.after - one.first + len(one.rest) > 1


def taken(groups: Sequence[Group], most: int, *, at_least_one: bool) -> list[Group]:
    """The first of them that fit; a group that is too large for any plan is taken by itself.

    Args:
        groups: in their order.
        most: work units.
        at_least_one: whether the first is taken although it does not fit.
    """
    chosen: list[Group] = []
    left = most
    for one in groups:
        if one.size > left and (chosen or not at_least_one):
            break
        chosen.append(one)
        left -= one.size
    return chosen


def packed(groups: Sequence[Group], limit: int) -> Iterator[list[Group]]:
    """Groups that share a slice: as many as fit; one that failed has a slice of its own."""
    portion: list[Group] = []
    for one in groups:
        full = sum(other.size for other in portion) + one.size > limit
        if portion and (full or one.failure or portion[-1].failure):
            yield portion
            portion = []
        portion.append(one)
    if portion:
        yield portion


def _meant(one: Bound, chosen: Sequence[int] | None) -> bool:
    return chosen is None or bisect_left(chosen, one.first) < bisect_left(chosen, one.after)


def _outside(due: Due, bound: Sequence[Bound]) -> Iterator[Due]:
    first = due.first
    for one in bound:
        if one.first < due.after and first < one.after:
            if first < one.first:
                yield due._replace(first=first, after=one.first)
            first = one.after
    if first < due.after:
        yield due._replace(first=first)


def _order(one: Group) -> tuple[bool, int, int, int]:
    return one.failure is not None, _at(one.failure), one.bound.first, one.place


def _at(failure: Failure | None) -> int:
    return (failure.at or 0) if failure else 0
