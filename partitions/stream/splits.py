"""What a stream says of its splits (docs/reference/streams.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from partitions.stream.event_time import Span
from partitions.stream.split_changes import Mode


@dataclass(frozen=True)
class Splits:
    """Which splits are waited for, and what becomes of those that say nothing.

    Attributes:
        timeout: how far rows of one split may be out of order.
        declared: the global watermark waits for each of them.
        least: so many splits have a watermark before there is a global one.
        idle: what an idle split does: ``exclude`` leaves the minimum, ``adopt_max`` takes the maximum of all, ``stall`` is waited for.
        idle_after: so many epochs without rows make a split idle.
        scaling: what a change of the set of splits does.
    """

    timeout: Span
    declared: frozenset[str] = frozenset()
    least: int = 0
    idle: Literal["exclude", "adopt_max", "stall"] = "exclude"
    idle_after: int = 5
    scaling: Mode = "split"


ONLY_SPLIT = ""
"""The name of the split of a stream that is one split."""


def split_in_words(name: str) -> str:
    """Return how a message names a split."""
    return f"split {name}" if name != ONLY_SPLIT else "the stream's only split"
