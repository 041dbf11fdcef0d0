"""Window definitions and states for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from partitions.window.calendar_grid import Grid
from partitions.window.definition import WindowWatermark
from partitions.window.state import WindowState
from partitions.window.window_intervals import WindowIntervals


def windowed(
    start: str | None = None,
    to: str = "-",
    window: Any = "daily",
    *,
    units: Sequence[Any] | None = None,
    field: str = "id",
    **more: Any,
) -> WindowWatermark:
    """Return a definition; without a start it has no time dimension, without units no units."""
    entries: list[dict[str, Any]] = []
    if start is not None:
        entries.append({"name": "system", "type": "datetime", "range": {"from": start, "to": to}})
    if units is not None:
        entries.append({"name": field, "type": "unit", "units": list(units)})
    return WindowWatermark.of({"definition": entries, "window": window, **more})


def with_high(state: WindowState, unit: str, start: int, high: int) -> WindowState:
    """Return the state with a window loaded up to a high, whatever its grid.

    A high that is not above the window's start adds nothing.
    """
    if high <= start:
        return state
    intervals = WindowIntervals(state.units.get(unit, ()), state.grid)
    intervals.raise_high(start, high, Grid("none"))
    return replace(state, units={**state.units, unit: intervals.items})
