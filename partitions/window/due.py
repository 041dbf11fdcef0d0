"""Which windows of a unit are due, and why (spec 03, State and what runs).

Windows are spoken of as ranges of indexes, so that the work of a unit that is complete costs the same however many windows it
has, and the whole plan as much as there is to tell apart.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

from partitions.window.grid import Grid, Windows, steps
from partitions.window.state import Failure, Run, WindowState

Reason = Literal["new", "grace", "failed", "forced"]


def job_cutoff(state: WindowState, grace: int) -> int | None:
    """The cutoff of the whole job: its highest usable high less the grace; None without any."""
    highest = state.highest
    return None if highest is None else highest - grace


def cutoff(highs: Iterable[int], start: int, grace: int, abstinent: int) -> int:
    """The cutoff of a work unit: its highest high, and where it has none the start. It is not clipped to the window."""
    highest = max(highs, default=None)
    return start if highest is None else highest + abstinent - grace


class Due(NamedTuple):
    """Neighbouring windows of one unit that are due for the same reason.

    Attributes:
        first: index of the first.
        after: index after the last.
        reason: why.
        high: their own high, where it is not their end; None for whole windows, and for those that have none.
        served: whether they have a usable high.
    """

    first: int
    after: int
    reason: Reason
    high: int | None = None
    served: bool = False


class Known(NamedTuple):
    """Windows of a unit that have a high: their end, or where only a part is loaded, ``high``."""

    first: int
    after: int
    high: int | None = None


@dataclass(frozen=True)
class Cutoffs:
    """What decides about windows that were loaded before.

    Attributes:
        job: the job's cutoff; None where nothing is loaded.
        grace: milliseconds.
        abstinent: milliseconds.
    """

    job: int | None
    grace: int
    abstinent: int

    def due(self, end: int, high: int, *, grows: bool) -> bool:
        """Whether a window is read again."""
        own = self.own(high)
        return end > own if grows or self.job is None else end > max(own, self.job)

    def lower(self, start: int, high: int) -> int:
        """Where such a read starts."""
        return max(self.own(high), start)

    def own(self, high: int) -> int:
        """The cutoff of a window with a high."""
        return cutoff((high,), high, self.grace, self.abstinent)


@dataclass(frozen=True)
class UnitDue:
    """Looks up what is due of one unit after another.

    Attributes:
        state: what is committed.
        windows: all of the plan.
        cutoffs: of the plan.
    """

    state: WindowState
    windows: Windows
    cutoffs: Cutoffs
    _coinciding: dict[tuple[int, str], Coinciding] = field(default_factory=dict)

    def of(self, unit: str) -> list[Due]:
        """All that is due of a unit, ascending."""
        known, marked = self.known(unit), self._marked(unit)
        return sorted([*self._never(known, marked), *self._again(unit, known, marked)])

    def known(self, unit: str) -> list[Known]:
        """The windows of a unit that have a high, ascending; of two highs of one window the higher counts."""
        found = sorted(part for run in self.state.units.get(unit, ()) for part in self._known(run))
        apart = all(one.after <= other.first for one, other in pairwise(found))
        return found if apart else _apart(found, self.windows)

    def _never(self, known: list[Known], marked: dict[int, Failure | None]) -> Iterator[Due]:
        """What has no usable high: what was tried is told from what was not."""
        tried = sorted(index for index, failure in marked.items() if failure and failure.attempts)
        reached = 0
        for first, after in [*((part.first, part.after) for part in known), (len(self.windows), 0)]:
            for index in tried[bisect_left(tried, reached) : bisect_left(tried, first)]:
                if reached < index:
                    yield Due(reached, index, "new")
                yield Due(index, index + 1, "failed")
                reached = index + 1
            if reached < first:
                yield Due(reached, first, "new")
            reached = max(reached, after)

    def _again(self, unit: str, known: list[Known], marked: dict[int, Failure | None]) -> Iterator[Due]:
        """What was loaded, wholly or in part, and must be read again."""
        special = sorted(marked)
        for part in known:
            if part.high is not None:
                yield from self._one(unit, part.first, part.high, marked)
                continue
            reached = part.first
            for index in special[bisect_left(special, part.first) : bisect_left(special, part.after)]:
                yield from self._whole(reached, index)
                yield from self._one(unit, index, self.windows.ends[index], marked)
                reached = index + 1
            yield from self._whole(reached, part.after)

    def _whole(self, first: int, after: int) -> Iterator[Due]:
        """Of windows that are loaded up to their ends: those that end after the job's cutoff, where grace exceeds abstinence."""
        if self.cutoffs.job is not None and self.cutoffs.grace > self.cutoffs.abstinent:
            first = bisect_right(self.windows.ends, self.cutoffs.job, first, max(first, after))
            if first < after:
                yield Due(first, after, "grace", served=True)

    def _one(self, unit: str, index: int, high: int, marked: dict[int, Failure | None]) -> Iterator[Due]:
        """Of one window that differs from its neighbours."""
        window, failure = self.windows[index], marked.get(index)
        grows = index in marked and window.start in self.state.open.get(unit, ())
        if failure is not None or self.cutoffs.due(window.end, high, grows=grows):
            reason: Reason = (
                "failed" if failure and failure.attempts else "new" if high < window.end else "grace"
            )
            yield Due(index, index + 1, reason, high, served=True)

    def _marked(self, unit: str) -> dict[int, Failure | None]:
        """The windows of a unit that failed or were left out, and those that are open."""
        index = self.windows.index
        failed = self.state.failed.get(unit, {})
        marked: dict[int, Failure | None] = {
            index[start]: None for start in self.state.open.get(unit, ()) if start in index
        }
        return marked | {
            index[start]: one for start, one in failed.items() if start is not None and start in index
        }

    def _known(self, run: Run) -> Iterator[Known]:
        """The planned windows that a run says something of."""
        windows, high, found = self.windows, run[1], self._coincide(run)
        for first, after in found.ranges:
            last = bisect_left(windows.starts, high, first, after)
            # Only the last may be loaded in part; and one that now cuts short may have been loaded further than now.
            odd = last > first and (high < windows.ends[last - 1] or last - 1 in windows.cut)
            if last - odd > first:
                yield Known(first, last - odd)
            if odd:
                whole = windows.cut.get(last - 1, windows.ends[last - 1])
                yield Known(last - 1, last, min(high, whole))
        for index, end in found.singles:
            if windows.starts[index] < high:
                yield Known(index, index + 1, min(high, end))

    def _coincide(self, run: Run) -> Coinciding:
        grid = self.state.grid_of(run)
        key = (run[0], grid.text)
        if key not in self._coinciding:
            self._coinciding[key] = Coinciding.of(self.windows, grid, run[0])
        return self._coinciding[key]


@dataclass(frozen=True)
class Coinciding:
    """Which planned windows start where windows of a run start.

    Attributes:
        ranges: those that follow each other as the run's do.
        singles: those of another grid, with the end that the run's grid gives them.
    """

    ranges: tuple[tuple[int, int], ...]
    singles: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, windows: Windows, grid: Grid, start: int) -> Coinciding:
        """Compare the windows with those of a grid from a start on."""
        ranges, singles, own = [], [], steps(grid, start)
        for stretch, (first, after) in zip(windows.stretches, windows.bounds, strict=True):
            below = bisect_left(windows.starts, start, first, after)
            same = (index for index in range(below, after) if own.on(windows.starts[index]))
            if stretch.grid == grid:
                if (one := next(same, None)) is not None:
                    ranges.append((one, after))
            else:
                singles += [(index, own.next(windows.starts[index])) for index in same]
        return cls(tuple(ranges), tuple(singles))


def _apart(found: list[Known], windows: Windows) -> list[Known]:
    """One answer for each window, where several runs know it."""
    highs: dict[int, int] = {}
    for part in found:
        for index in range(part.first, part.after):
            high = windows.ends[index] if part.high is None else part.high
            highs[index] = max(high, highs.get(index, high))
    return [Known(index, index + 1, high) for index, high in sorted(highs.items())]
