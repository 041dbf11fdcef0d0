"""Runs of a unit: windows of one grid that follow each other, as few lists as it takes (spec 02, The log).

A *run* is ``[start, end]``: the windows of a grid from ``start`` on, the last one up to ``end``. So a unit that is complete has one
run, however many windows it has. A run of another grid than the state's own carries that grid's text as its third member.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from partitions.window.grid import Grid, steps

Run = list[Any]
"""``[start, end]`` or ``[start, end, grid]``, epoch milliseconds."""


class Runs:
    """The runs of one unit, ascending by start, while they change. Those that were there before stay as they are."""

    def __init__(self, runs: Sequence[Run], grid: Grid) -> None:
        """Begin with runs.

        Args:
            runs: ascending by start.
            grid: of those that carry none.
        """
        self.items = list(runs)
        self._grid = grid
        # Runs of one definition lie apart, and the nearest below is the only one that can hold an instant; after a change of
        # grids, or where ``from`` moves, all have to be looked at.
        self._apart = all(one[1] <= other[0] for one, other in pairwise(self.items))

    def grid(self, run: Run) -> Grid:
        """How the windows of a run were cut."""
        return Grid.parse(run[2]) if len(run) > 2 else self._grid

    def high(self, start: int) -> int | None:
        """How far the window that starts there is loaded; None where nothing is known of it."""
        return max((high for _, high in self._holding(start)), default=None)

    def raised(self, start: int, end: int, grid: Grid) -> int | None:
        """Load a window of a grid up to an end. What is loaded further stays so.

        Returns:
            how far it was loaded before.
        """
        held = list(self._holding(start))
        before = max((high for _, high in held), default=None)
        if before is None or end > before:
            ends = (
                index
                for index, high in held
                if self.items[index][1] == high and self.grid(self.items[index]) == grid
            )
            if (grown := next(ends, None)) is None:
                grown = self._inserted([start, end] if grid == self._grid else [start, end, grid.text])
            else:  # its last window has grown
                self._set(grown, [self.items[grown][0], end, *self.items[grown][2:]])
            self._join(grown)
        return before

    def added(self, start: int, end: int, grid: Grid) -> None:
        """Unite with the windows of a grid from ``start`` to ``end``."""
        for run in [run for run in self.items if self._touches(run, start, end, grid)]:
            start, end = min(start, run[0]), max(end, run[1])
            self.items.remove(run)
        self._inserted([start, end] if grid == self._grid else [start, end, grid.text])

    def dropped(self, start: int) -> None:
        """Take out the window that starts there."""
        for index, _ in sorted(self._holding(start), reverse=True):
            run = self.items.pop(index)
            after = steps(self.grid(run), run[0]).next(start)
            for first, end in ((run[0], start), (after, run[1])):
                if first < end:
                    self._inserted([first, end, *run[2:]])

    def covers(self, run: Run, grid: Grid) -> bool:
        """Whether each window of a run is loaded as far as the run says."""
        for index, _ in self._holding(run[0]):
            if self.items[index][1] >= run[1] and self.grid(self.items[index]) == grid:
                return True
        start, windows = run[0], steps(grid, run[0])
        while start < run[1]:
            end = windows.next(start)
            if (self.high(start) or start) < min(end, run[1]):
                return False
            start = end
        return True

    def _holding(self, start: int) -> Iterator[tuple[int, int]]:
        """The indexes of runs that know the window which starts there, each with how far it is loaded."""
        below = bisect_right(self.items, start, key=_start)
        for index in range(max(below - 1, 0) if self._apart else 0, below):
            run = self.items[index]
            if start < run[1]:
                windows = steps(self.grid(run), run[0])
                if windows.on(start):
                    yield index, min(windows.next(start), run[1])

    def _join(self, index: int) -> None:
        """Make one run of those that follow each other."""
        run = self.items[index]
        for other in self._followers(index, run[1]):
            if self._follows(run, self.items[other]):
                run = [run[0], self.items[other][1], *run[2:]]
                self.items[index] = run
                del self.items[other]
                break
        for other in range(index - 1, index - 2 if self._apart else -1, -1):
            if other >= 0 and self._follows(self.items[other], run):
                self.items[other] = [self.items[other][0], run[1], *run[2:]]
                del self.items[index]
                break

    def _followers(self, index: int, end: int) -> range:
        if self._apart:
            return range(index + 1, min(index + 2, len(self.items)))
        return range(bisect_left(self.items, end, key=_start), bisect_right(self.items, end, key=_start))

    def _follows(self, run: Run, other: Run) -> bool:
        return (
            run[1] == other[0]
            and run[2:] == other[2:]
            and self.grid(run).grain != "none"
            and steps(self.grid(run), run[0]).on(other[0])
        )

    def _touches(self, run: Run, start: int, end: int, grid: Grid) -> bool:
        if run[0] > end or start > run[1] or self.grid(run) != grid:
            return False
        return steps(grid, min(run[0], start)).on(max(run[0], start))

    def _inserted(self, run: Run) -> int:
        index = bisect_left(self.items, run[0], key=_start)
        self.items.insert(index, run)
        self._set(index, run)
        return index

    def _set(self, index: int, run: Run) -> None:
        self.items[index] = run
        near = self.items[max(index - 1, 0) : index + 2]
        self._apart = self._apart and all(one[1] <= other[0] for one, other in pairwise(near))


def _start(run: Run) -> int:
    return int(run[0])
