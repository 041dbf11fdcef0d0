"""Watermarks and holders in a few words, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partitions.errors import StrandlineError
from partitions.instants import time_in_words
from partitions.sentinels import deserialise
from platform_assets.kinds import PROFILES


def in_words(kind: str | None, watermark: Mapping[str, Any] | None) -> str:
    """Return a watermark in a few words, from its JSON form or from its values.

    Args:
        kind: of the entry that holds it; None without one.
        watermark: None or empty if nothing is loaded.
    """
    return PROFILES[kind].watermark_in_words(watermark) if kind and watermark else "none"


def stored_in_words(kind: str, text: str) -> str:
    """Return a watermark in a few words, from its stored text; one that does not read stays as it is."""
    try:
        return in_words(kind, deserialise(text))
    except (
        StrandlineError,
        LookupError,
        TypeError,
        AttributeError,
    ):  # decisions are made for such states, too
        return text


def held_in_words(held: Mapping[str, Any]) -> str:
    """Return who holds the next number of a dataflow, as :func:`resources.loop.lease.held_by` finds it."""
    run = f"run {held['run_id'][:8]}, " if held["run_id"] else ""
    who = f"number {held['number']} is held by {run}process {held['process']} on {held['host']} since {time_in_words(held['since'])}"
    if held["alive"] is not None:
        return (
            f"{who}: {'it runs' if held['alive'] else 'it is gone, and the next run finishes what it began'}"
        )
    if not held["renewed"]:
        return f"{who}: it has no lease, so the next run looks for one and finishes what it began"
    return f"{who}: it last renewed its lease at {time_in_words(held['renewed'])} (by the clock there); if it does so no more, the next run finishes what it began"
