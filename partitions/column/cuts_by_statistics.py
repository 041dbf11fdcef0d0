"""Where a range is cut by what a database's statistics know of a column: values between which about as many rows lie (docs/reference/columns.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

from partitions.unit_values import Kind

SPREAD_KINDS: frozenset[Kind] = frozenset(("instant", "local", "day", "whole"))
"""What a column holds in which a value lies between any two: a part of a bucket ends there."""


@dataclass(frozen=True)
class Spread:
    """A histogram of a column.

    Attributes:
        bounds: values, ascending; between each two lie about as many rows.
        rows: between two bounds, more than 0.
    """

    bounds: Sequence[Any]
    rows: float

    def cuts(self, lower: Any, upper: Any, rows: int) -> Iterator[Any]:
        """Yield values between two others, ascending and each once: parts of about so many rows end there.

        After the last of them there may be more rows than a part's: those that are above all bounds.

        Args:
            lower: value, exclusive; None: none is too low.
            upper: value, exclusive; None: none is too high.
            rows: of a part.
        """
        passed, last = 0.0, lower
        for low, high in pairwise(self.bounds):
            start = low
            if lower is not None and lower > low:
                if lower >= high:
                    continue
                start = lower  # a bucket that the range enters in its middle counts from there
            rows_in_bucket = self.rows * _share(low, high, start)
            taken = 0.0
            while passed + rows_in_bucket - taken >= rows:
                taken += rows - passed
                passed = 0.0
                value = _between(start, high, taken / rows_in_bucket)
                if upper is not None and value >= upper:
                    return
                if last is None or value > last:
                    yield value
                    last = value
            passed += rows_in_bucket - taken


def _share(low: Any, high: Any, start: Any) -> float:
    """How much of a bucket lies above a value in it; a bucket of one value is whole."""
    return float((high - start) / (high - low)) if high > low else 1.0


def _between(low: Any, high: Any, part: float) -> Any:
    """The value at a part of the way; a whole number or a day, if they are."""
    if part >= 1:
        return high
    if isinstance(low, int):
        return low + int((high - low) * part)
    if type(low) is date:
        return low + timedelta(days=int((high - low).days * part))
    return low + (high - low) * part
