"""The union of several states: how far a table may hold rows (docs/reference/state.md)."""

from __future__ import annotations

from collections.abc import Iterable

from partitions.window.calendar_grid import Grid, steps
from partitions.window.state import WindowState
from partitions.window.window_intervals import WindowInterval


def upper_bound(states: Iterable[WindowState]) -> WindowState:
    """Return the lowest state that covers all of these; overlapping intervals of one grid are joined."""
    intervals_of: dict[str, set[tuple[str, int, int]]] = {}
    for state in states:
        for unit, intervals in state.units.items():
            intervals_of.setdefault(unit, set()).update(
                (state.grid_of(interval).text, interval[0], interval[1]) for interval in intervals
            )
    return WindowState(units={unit: _widest(sorted(intervals)) for unit, intervals in intervals_of.items()})


def _widest(intervals: Iterable[tuple[str, int, int]]) -> list[WindowInterval]:
    intervals_of_unit: list[WindowInterval] = []
    near: list[WindowInterval] = []
    for grid, start, high in intervals:
        near = [interval for interval in near if interval[2] == grid and interval[1] >= start]
        same = next(
            (interval for interval in near if steps(Grid.parse(grid), interval[0]).is_start(start)), None
        )
        if same is not None:
            same[1] = max(same[1], high)
        else:
            near.append([start, high, grid])
            intervals_of_unit.append(near[-1])
    return sorted(intervals_of_unit)
