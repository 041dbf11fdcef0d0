"""The planned windows that a state knows.

An interval was cut by its own grid, and applies only to windows that start where its own windows did.
Windows are ranges of indexes here. So a complete unit costs the same however many windows it has.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from partitions.window.calendar_grid import Grid, steps
from partitions.window.state import WindowState
from partitions.window.window_intervals import WindowInterval
from partitions.window.windows import Windows

LoadedRange = tuple[int, int, int | None]
"""Windows ``[first, after)`` with a high: their end, or the third member if it differs from the end."""


@dataclass(frozen=True)
class LoadedWindows:
    """Matches the intervals of a state with planned windows.

    Attributes:
        state: the committed state; its default grid is the definition's.
        windows: all windows of the plan.
    """

    state: WindowState
    windows: Windows
    _coinciding: dict[tuple[int, int, str], MatchingWindows] = field(default_factory=dict)

    def of_unit(self, unit: str) -> list[LoadedRange]:
        """Return the windows of a unit that have a high, ascending.

        If a window has two highs, the higher one counts.
        """
        loaded: list[LoadedRange] = []
        firsts, afters = self.edges
        reached, apart = 0, True
        for interval in self.state.units.get(unit, ()):
            first, after = firsts.get(interval[0]), afters.get(interval[1])
            if first is None or after is None or len(interval) > 2:
                loaded += self.of(interval)
                apart = False
                continue
            loaded.append((first, after, None))
            if first < reached:
                apart = False
            reached = after
        if not apart:
            loaded.sort(key=lambda loaded_range: loaded_range[:2])
            if any(below[1] > above[0] for below, above in pairwise(loaded)):
                return _merge_highs(loaded, self.windows)
        return loaded

    def matching_windows(self, intervals: Iterable[WindowInterval]) -> list[tuple[int, int]]:
        """Return the windows that these intervals apply to; adjacent ranges are joined."""
        merged: list[tuple[int, int]] = []
        for first, after in sorted(part[:2] for interval in intervals for part in self.of(interval)):
            if merged and first <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(after, merged[-1][1])
            else:
                merged.append((first, after))
        return merged

    def of(self, interval: WindowInterval) -> Iterator[LoadedRange]:
        """Yield the planned windows that an interval applies to."""
        windows, high, coinciding = self.windows, interval[1], self._coincide(interval)
        for first, last in coinciding.ranges:
            # Only the last may be partly loaded; and a window that now cuts short may be loaded beyond now.
            odd = high < windows.ends[last - 1] or last - 1 in windows.cut
            if last - odd > first:
                yield first, last - odd, None
            if odd:
                whole = windows.cut.get(last - 1, windows.ends[last - 1])
                yield last - 1, last, min(high, whole)
        for index, end in coinciding.singles:
            yield index, index + 1, min(high, end)

    @cached_property
    def edges(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return indexes by start, and indexes after by end, of windows that the state's default grid cuts.

        Ends that are not the grid's are left out.
        """
        windows = self.windows
        for stretch, (first, after) in zip(windows.stretches, windows.bounds, strict=True):
            if stretch.grid == self.state.grid:
                inside = range(first, after)
                return {windows.starts[index]: index for index in inside}, {
                    windows.ends[index]: index + 1 for index in inside if index not in windows.cut
                }
        return {}, {}

    def _coincide(self, interval: WindowInterval) -> MatchingWindows:
        grid = self.state.grid_of(interval)
        key = (interval[0], interval[1], grid.text)
        if key not in self._coinciding:
            self._coinciding[key] = MatchingWindows.of(self.windows, grid, interval[0], interval[1])
        return self._coinciding[key]


@dataclass(frozen=True)
class MatchingWindows:
    """Planned windows that start where windows of an interval start, below its high.

    Attributes:
        ranges: windows of the same grid, as ranges of indexes.
        singles: windows of another grid, with the end that the interval's grid gives them.
    """

    ranges: tuple[tuple[int, int], ...]
    singles: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, windows: Windows, grid: Grid, start: int, high: int) -> MatchingWindows:
        """Match the windows with the windows of a grid from a start up to a high."""
        ranges, singles, own = [], [], steps(grid, start)
        for stretch, (first, after) in zip(windows.stretches, windows.bounds, strict=True):
            below = bisect_left(windows.starts, start, first, after)
            above = bisect_left(windows.starts, high, below, after)
            same = (index for index in range(below, above) if own.is_start(windows.starts[index]))
            if stretch.grid == grid:
                if (lowest := next(same, None)) is not None:
                    ranges.append((lowest, above))
            else:
                singles += [(index, own.next(windows.starts[index])) for index in same]
        return cls(tuple(ranges), tuple(singles))


def _merge_highs(loaded: Sequence[LoadedRange], windows: Windows) -> list[LoadedRange]:
    """Merge ranges that overlap: of several highs of a window the highest counts; ``loaded`` is ascending."""
    merged: list[LoadedRange] = []
    edges = sorted({edge for first, after, _ in loaded for edge in (first, after)})
    number, active = 0, list[LoadedRange]()
    for first, after in pairwise(edges):
        while number < len(loaded) and loaded[number][0] == first:
            active.append(loaded[number])
            number += 1
        active = [answer for answer in active if answer[1] > first]
        if active:
            # A range of several windows is fully loaded, so its high is its end.
            ends = [windows.ends[first] if high is None else high for _, _, high in active]
            whole = max(ends) == windows.ends[first] and first not in windows.cut
            merged.append((first, after, None if whole else max(ends)))
    return merged
