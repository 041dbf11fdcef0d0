"""Old windows: windows as an earlier definition cut them, whose rows are still in the table.

They matter if rows are known only by the start of their window: such a row does not tell which current
window holds it. So a read that overlaps an old window deletes that whole window, and must read all of its
time in the same commit. Windows that share an old one are *tied* to each other; the parts of it that no
current window covers are read together with them. So no commit loses or doubles a row.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from partitions.intervals import Interval, find_gaps
from partitions.window.calendar_grid import Grid, steps
from partitions.window.state import WindowState
from partitions.window.window_intervals import WindowInterval
from partitions.window.windows import Windows


class TiedWindows(NamedTuple):
    """Windows that must be read in one commit.

    Attributes:
        first: the first window's index.
        after: the index after the last window.
        old: the old windows that are deleted, ascending.
        rest: the parts of old windows that no current window covers.
    """

    first: int
    after: int
    old: tuple[Interval, ...]
    rest: tuple[Interval, ...]


def tie_windows(old: Sequence[Interval], windows: Windows) -> list[TiedWindows]:
    """Return the groups of windows that share old windows.

    Args:
        old: the old windows of a unit, ascending.
        windows: all current windows.

    Returns:
        the groups, ascending; an old window that no window touches is in none.
    """
    tied: list[TiedWindows] = []
    number = 0
    while number < len(old):
        begin, (lower, upper) = number, old[number]
        number, last_span = number + 1, (0, 0)
        while True:
            touched = windows.touching(lower, upper)
            if touched:
                lower, upper = (
                    min(lower, windows.starts[touched.start]),
                    max(upper, windows.ends[touched.stop - 1]),
                )
            while number < len(old) and old[number][0] < upper:
                upper, number = max(upper, old[number][1]), number + 1
            if last_span == (lower, upper):
                break
            last_span = lower, upper
        if touched:
            inside = [windows[index] for index in touched]
            rest = tuple(find_gaps(inside, lower, upper))
            tied.append(TiedWindows(touched.start, touched.stop, tuple(old[begin:number]), rest))
    return tied


def missing_stretches(tied_windows: TiedWindows, windows: Windows) -> tuple[Interval, ...]:
    """Return the stretches that windows must cover before a whole-window source can read tied ones.

    A remainder before the first window that is shorter than a window is none of them: another time zone
    reads the same days.
    """
    first = windows.starts[tied_windows.first]
    grid = windows.stretches[windows.stretch(tied_windows.first)].grid
    return tuple(part for part in tied_windows.rest if part[0] >= first or grid.end(part[0]) <= part[1])


def split_windows(intervals: Iterable[WindowInterval], grid: Grid) -> Iterator[tuple[int, int, Grid]]:
    """Yield every window of intervals, with its end so far and its grid.

    Args:
        intervals: one unit's intervals.
        grid: the grid of intervals that carry none of their own.
    """
    for interval in intervals:
        own = Grid.parse(interval[2]) if len(interval) > 2 else grid
        start, windows = interval[0], steps(own, interval[0])
        while start < interval[1]:
            end = windows.next(start)
            yield start, min(end, interval[1]), own
            start = end


def recut_state(state: WindowState, before: WindowState | None, windows: Windows, begin: int) -> WindowState:
    """Return the state under newly cut windows; changed windows are not loaded, and their rows are old.

    Args:
        state: the loaded windows; its default grid is the definition's.
        before: the state of the table; None: ``state`` describes the table, too.
        windows: all current windows.
        begin: the earliest start of a window; windows that end before it stay as they are.
    """
    recutter = _Recutter(state.grid, windows, begin, {})
    table_state = before.rebased(state.grid) if before is not None else WindowState(state.grid)
    parts = (state.units, state.old, table_state.units, table_state.old)
    units: dict[str, list[WindowInterval]] = {}
    old_of: dict[str, list[WindowInterval]] = {}
    for unit in dict.fromkeys(name for part in parts for name in part):
        loaded, old = recutter.recut_unit(*(part.get(unit, []) for part in parts))
        if loaded:
            units[unit] = loaded
        if old:
            old_of[unit] = old
    return replace(state, units=units, old=old_of)


@dataclass(frozen=True)
class _Recutter:
    grid: Grid
    windows: Windows
    begin: int
    cache: dict[str, tuple[list[WindowInterval], list[WindowInterval]]]

    def recut_unit(
        self,
        loaded: list[WindowInterval],
        old: list[WindowInterval],
        loaded_before: list[WindowInterval],
        old_before: list[WindowInterval],
    ) -> tuple[list[WindowInterval], list[WindowInterval]]:
        """Return a unit's intervals that stay loaded, and its old ones.

        The result is cached, since most units have the same intervals.
        """
        key = repr((loaded, old, loaded_before, old_before))
        if key not in self.cache:
            self.cache[key] = self._recut(loaded, [*old, *loaded_before, *old_before])
        return self.cache[key]

    def _recut(
        self, loaded: list[WindowInterval], other_intervals: Iterable[WindowInterval]
    ) -> tuple[list[WindowInterval], list[WindowInterval]]:
        loaded_windows = list(split_windows(loaded, self.grid))
        staying = [window for window in loaded_windows if self._is_cut_as_before(*window)]
        highs: dict[int, int] = {}
        for start, end, _ in staying:
            highs[start] = max(end, highs.get(start, end))
        old = [window for window in loaded_windows if not self._is_cut_as_before(*window)]
        old += [
            window
            for window in split_windows(other_intervals, self.grid)
            if highs.get(window[0], window[0]) < window[1]
        ]
        return (loaded if len(staying) == len(loaded_windows) else self._intervals(staying)), self._intervals(
            old
        )

    def _is_cut_as_before(self, start: int, end: int, grid: Grid) -> bool:
        """Return whether a loaded window is still cut as before, or lies before all current windows."""
        if end <= self.begin:
            return True
        index = self.windows.index.get(start)
        if index is None:
            return False
        whole = self.windows.cut.get(index, self.windows.ends[index])
        latest_end = whole if index in self.windows.open else self.windows.ends[index]
        return grid.end(start) == whole and end <= latest_end

    def _intervals(self, loaded: Iterable[tuple[int, int, Grid]]) -> list[WindowInterval]:
        """Return windows as few intervals; of windows with the same start the latest end counts."""
        highest: dict[int, tuple[int, Grid]] = {}
        for start, end, grid in loaded:
            if start not in highest or highest[start][0] < end:
                highest[start] = end, grid
        intervals: list[WindowInterval] = []
        for start in sorted(highest):
            end, grid = highest[start]
            interval: WindowInterval = [start, end] if grid == self.grid else [start, end, grid.text]
            last = intervals[-1] if intervals else None
            if (
                last is not None
                and last[1] == start
                and last[2:] == interval[2:]
                and self._follows(last, grid)
            ):
                last[1] = end
            else:
                intervals.append(interval)
        return intervals

    def _follows(self, last: WindowInterval, grid: Grid) -> bool:
        return grid.grain != "none" and steps(grid, last[0]).is_start(last[1])


def find_tied_windows(tied: Sequence[TiedWindows], index: int) -> TiedWindows | None:
    """Return the tied windows that include a window; None if there are none."""
    position = bisect_left(tied, index + 1, key=lambda tied_windows: tied_windows.first) - 1
    return tied[position] if position >= 0 and index < tied[position].after else None
