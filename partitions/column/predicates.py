"""Ranges of column values as predicates: the one shape of a read and of the delete that goes with it (docs/reference/columns.md).

The columns of a watermark are joined by OR. NULL is in no range.
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
class Range:
    """The values of one column that a slice reads.

    Attributes:
        column: name.
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
        """Whether it has a bound at all."""
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

    def up_to(self, highest: Any) -> Range:
        """Return the range that ends with the highest value that there is; none, or one below the range, leaves no value in it."""
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
            f"{self.column} {sign} {shown(bound)}"
            for sign, bound in zip(signs, (self.lower, self.upper), strict=True)
            if bound is not None
        ]
        return " and ".join(bounds) or f"{self.column} has any value"


def cut(range_: Range, cuts: Sequence[Any]) -> list[Range]:
    """Return the parts of a range, each of which ends with one of these values, which are ascending and lie within it; the last ends where it ends."""
    if not cuts:
        return [range_]
    first = replace(range_, upper=cuts[0], upper_inclusive=True)
    inner = [Range(range_.column, lower, upper) for lower, upper in pairwise(cuts)]
    return [first, *inner, replace(range_, lower=cuts[-1], lower_inclusive=False)]


def rows_in(ranges: Iterable[Range]) -> Predicate:
    """Return the rows that any of the ranges holds: the columns of a watermark are joined by OR.

    Args:
        ranges: one a column. A column without a bound takes no part; if no column has one, all rows are meant.
    """
    bounded = [range_.rows for range_ in ranges if range_.is_bounded]
    return any_of(bounded) if bounded else EVERYTHING


def replaced_rows(ranges: Iterable[Range]) -> Predicate | None:
    """Return the rows that a load by ``replace_by_watermark`` deletes: exactly what was read, of columns with both bounds.

    Returns:
        None if no column has both bounds, as on a first run, or a range is inverted. Rows with NULL are never deleted.
    """
    both = [range_ for range_ in ranges if range_.lower is not None and range_.upper is not None]
    if not both or any(compare_values(range_.lower, range_.upper) > 0 for range_ in both):
        return None
    return AnyOf(tuple(range_.rows for range_ in both)) if len(both) > 1 else both[0].rows


def shown(value: Any) -> str:
    """A bound for people."""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date):
        return value.isoformat()
    return repr(value) if isinstance(value, str) else str(value)


def ranges_of(rows: Predicate) -> list[Range]:
    """Return the ranges that the rows of a predicate lie in, joined by OR; none if there are rows without a bound.

    Rows without any value are in no range: a source that is asked for ranges gives them beside the others, or not.
    """
    match rows:
        case Between(column, lower, upper, lower_inclusive, upper_inclusive):
            return [Range(column, lower, upper, lower_inclusive, upper_inclusive)]
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
