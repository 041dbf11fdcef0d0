"""Say in words how far a window watermark reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from partitions.instants import as_datetime
from partitions.plan import pluralize

_WITHOUT_UNITS = ["{}"]


def reach_in_words(watermark: Mapping[str, Any]) -> str:
    """Return how far all units are loaded, and how far the furthest one.

    A unit that fails or waits holds the first back.
    """
    loaded, failed = watermark["units"], watermark.get("failed", {})
    units = {**loaded, **failed}
    failures = sum(1 for of_unit in failed.values() for failure in of_unit.values() if failure[0])
    reached = [_gapless_end(loaded.get(unit, ()), failed.get(unit, {})) for unit in units]
    ends = [run[1] for runs in loaded.values() for run in runs]
    has_units = list(units) != _WITHOUT_UNITS
    parts = [_reach_of_units(max(ends), reached, has_units)] if ends else []
    if has_units and not (ends and _count_behind(max(ends), reached)):
        parts.append(pluralize(len(units), "unit"))
    parts += [f"{pluralize(failures, 'work unit')} failed"] if failures else []
    return ", ".join(parts) or "none"


def _reach_of_units(furthest: int, reached: Sequence[int | None], has_units: bool) -> str:
    """Return how far the units are loaded: all of them, and the furthest one."""
    up_to = f"up to {as_datetime(furthest).isoformat()}"
    behind = _count_behind(furthest, reached)
    if not behind:
        return up_to
    ends = [end for end in reached if end is not None]
    complete = (
        f"complete up to {as_datetime(min(ends)).isoformat()}"
        if len(ends) == len(reached)
        else "some units are not started"
    )
    of_units = f" ({behind:,} of {pluralize(len(reached), 'unit')} behind)" if has_units else ""
    return f"{complete}, at most {up_to}{of_units}"


def _count_behind(furthest: int, reached: Sequence[int | None]) -> int:
    """Return how many units end before the furthest end."""
    return sum(1 for end in reached if end is None or end < furthest)


def _gapless_end(runs: Any, failed: Mapping[str, Any]) -> int | None:
    """Return the end up to which a unit is loaded without gap or failure; None if nothing is."""
    if not runs:
        return None
    end: int = runs[0][1]
    for run in runs[1:]:
        if run[0] > end:
            break
        end = max(end, run[1])
    failing = [int(start) for start, failure in failed.items() if failure[0] and start != "-"]
    return min([end, *failing])
