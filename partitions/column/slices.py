"""Slices of the column kind: the rows between two bounds of each column, one commit, and the state after it (docs/guide-columns.md)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal

from partitions.column.state import ColumnState, Mark
from partitions.errors import BadPart
from partitions.plan import Size
from partitions.predicate import EVERYTHING, AllOf, Among, AnyOf, Between, Predicate, any_of
from partitions.sentinels import Watermark, serialise
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


def rows_in(ranges: Iterable[Range]) -> Predicate:
    """Return the rows that any of the ranges holds: the columns of a watermark are joined by OR.

    Args:
        ranges: one a column. A column without a bound takes no part; if no column has one, all rows are meant.
    """
    bounded = [range_.rows for range_ in ranges if range_.is_bounded]
    return any_of(bounded) if bounded else EVERYTHING


def _parts(predicate: Predicate) -> tuple[Predicate, ...]:
    return predicate.parts if isinstance(predicate, AnyOf) else (predicate,)


def replaced_rows(ranges: Iterable[Range]) -> Predicate | None:
    """Return the rows that a load by ``replace_by_watermark`` deletes: exactly what was read, of columns with both bounds.

    Returns:
        None if no column has both bounds, as on a first run, or a range is inverted. Rows with NULL are never deleted.
    """
    both = [range_ for range_ in ranges if range_.lower is not None and range_.upper is not None]
    if not both or any(compare_values(range_.lower, range_.upper) > 0 for range_ in both):
        return None
    return AnyOf(tuple(range_.rows for range_ in both)) if len(both) > 1 else both[0].rows


@dataclass(frozen=True)
class ColumnSlice:
    """The rows between bounds, one commit.

    Attributes:
        before: the state below it.
        ranges: by column, in the definition's order.
        reads_nulls: whether rows with NULL in every column are read, too.
        replaces: whether rows in the ranges that are in the table already make room, after a rewind.
        version: of the source; None if it has none.
        cuts: values within the range of the only column, ascending: each ends a part that may be read by a connection of its own.
    """

    before: Watermark
    ranges: tuple[Range, ...]
    reads_nulls: bool = False
    replaces: bool = False
    version: int | str | None = None
    cuts: tuple[Any, ...] = ()

    why: Literal["run"] = "run"
    since: None = None

    @property
    def rows(self) -> Predicate:
        """The rows that it reads."""
        without = AllOf(tuple(Among(range_.column, (None,)) for range_ in self.ranges))
        return AnyOf((*_parts(self.rows_with_value), without)) if self.reads_nulls else self.rows_with_value

    @property
    def rows_with_value(self) -> Predicate:
        """The rows that it reads, but those with NULL in every column."""
        return rows_in(self.ranges)

    @property
    def lower(self) -> Watermark | None:
        """The lower bounds, after look-back. None on a first run."""
        values = {range_.column: range_.lower for range_ in self.ranges if range_.lower is not None}
        return values or None

    @property
    def effective(self) -> Watermark:
        """The lower bounds that it reads from; nothing on a first run."""
        return self.lower or {}

    @property
    def upper(self) -> Watermark:
        """The upper bounds, as the state would have them."""
        return self._after(ColumnState())

    @property
    def size(self) -> Size:
        """One range of rows; how many is unknown before the read."""
        return Size(ranges=1)

    @property
    def keys(self) -> Collection[str]:
        """What tells it from other slices."""
        return [serialise(self.upper)]

    @property
    def failures(self) -> Mapping[str, str]:
        """None: a range is read whole, or not at all."""
        return {}

    def contains(self, bad: BadPart) -> bool:  # noqa: ARG002 - part of what all slices have
        """No: rows are not told apart by a part of the source."""
        return False

    def up_to(self, bad: BadPart) -> None:  # noqa: ARG002 - part of what all slices have
        """None: no part of it comes before a bad one."""
        return

    def advance(self, before: Watermark) -> Watermark:
        """The state after it: each column at its upper bound, and never lower than it was."""
        return self._after(ColumnState.of(before))

    def _after(self, before: ColumnState) -> Watermark:
        marks = {
            range_.column: Mark(range_.upper, range_.upper_inclusive)
            for range_ in self.ranges
            if range_.upper is not None
        }
        return before.raised(marks).watermark()

    def describe(self) -> list[dict[str, Any]]:
        """The predicate, and the bounds as sentinel JSON."""
        return [
            {
                "predicate": self.words,
                "lower": json.loads(serialise(self.lower)) if self.lower else None,
                "upper": json.loads(serialise(self.upper)),
                "lower_inclusive": all(range_.lower_inclusive for range_ in self.ranges),
                "upper_inclusive": all(range_.upper_inclusive for range_ in self.ranges),
            }
        ]

    @property
    def words(self) -> str:
        """The rows for people."""
        ranges = [range_.words for range_ in self.ranges]
        nulls = ["no value"] if self.reads_nulls else []
        parts = [*ranges, *nulls]
        return parts[0] if len(parts) == 1 else " or ".join(f"({part})" for part in parts)

    def halve(self) -> tuple[ColumnSlice, ...]:
        """Only itself: what lies between its bounds is the source's to know."""
        return (self,)


def shown(value: Any) -> str:
    """A bound for people."""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date):
        return value.isoformat()
    return repr(value) if isinstance(value, str) else str(value)
