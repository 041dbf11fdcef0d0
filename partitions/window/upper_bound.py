"""What several states hold together: how far rows may be in a table (docs/state.md)."""

from __future__ import annotations

from collections.abc import Iterable

from partitions.window.grid import Grid, steps
from partitions.window.state import Run, WindowState


def upper_bound(states: Iterable[WindowState]) -> WindowState:
    """Return the lowest state that covers all of these: of each unit their runs, those of the same windows as one."""
    found: dict[str, set[tuple[str, int, int]]] = {}
    for state in states:
        for unit, runs in state.units.items():
            found.setdefault(unit, set()).update((state.grid_of(run).text, run[0], run[1]) for run in runs)
    return WindowState(units={unit: _widest(sorted(runs)) for unit, runs in found.items()})


def _widest(runs: Iterable[tuple[str, int, int]]) -> list[Run]:
    kept: list[Run] = []
    near: list[Run] = []
    for grid, start, high in runs:
        near = [run for run in near if run[2] == grid and run[1] >= start]
        same = next((run for run in near if steps(Grid.parse(grid), run[0]).on(start)), None)
        if same is not None:
            same[1] = max(same[1], high)
        else:
            near.append([start, high, grid])
            kept.append(near[-1])
    return sorted(kept)
