"""Windows: half-open stretches of time, cut from ``from`` and ``to`` alone.

So every run cuts the same windows. ``partial`` decides whether the short last one is kept.

See docs/reference/windows.md.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from partitions.window.calendar_grid import Grid


class Window(NamedTuple):
    """``[start, end)`` in epoch milliseconds."""

    start: int
    end: int


@dataclass(frozen=True)
class Stretch:
    """A range of time that one grid cuts into windows.

    Attributes:
        fixed_end: whether the end never moves. A window that a moving end cuts short is *open*: it grows.
    """

    grid: Grid
    start: int
    end: int
    fixed_end: bool = False


@dataclass(frozen=True)
class Windows:
    """All windows of a definition at one instant, ascending.

    Attributes:
        stretches: the stretches, ascending, without overlaps; ``bounds`` has the windows of each.
        starts: the starts of all windows.
        ends: the ends of all windows, as they are planned.
        bounds: for each stretch, the index of its first window and the index after its last.
        cut: the indexes of windows that are shorter than in their grid, with the end that the grid gives
        them.
        open: the indexes in ``cut`` whose windows still grow.
    """

    stretches: tuple[Stretch, ...]
    starts: Sequence[int]
    ends: Sequence[int]
    bounds: tuple[tuple[int, int], ...]
    cut: dict[int, int] = field(default_factory=dict)
    open: frozenset[int] = frozenset()

    @classmethod
    def of(cls, stretches: Iterable[Stretch], *, partial: bool = True) -> Windows:
        """Cut stretches into windows.

        Args:
            stretches: ascending, without overlaps; an empty or inverted one has no window.
            partial: whether the short last window of a stretch is kept.
        """
        non_empty = tuple(stretch for stretch in stretches if stretch.start < stretch.end)
        starts: list[int] = []
        ends: list[int] = []
        bounds: list[tuple[int, int]] = []
        cut: dict[int, int] = {}
        growing: list[int] = []
        for stretch in non_empty:
            first = len(starts)
            for start, end in _cut(stretch):
                if end > stretch.end:
                    if not partial and stretch.grid.grain != "none":
                        break
                    cut[len(starts)] = end
                    if not stretch.fixed_end:
                        growing.append(len(starts))
                starts.append(start)
                ends.append(min(end, stretch.end))
            bounds.append((first, len(starts)))
        return cls(non_empty, starts, ends, tuple(bounds), cut, frozenset(growing))

    def __len__(self) -> int:
        """Return the number of windows."""
        return len(self.starts)

    def __iter__(self) -> Iterator[Window]:
        """Iterate over the windows."""
        return map(Window, self.starts, self.ends)

    def __getitem__(self, index: int) -> Window:
        """Return the window at an index."""
        return Window(self.starts[index], self.ends[index])

    @cached_property
    def index(self) -> dict[int, int]:
        """Return the indexes of windows by their starts."""
        return {start: index for index, start in enumerate(self.starts)}

    def stretch(self, index: int) -> int:
        """Return the index of the stretch that holds a window."""
        return next(number for number, (_, after) in enumerate(self.bounds) if index < after)

    def grid(self, index: int) -> Grid:
        """Return the grid that cuts a window."""
        return self.stretches[0 if len(self.stretches) == 1 else self.stretch(index)].grid

    def touching(self, start: int, end: int) -> range:
        """Return the indexes of the windows that intersect ``[start, end)``."""
        if start >= end or not self.starts:
            return range(0)
        first = bisect_left(self.starts, start + 1) - 1
        if first < 0 or self.ends[first] <= start:
            first += 1
        return range(first, max(first, bisect_left(self.starts, end)))


def _cut(stretch: Stretch) -> Iterator[tuple[int, int]]:
    start, size = stretch.start, stretch.grid.size
    if size:
        starts = range(start, stretch.end, size)
        yield from zip(starts, (at + size for at in starts), strict=True)
        return
    while start < stretch.end:
        end = stretch.grid.end(start)
        yield start, end
        start = end
