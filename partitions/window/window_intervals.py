"""Intervals of a unit: each holds consecutive windows of one grid.

A *window interval* ``[start, end]`` covers consecutive windows from ``start`` on. All are complete except
perhaps the last, which is loaded up to ``end``. A fully loaded unit therefore needs only one interval. An
interval of another grid than the state's default carries that grid's text as its third member.
See docs/explanation/adr/0010-the-state-of-windows-is-intervals.md.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from partitions.window.calendar_grid import Grid, steps

WindowInterval = list[Any]
"""``[start, end]`` or ``[start, end, grid]``, epoch milliseconds."""


class WindowIntervals:
    """The mutable, sorted list of one unit's intervals.

    The interval lists that it starts with are never modified.
    """

    def __init__(self, intervals: Sequence[WindowInterval], grid: Grid) -> None:
        """Copy the list of intervals.

        Args:
            intervals: the intervals, ascending by start.
            grid: the grid of intervals that carry none of their own.
        """
        self.items = list(intervals)
        self._grid = grid
        # Intervals of one definition do not overlap, so only the nearest below can hold an instant. After a change of grids, or
        # if ``from`` moves, all must be searched.
        self._is_disjoint = all(low[1] <= high[0] for low, high in pairwise(self.items))

    def grid(self, interval: WindowInterval) -> Grid:
        """Return the grid that cut an interval."""
        return Grid.parse(interval[2]) if len(interval) > 2 else self._grid

    def high(self, start: int) -> int | None:
        """Return the end up to which the window with this start is loaded; None if it is not loaded."""
        return max((high for _, high in self._find_holders(start)), default=None)

    def raise_high(self, start: int, end: int, grid: Grid) -> int | None:
        """Record a window as loaded up to an end, unless it already reaches further.

        Returns:
            the end up to which it was loaded before; None if it was not loaded.
        """
        holders = list(self._find_holders(start))
        before = max((high for _, high in holders), default=None)
        if before is None or end > before:
            ends = (
                index
                for index, high in holders
                if self.items[index][1] == high and self.grid(self.items[index]) == grid
            )
            if (grown_index := next(ends, None)) is None:
                grown_index = self._insert([start, end] if grid == self._grid else [start, end, grid.text])
            else:  # its last window has grown
                self._replace_at(grown_index, [self.items[grown_index][0], end, *self.items[grown_index][2:]])
            self._join(grown_index)
        return before

    def add(self, start: int, end: int, grid: Grid) -> None:
        """Add the windows of a grid from ``start`` to ``end``."""
        for interval in [interval for interval in self.items if self._can_merge(interval, start, end, grid)]:
            start, end = min(start, interval[0]), max(end, interval[1])
            self.items.remove(interval)
        self._insert([start, end] if grid == self._grid else [start, end, grid.text])

    def drop(self, start: int) -> None:
        """Remove the window with this start."""
        for index, _ in sorted(self._find_holders(start), reverse=True):
            interval = self.items.pop(index)
            after = steps(self.grid(interval), interval[0]).next(start)
            for first, end in ((interval[0], start), (after, interval[1])):
                if first < end:
                    self._insert([first, end, *interval[2:]])

    def covers(self, interval: WindowInterval, grid: Grid) -> bool:
        """Return whether each window of an interval is loaded at least as far as in the interval."""
        for index, _ in self._find_holders(interval[0]):
            if self.items[index][1] >= interval[1] and self.grid(self.items[index]) == grid:
                return True
        start, windows = interval[0], steps(grid, interval[0])
        while start < interval[1]:
            end = windows.next(start)
            if (self.high(start) or start) < min(end, interval[1]):
                return False
            start = end
        return True

    def _find_holders(self, start: int) -> Iterator[tuple[int, int]]:
        """Yield the indexes of intervals that hold the window with this start, each with its loaded end."""
        below = bisect_right(self.items, start, key=_start)
        for index in range(max(below - 1, 0) if self._is_disjoint else 0, below):
            interval = self.items[index]
            if start < interval[1]:
                windows = steps(self.grid(interval), interval[0])
                if windows.is_start(start):
                    yield index, min(windows.next(start), interval[1])

    def _join(self, index: int) -> None:
        """Join an interval with its neighbours if the windows of both are consecutive."""
        interval = self.items[index]
        for neighbour in self._candidates_after(index, interval[1]):
            if self._is_followed_by(interval, self.items[neighbour]):
                interval = [interval[0], self.items[neighbour][1], *interval[2:]]
                self.items[index] = interval
                del self.items[neighbour]
                break
        for neighbour in range(index - 1, index - 2 if self._is_disjoint else -1, -1):
            if neighbour >= 0 and self._is_followed_by(self.items[neighbour], interval):
                self.items[neighbour] = [self.items[neighbour][0], interval[1], *interval[2:]]
                del self.items[index]
                break

    def _candidates_after(self, index: int, end: int) -> range:
        if self._is_disjoint:
            return range(index + 1, min(index + 2, len(self.items)))
        return range(bisect_left(self.items, end, key=_start), bisect_right(self.items, end, key=_start))

    def _is_followed_by(self, interval: WindowInterval, candidate: WindowInterval) -> bool:
        return (
            interval[1] == candidate[0]
            and interval[2:] == candidate[2:]
            and self.grid(interval).grain != "none"
            and steps(self.grid(interval), interval[0]).is_start(candidate[0])
        )

    def _can_merge(self, interval: WindowInterval, start: int, end: int, grid: Grid) -> bool:
        if interval[0] > end or start > interval[1] or self.grid(interval) != grid:
            return False
        return steps(grid, min(interval[0], start)).is_start(max(interval[0], start))

    def _insert(self, interval: WindowInterval) -> int:
        index = bisect_left(self.items, interval[0], key=_start)
        self.items.insert(index, interval)
        self._replace_at(index, interval)
        return index

    def _replace_at(self, index: int, interval: WindowInterval) -> None:
        self.items[index] = interval
        near = self.items[max(index - 1, 0) : index + 2]
        self._is_disjoint = self._is_disjoint and all(low[1] <= high[0] for low, high in pairwise(near))


def _start(interval: WindowInterval) -> int:
    return int(interval[0])
