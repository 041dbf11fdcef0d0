"""What several states hold together: how far rows may be in a table (spec 09, state rewind)."""

from __future__ import annotations

from collections.abc import Iterable

from partitions.window.state import Run, WindowState


def covering(states: Iterable[WindowState]) -> WindowState:
    """What covers all of these states, and nothing lower does: of each unit their runs, without those that lie in others."""
    found: dict[str, list[Run]] = {}
    for state in states:
        for unit, runs in state.units.items():
            found.setdefault(unit, []).extend([*run[:2], state.grid_of(run).text] for run in runs)
    return WindowState(units={unit: _widest(runs) for unit, runs in found.items()})


def _widest(runs: Iterable[Run]) -> list[Run]:
    kept: list[Run] = []
    for run in sorted(runs, key=lambda one: (one[2], one[0], -one[1])):
        if not kept or kept[-1][2] != run[2] or kept[-1][1] < run[1]:
            kept.append(run)
    return sorted(kept)
