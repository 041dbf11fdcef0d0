"""Watermarks in a few words, for people."""

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
    units = watermark["units"]
    highs = [run[1] for runs in units.values() for run in runs]
    failed = sum(1 for of_unit in watermark.get("failed", {}).values() for one in of_unit.values() if one[0])
    told = [f"up to {as_datetime(max(highs)).isoformat()}"] if highs else []
    told += [counted(len(units), "unit")] if list(units) != ["{}"] else []
    told += [f"{failed:,} failed"] if failed else []
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
