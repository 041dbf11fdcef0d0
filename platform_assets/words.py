"""Watermarks and holders in a few words, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partitions.errors import StrandlineError
from partitions.instants import time_text
from partitions.reconcile.differences import RangeCounts
from partitions.reconcile.result import LEVEL_WORDS, counts_in_words
from partitions.sentinels import deserialise
from platform_assets.kinds import PROFILES
from resources.notes.reconciled import Verified
from resources.outcome import Outcome


def in_words(kind: str | None, watermark: Mapping[str, Any] | None) -> str:
    """Return a watermark in a few words, from its JSON form or from its values.

    Args:
        kind: the kind of the entry that holds it; None without one.
        watermark: None or empty if nothing is loaded.
    """
    return PROFILES[kind].watermark_in_words(watermark) if kind and watermark else "none"


def of_outcome_in_words(kind: str | None, outcome: Outcome, watermark: Mapping[str, Any] | None) -> str:
    """Return the watermark before or after a run in a few words.

    Args:
        kind: the kind of its entries; None without one.
        outcome: the run.
        watermark: None or empty if nothing is loaded.
    """
    return PROFILES[kind].outcome_watermark(outcome, watermark) if kind and watermark else "none"


def stored_in_words(kind: str, text: str) -> str:
    """Return a watermark in a few words, from its stored text; unreadable text as it is."""
    try:
        return in_words(kind, deserialise(text))
    except (
        StrandlineError,
        LookupError,
        TypeError,
        AttributeError,
    ):  # an operator must see such a state to decide about it
        return text


def comparison_in_words(kind: str, verified: Verified) -> str:
    """Return what the last comparison of source and table showed."""
    lower, profile = deserialise(verified.lower), PROFILES[kind]
    start = f"from {profile.reach_in_words(lower)} " if lower else ""
    end = f"up to {profile.reach_in_words(verified.watermark)}, " if verified.watermark else ""
    what = f"{start}{end}on {time_text(verified.time)}"
    compared = LEVEL_WORDS[verified.level]
    if verified.is_equal:
        return f"verified {what}: {compared} of source and table are equal"
    counts = RangeCounts(verified.missing, verified.extra, verified.different)
    if verified.repaired is not None:
        repaired = counts_in_words(counts, verified.level)
        return f"verified {what}: {repaired}, repaired by entry {verified.repaired}"
    return f"differs from the source {what}: {counts_in_words(counts, verified.level)}"


def failed_until_now(since: str) -> str:
    """Return that a failure is over, as a look by this command has shown.

    Args:
        since: when the failure began, ISO.
    """
    return (
        f"failed until now (since {time_text(since)}): the source answers now; the next look or run ends it"
    )


def holder_in_words(holder: Mapping[str, Any]) -> str:
    """Return who holds the next number of a dataflow, from :func:`resources.loop.lease.describe_holder`."""
    run = f"run {holder['run_id'][:8]}, " if holder["run_id"] else ""
    holding = f"number {holder['number']} is held by {run}process {holder['process']} on {holder['host']} since {time_text(holder['since'])}"
    if holder["alive"] is not None:
        return f"{holding}: {'it runs' if holder['alive'] else 'it has ended; the next run takes over'}"
    if not holder["renewed"]:
        return f"{holding}: it has no lease; the next run waits for one, then takes over"
    return f"{holding}: its lease was last renewed at {time_text(holder['renewed'])} (that machine's clock). If it stops renewing, the next run takes over"
