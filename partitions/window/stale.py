"""Rows that are in the table under windows as they were cut before; needed if only the start of a window tells its rows.

Such a row does not say which of the windows as they are cut now holds it. So a read that overlaps an old window deletes the whole of it,
and in the same commit must read all that it held: windows that share an old one are *bound* to each other, and what of it no window
holds now is read beside them. Then no commit loses a row, and none doubles one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from partitions.intervals import Interval, missing
from partitions.window.calendar_grid import Grid, steps
from partitions.window.state import WindowState
from partitions.window.window_intervals import WindowInterval
from partitions.window.windows import Windows


class Bound(NamedTuple):
    """What must be read in one commit.

    Attributes:
        first: index of the first window.
        after: index after the last.
        old: the old windows that are deleted, ascending.
        rest: what they held and no window holds now.
    """

    first: int
    after: int
    old: tuple[Interval, ...]
    rest: tuple[Interval, ...]


def bounds(old: Sequence[Interval], windows: Windows) -> list[Bound]:
    """Which windows are bound by which old ones.

    Args:
        old: old windows of a unit, ascending.
        windows: all, as they are cut now.

    Returns:
        the bound ones, ascending; an old window that no window touches is in none.
    """
    made: list[Bound] = []
    number = 0
    while number < len(old):
        begin, (lower, upper) = number, old[number]
        number, known = number + 1, (0, 0)
        while True:
            touched = windows.touching(lower, upper)
            if touched:
                lower, upper = (
                    min(lower, windows.starts[touched.start]),
                    max(upper, windows.ends[touched.stop - 1]),
                )
            while number < len(old) and old[number][0] < upper:
                upper, number = max(upper, old[number][1]), number + 1
            if known == (lower, upper):
                break
            known = lower, upper
        if touched:
            inside = [windows[index] for index in touched]
            rest = tuple(missing(inside, lower, upper))
            made.append(Bound(touched.start, touched.stop, tuple(old[begin:number]), rest))
    return made


def waits(bound: Bound, windows: Windows) -> tuple[Interval, ...]:
    """What must be held by windows before a source that is only read by whole windows may read what is bound.

    What the first window leaves of an old one, and is shorter than a window, is no window of its own: another zone reads the same days.
    """
    first = windows.starts[bound.first]
    grid = windows.stretches[windows.stretch(bound.first)].grid
    return tuple(part for part in bound.rest if part[0] >= first or grid.end(part[0]) <= part[1])


def each(intervals: Iterable[WindowInterval], grid: Grid) -> Iterator[tuple[int, int, Grid]]:
    """Every window that intervals hold, with its end so far, and how it was cut.

    Args:
        intervals: of one unit.
        grid: of those that carry none.
    """
    for interval in intervals:
        own = Grid.parse(interval[2]) if len(interval) > 2 else grid
        start, windows = interval[0], steps(own, interval[0])
        while start < interval[1]:
            end = windows.next(start)
            yield start, min(end, interval[1]), own
            start = end


def recut(state: WindowState, before: WindowState | None, windows: Windows, begin: int) -> WindowState:
    """The state under windows that may be cut otherwise: those that are not cut as they were are not loaded, and their rows are old.

    Args:
        state: what counts as loaded; its own grid is the definition's.
        before: what is known of the table; None: nothing beside ``state``.
        windows: all, as they are cut now.
        begin: where the first may start; what ends before it stays as it is.
    """
    making = _Recut(state.grid, windows, begin, {})
    known = before.rebased(state.grid) if before is not None else WindowState(state.grid)
    parts = (state.units, state.stale, known.units, known.stale)
    units: dict[str, list[WindowInterval]] = {}
    stale: dict[str, list[WindowInterval]] = {}
    for unit in dict.fromkeys(name for part in parts for name in part):
        kept, old = making.of(*(part.get(unit, []) for part in parts))
        if kept:
            units[unit] = kept
        if old:
            stale[unit] = old
    return replace(state, units=units, stale=stale)


@dataclass(frozen=True)
class _Recut:
    grid: Grid
    windows: Windows
    begin: int
    cache: dict[str, tuple[list[WindowInterval], list[WindowInterval]]]

    def of(
        self,
        loaded: list[WindowInterval],
        stale: list[WindowInterval],
        loaded_before: list[WindowInterval],
        stale_before: list[WindowInterval],
    ) -> tuple[list[WindowInterval], list[WindowInterval]]:
        """The intervals of a unit that stay loaded, and its old ones; most units have the same."""
        key = repr((loaded, stale, loaded_before, stale_before))
        if key not in self.cache:
            self.cache[key] = self._of(loaded, [*stale, *loaded_before, *stale_before])
        return self.cache[key]

    def _of(
        self, loaded: list[WindowInterval], others: Iterable[WindowInterval]
    ) -> tuple[list[WindowInterval], list[WindowInterval]]:
        every = list(each(loaded, self.grid))
        kept = [window for window in every if self._stays(*window)]
        highs: dict[int, int] = {}
        for start, end, _ in kept:
            highs[start] = max(end, highs.get(start, end))
        old = [window for window in every if not self._stays(*window)]
        old += [window for window in each(others, self.grid) if highs.get(window[0], window[0]) < window[1]]
        return (loaded if len(kept) == len(every) else self._intervals(kept)), self._intervals(old)

    def _stays(self, start: int, end: int, grid: Grid) -> bool:
        """Whether a window that is loaded is cut now as it was, or lies before all that are."""
        if end <= self.begin:
            return True
        index = self.windows.index.get(start)
        if index is None:
            return False
        whole = self.windows.cut.get(index, self.windows.ends[index])
        most = whole if index in self.windows.open else self.windows.ends[index]
        return grid.end(start) == whole and end <= most

    def _intervals(self, loaded: Iterable[tuple[int, int, Grid]]) -> list[WindowInterval]:
        """As few intervals as it takes; of one start the latest end counts."""
        highest: dict[int, tuple[int, Grid]] = {}
        for start, end, grid in loaded:
            if start not in highest or highest[start][0] < end:
                highest[start] = end, grid
        made: list[WindowInterval] = []
        for start in sorted(highest):
            end, grid = highest[start]
            interval: WindowInterval = [start, end] if grid == self.grid else [start, end, grid.text]
            last = made[-1] if made else None
            if (
                last is not None
                and last[1] == start
                and last[2:] == interval[2:]
                and self._follows(last, grid)
            ):
                last[1] = end
            else:
                made.append(interval)
        return made

    def _follows(self, last: WindowInterval, grid: Grid) -> bool:
        return grid.grain != "none" and steps(grid, last[0]).on(last[1])


def holding(old: Sequence[Bound], index: int) -> Bound | None:
    """The bound that holds a window."""
    place = bisect_left(old, index + 1, key=lambda bound: bound.first) - 1
    return old[place] if place >= 0 and index < old[place].after else None
