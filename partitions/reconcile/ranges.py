"""The ranges of a watermark column in which both sides are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from partitions.column.predicates import format_bound
from partitions.column.state import ColumnState, ReadBound
from partitions.errors import ConfigurationError
from partitions.predicate import EVERYTHING, AllOf, Among, Between, HasValue, Predicate, all_of, any_of
from partitions.sentinels import encode

ABOVE, OUTSIDE = -1, -2
"""Numbers of rows that are in no range: above the watermark, and outside of the requested range."""

MAX_RANGES = 4_096
"""Most ranges of one comparison."""


@dataclass(frozen=True)
class ComparedRange:
    """One range: its lower bound belongs to it, and its upper one only if it is inclusive.

    Attributes:
        column: column whose values it holds.
        lower: None: no lower bound.
        upper: None: no upper bound.
        upper_inclusive: whether rows at the upper bound belong to it.
        holds_nulls: whether it is the range of rows without a value, which has no bounds.
    """

    column: str
    lower: Any = None
    upper: Any = None
    upper_inclusive: bool = False
    holds_nulls: bool = False

    @property
    def words(self) -> str:
        """The range for people."""
        if self.holds_nulls:
            return f"{self.column} without a value"
        upper_sign = "<=" if self.upper_inclusive else "<"
        bounds = [
            *([f"{self.column} >= {format_bound(self.lower)}"] if self.lower is not None else []),
            *([f"{self.column} {upper_sign} {format_bound(self.upper)}"] if self.upper is not None else []),
        ]
        return " and ".join(bounds) or f"{self.column} has any value"

    def as_json(self) -> dict[str, Any]:
        """Return its bounds as objects in sentinel JSON; None: no bound."""
        bounds = {"lower": self.lower, "upper": self.upper}
        return {
            name: None if value is None else {self.column: encode(value)} for name, value in bounds.items()
        } | {"without_value": self.holds_nulls}


@dataclass(frozen=True)
class Ranges:
    """The ranges of a comparison, and the rows that take part in it.

    Attributes:
        column: first watermark column, whose values are cut.
        state: how far each watermark column is read: rows above take no part.
        lower: first value of the first range; None: no lower bound.
        end: upper bound of the last range; None: there is none.
        edges: ascending values between the bounds, at which a range begins.
        with_nulls: whether rows without a value in the column take part.
        requires_value: whether rows without a value in any watermark column take no part.
        also: further condition that rows of both sides meet, such as a retention's.
    """

    column: str
    state: ColumnState
    watermark_columns: tuple[str, ...]
    lower: Any = None
    end: ReadBound | None = None
    edges: tuple[Any, ...] = ()
    with_nulls: bool = True
    requires_value: bool = False
    also: Predicate = EVERYTHING

    def __post_init__(self) -> None:
        """Refuse more ranges than a comparison keeps sums of."""
        if len(self.edges) >= MAX_RANGES:
            raise ConfigurationError(
                f"--every: expected at most {MAX_RANGES:,} ranges, found {len(self.edges) + 1:,}: take longer ones"
            )

    @property
    def all(self) -> Sequence[ComparedRange]:
        """The ranges in order; a range's place is its number."""
        end = self.end
        bounds = [self.lower, *self.edges, end.value if end else None]
        pairs = list(pairwise(bounds))
        ranges = [
            ComparedRange(self.column, lower, upper, number == len(pairs) - 1 and bool(end and end.inclusive))
            for number, (lower, upper) in enumerate(pairs)
        ]
        return [*ranges, ComparedRange(self.column, holds_nulls=True)] if self.with_nulls else ranges

    @property
    def reached(self) -> Predicate:
        """Rows that lie above no watermark column."""
        return all_of(self._reached(name) for name in self.watermark_columns)

    @property
    def rows(self) -> Predicate:
        """Rows of all ranges."""
        return all_of([self.reached, self.within, self.also])

    @property
    def within(self) -> Predicate:
        """Rows between the bounds, and those without a value if they take part."""
        parts: list[Predicate] = [AllOf(self._bounds)] if self._bounds else [HasValue(self.column)]
        if not self.with_nulls:
            return all_of(parts)
        if self.requires_value:
            others = [HasValue(name) for name in self.watermark_columns if name != self.column]
            if not others:
                return all_of(parts)
            return any_of([*parts, AllOf((Among(self.column, (None,)), any_of(others)))])
        return EVERYTHING if not self._bounds else any_of([*parts, Among(self.column, (None,))])

    @property
    def _bounds(self) -> tuple[Predicate, ...]:
        bounds: list[Predicate] = []
        if self.lower is not None:
            bounds.append(Between(self.column, self.lower, None))
        if self.end is not None:
            bounds.append(Between(self.column, None, self.end.value, upper_inclusive=self.end.inclusive))
        return tuple(bounds)

    def _reached(self, name: str) -> Predicate:
        mark = self.state.bounds.get(name)
        without_value = Among(name, (None,))
        if mark is None:
            return without_value
        return any_of([Between(name, None, mark.value, upper_inclusive=mark.inclusive), without_value])
