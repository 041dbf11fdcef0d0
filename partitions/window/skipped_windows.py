"""The windows that a plan leaves out, such as those that wait (docs/how-to/chains.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from partitions.instants import milliseconds
from partitions.intervals import Interval
from partitions.plan import Skip

_SPAN = re.compile(r"\[([^,]+), ([^)]+)\)(?: of (.+))?")
"""A range as skips of a plan name it, with its unit."""


class SkippedWindows(NamedTuple):
    """A range that a plan leaves out.

    Attributes:
        span: ``[start, end)``, epoch milliseconds.
        unit: the unit for people; "" if the definition has none, or all are left out.
        why: the reason, in words.
    """

    span: Interval
    unit: str
    why: str


def skipped_windows(skips: Iterable[Skip]) -> Iterator[SkippedWindows]:
    """Yield the ranges of a plan's skips that are not loaded; other skips are left out."""
    for skip in skips:
        if not skip.is_loaded and (match := _SPAN.fullmatch(skip.subject)) is not None:
            with suppress(ValueError):
                start, end = (milliseconds(datetime.fromisoformat(text)) for text in match.groups()[:2])
                yield SkippedWindows((start, end), match[3] or "", skip.why)
