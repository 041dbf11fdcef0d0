"""The options of a stream's splits (docs/reference/streams.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from partitions.stream.event_time import Span
from partitions.stream.split_changes import Mode


@dataclass(frozen=True)
class SplitOptions:
    """The options that decide which splits are awaited, and when one is idle.

    Attributes:
        timeout: how far rows of one split may be out of order.
        declared: the global watermark waits for each of them.
        least: the number of splits that need a watermark before there is a global one.
        idle: ``exclude`` leaves an idle split out of the minimum, ``adopt_max`` gives it the maximum of
        all, ``stall`` waits for it.
        idle_after: the number of epochs without rows that make a split idle.
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
    """Return the name of a split for messages."""
    return f"split {name}" if name != ONLY_SPLIT else "the stream's only split"
