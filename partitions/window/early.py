"""Windows that a clock running ahead loaded before their end; they are read again once they are over.

See docs/reference/windows.md, A clock that ran ahead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from partitions.instants import HOUR, floor_minute, milliseconds
from partitions.intervals import Interval, subtract, union
from partitions.window.state import WindowState
from partitions.window.work_outcomes import WindowSpan

AHEAD = HOUR
"""How far a high may lie above now, since the clocks of machines differ."""


def find_early_start(state: WindowState, now: datetime, history: Iterable[tuple[int, int]]) -> int | None:
    """Return the instant beyond which a clock that ran ahead has loaded windows, in epoch milliseconds.

    None: no clock ran ahead, or the state already records these windows.

    Args:
        state: the committed state.
        now: the clock, aware.
        history: the time and the highest high of each entry, epoch milliseconds, newest first.
    """
    limit = milliseconds(now) + AHEAD
    is_recorded = all(
        not subtract(_spans(intervals), union(_spans(state.early.get(unit, ()))))
        for unit, intervals in state.loaded_after(limit).items()
    )
    if is_recorded:
        return None
    # The first entry that ran ahead tells the time, unless its clock was wrong, too; then the entry before; then that entry's high.
    times: list[int] = []
    for time, highest in history:
        times.insert(0, time)
        if highest <= limit:
            times = [*times[1:2], times[0], highest]
            break
    return next((at for at in times[:3] if at <= milliseconds(now)), 0)


def loaded_early(state: WindowState, early_since: int | None) -> Iterator[WindowSpan]:
    """Yield the loaded windows beyond an instant; nothing if it is None."""
    if early_since is not None:
        for unit, intervals in state.loaded_after(early_since).items():
            for interval in intervals:
                yield WindowSpan(unit, interval[0], interval[1], state.grid_of(interval).text)


def still_to_come(state: WindowState, now: datetime) -> dict[Interval, list[str]]:
    """Return the stretches that are loaded but not over yet, each with its units."""
    minute = floor_minute(now)
    units: dict[Interval, list[str]] = {}
    early, above = state.early, state.loaded_after(minute + AHEAD)
    for unit in dict.fromkeys([*early, *above]):
        intervals = (*early.get(unit, ()), *above.get(unit, ()))
        ahead = sorted((interval[0], interval[1]) for interval in intervals if interval[1] > minute)
        for stretch in union(ahead):
            units.setdefault(stretch, []).append(unit)
    return units


def _spans(intervals: Iterable[list[int]]) -> list[Interval]:
    return sorted((interval[0], interval[1]) for interval in intervals)
