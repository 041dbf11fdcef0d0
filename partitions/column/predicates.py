"""Ranges of column values as predicates, for a read and its delete alike (docs/reference/columns.md).

The columns of a watermark are joined by OR. No range includes NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import pairwise
from typing import Any

from partitions.predicate import EVERYTHING, AllOf, Among, AnyOf, Between, Predicate, any_of
from partitions.watermark import compare_values


@dataclass(frozen=True)
class ColumnRange:
    """The values of one column that a slice reads.

    Attributes:
        column: the column's name.
        lower: None: from the lowest value on.
        upper: None: no bound is known before the read.
    """

    column: str
    lower: Any
    upper: Any
    lower_inclusive: bool = False
    upper_inclusive: bool = True

    @property
    def is_bounded(self) -> bool:
        """Whether it has any bound."""
        return self.lower is not None or self.upper is not None

    @property
    def is_empty(self) -> bool:
        """Whether no value lies in it."""
        if self.lower is None or self.upper is None:
            return False
        order = compare_values(self.lower, self.upper)
        return order > 0 or (order == 0 and not (self.lower_inclusive and self.upper_inclusive))

    def holds_inside(self, value: Any) -> bool:
        """Return whether a value lies strictly between the bounds."""
        above = self.lower is None or compare_values(self.lower, value) < 0
        return above and (self.upper is None or compare_values(value, self.upper) < 0)

    def up_to(self, highest: Any) -> ColumnRange:
        """Return the range that ends at the column's highest value.

        Without a value, or with one below the range, the result is empty.
        """
        if highest is None or (self.lower is not None and compare_values(highest, self.lower) < 0):
            highest = self.lower
        return replace(self, upper=highest, upper_inclusive=True)

    @property
    def rows(self) -> Between:
        """The rows whose value lies in it."""
        return Between(self.column, self.lower, self.upper, self.lower_inclusive, self.upper_inclusive)

    @property
    def words(self) -> str:
        """The range for people."""
        signs = (">=" if self.lower_inclusive else ">", "<=" if self.upper_inclusive else "<")
        bounds = [
            f"{self.column} {sign} {format_bound(bound)}"
            for sign, bound in zip(signs, (self.lower, self.upper), strict=True)
            if bound is not None
        ]
        return " and ".join(bounds) or f"{self.column} has any value"


def cut_range(range_: ColumnRange, upper_ends: Sequence[Any]) -> list[ColumnRange]:
    """Split a range at ascending values inside it; each part includes its upper end."""
    if not upper_ends:
        return [range_]
    first = replace(range_, upper=upper_ends[0], upper_inclusive=True)
    inner = [ColumnRange(range_.column, lower, upper) for lower, upper in pairwise(upper_ends)]
    return [first, *inner, replace(range_, lower=upper_ends[-1], lower_inclusive=False)]


def rows_in_ranges(ranges: Iterable[ColumnRange]) -> Predicate:
    """Return the predicate of rows in any of the ranges, since a watermark's columns are joined by OR.

    Args:
        ranges: one per column. A column without a bound is ignored; if no column has one, all rows match.
    """
    bounded = [range_.rows for range_ in ranges if range_.is_bounded]
    return any_of(bounded) if bounded else EVERYTHING


def replaced_rows(ranges: Iterable[ColumnRange]) -> Predicate | None:
    """Return the rows that ``replace_by_watermark`` deletes: the ranges of columns with both bounds.

    Returns:
        None if no column has both bounds, as on a first run, or if a range is inverted. Rows with NULL are
        never deleted.
    """
    both = [range_ for range_ in ranges if range_.lower is not None and range_.upper is not None]
    if not both or any(compare_values(range_.lower, range_.upper) > 0 for range_ in both):
        return None
    return AnyOf(tuple(range_.rows for range_ in both)) if len(both) > 1 else both[0].rows


def format_bound(value: Any) -> str:
    """Return a bound for people."""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date):
        return value.isoformat()
    return repr(value) if isinstance(value, str) else str(value)


def ranges_of(rows: Predicate) -> list[ColumnRange]:
    """Return the ranges of a predicate's rows, joined by OR; none if some rows have no bound.

    Rows without any value are in no range: a source that is asked for ranges may return them, too.
    """
    match rows:
        case Between(column, lower, upper, lower_inclusive, upper_inclusive):
            return [ColumnRange(column, lower, upper, lower_inclusive, upper_inclusive)]
        case AnyOf(parts):
            inner = [ranges_of(part) for part in parts if not _is_null(part)]
            return [] if [] in inner else [range_ for part in inner for range_ in part]
    return []


def _is_null(rows: Predicate) -> bool:
    match rows:
        case Among(_, values):
            return values == (None,)
        case AllOf(parts):
            return bool(parts) and all(map(_is_null, parts))
    return False
