"""Cut a range by a database's statistics into parts of about as many rows (docs/reference/columns.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

from partitions.unit_values import ValueType

DIVISIBLE_TYPES: frozenset[ValueType] = frozenset(("instant", "local", "day", "whole"))
"""Value types that can be interpolated: a part may end inside a bucket."""


@dataclass(frozen=True)
class Histogram:
    """A histogram of a column.

    Attributes:
        bounds: ascending values; about as many rows lie between each two.
        rows: the number of rows between two bounds, more than 0.
    """

    bounds: Sequence[Any]
    rows: float

    def cuts(self, lower: Any, upper: Any, rows: int) -> Iterator[Any]:
        """Yield distinct ascending values between two others, each the end of a part of about ``rows`` rows.

        The rest after the last value may be larger than a part: it includes rows above all bounds.

        Args:
            lower: the lower bound, exclusive; None: no lower bound.
            upper: the upper bound, exclusive; None: no upper bound.
            rows: the number of rows of a part.
        """
        passed, last = 0.0, lower
        for low, high in pairwise(self.bounds):
            start = low
            if lower is not None and lower > low:
                if lower >= high:
                    continue
                start = lower  # a bucket that the range enters in its middle counts from there
            rows_in_bucket = self.rows * _share(low, high, start)
            cut_rows = 0.0
            while passed + rows_in_bucket - cut_rows >= rows:
                cut_rows += rows - passed
                passed = 0.0
                value = _between(start, high, cut_rows / rows_in_bucket)
                if upper is not None and value >= upper:
                    return
                if last is None or value > last:
                    yield value
                    last = value
            passed += rows_in_bucket - cut_rows


def _share(low: Any, high: Any, start: Any) -> float:
    """Return the share of a bucket above ``start``; all of a bucket with one value."""
    return float((high - start) / (high - low)) if high > low else 1.0


def _between(low: Any, high: Any, part: float) -> Any:
    """Return the value at a share of the way, rounded down to a whole number or a day."""
    if part >= 1:
        return high
    if isinstance(low, int):
        return low + int((high - low) * part)
    if type(low) is date:
        return low + timedelta(days=int((high - low).days * part))
    return low + (high - low) * part
