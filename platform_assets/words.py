"""Watermarks and times in a few words, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partitions.instants import as_datetime
from partitions.plan import counted


def in_words(watermark: Mapping[str, Any] | None) -> str:
    """A path, or how much a longer watermark holds."""
    if not watermark:
        return "none"
    if "path" in watermark:
        return str(watermark["path"])
    if "units" in watermark:
        return _windows(watermark)
    closed = watermark.get("closed_before")
    return f"{counted(len(watermark.get('paths', {})), 'open partition')}, closed before {closed}"


def _windows(watermark: Mapping[str, Any]) -> str:
    """How far all units are loaded, and how far the furthest: a unit that fails, or waits, has not got there."""
    known, failed = watermark["units"], watermark.get("failed", {})
    ends = [run[1] for runs in known.values() for run in runs]
    units = {**known, **failed}
    wanting = sum(1 for of_unit in failed.values() for one in of_unit.values() if one[0])
    reached = [_reached(known.get(unit, ()), failed.get(unit, {})) for unit in units]
    told = []
    if ends:
        furthest, behind = max(ends), sum(1 for end in reached if end is None or end < max(ends))
        told.append(f"up to {as_datetime(furthest).isoformat()}")
        if behind:
            of_units = (
                f" ({behind:,} of {counted(len(units), 'unit')} behind)" if list(units) != ["{}"] else ""
            )
            whole = [end for end in reached if end is not None]
            all_up_to = as_datetime(min(whole)).isoformat() if len(whole) == len(reached) else None
            told = [
                f"complete up to {all_up_to}" if all_up_to else "not all is begun",
                f"at most {told[0]}{of_units}",
            ]
        elif list(units) != ["{}"]:
            told.append(counted(len(units), "unit"))
    elif list(units) != ["{}"]:
        told.append(counted(len(units), "unit"))
    told += [f"{counted(wanting, 'work unit')} failed"] if wanting else []
    return ", ".join(told) or "none"


def held_in_words(held: Mapping[str, Any]) -> str:
    """Who holds the next number of a dataflow, as :func:`resources.loop.lease.held_by` tells it."""
    run = f"run {held['run_id'][:8]}, " if held["run_id"] else ""
    who = f"number {held['number']} is held by {run}process {held['process']} on {held['host']} since {held['since']}"
    if held["alive"] is not None:
        return (
            f"{who}: {'it runs' if held['alive'] else 'it is gone, and the next run finishes what it began'}"
        )
    if not held["renewed"]:
        return f"{who}: it has no lease, so the next run looks for one and finishes what it began"
    return f"{who}: it last renewed its lease at {held['renewed']} (by the clock there); if it does so no more, the next run finishes what it began"


def _reached(runs: Any, failed: Mapping[str, Any]) -> int | None:
    """Up to where a unit is loaded without a gap or a failure; None where nothing is."""
    if not runs:
        return None
    end: int = runs[0][1]
    for run in runs[1:]:
        if run[0] > end:
            break
        end = max(end, run[1])
    failing = [int(start) for start, one in failed.items() if one[0] and start != "-"]
    return min([end, *failing])
