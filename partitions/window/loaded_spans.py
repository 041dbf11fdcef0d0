"""The windows of a state that are loaded and that no run will read again, as whole windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from partitions.window.calendar_grid import steps
from partitions.window.state import WindowState

Span = tuple[int, int]
"""A window: its start and its end, exclusive, epoch milliseconds."""


def loaded_spans(state: WindowState) -> Mapping[str, Sequence[Span]]:
    """Return the loaded windows of each unit, ascending; a unit without one is left out.

    Windows that still grow, that have failed, or that runs will read again take no part.
    """
    loaded: dict[str, list[Span]] = {}
    for unit, intervals in state.units.items():
        waiting = list(_waiting(state, unit))
        spans: dict[int, Span] = {}
        for interval in intervals:
            start, high = interval[:2]
            windows = steps(state.grid_of(interval), start)
            while start < high:
                end = windows.next(start)
                if end <= high and not any(lower < end and start < upper for lower, upper in waiting):
                    spans[start] = (start, end)
                start = end
        if spans:
            loaded[unit] = [spans[start] for start in sorted(spans)]
    return loaded


def _waiting(state: WindowState, unit: str) -> Iterator[Span]:
    """Yield stretches of a unit that runs will read again."""
    for of_units in (state.over_cap, state.reread_whole, state.early, state.changed):
        for stretch in of_units.get(unit, ()):
            yield stretch[0], stretch[1]
    for start in (
        *state.open.get(unit, ()),
        *(start for start in state.failed.get(unit, ()) if start is not None),
    ):
        yield start, start + 1
