"""The ranges of a watermark column in which both sides are counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from partitions.column.predicates import format_bound
from partitions.column.state import ColumnState, ReadBound
from partitions.errors import ConfigurationError
from partitions.predicate import EVERYTHING, AllOf, Among, Between, HasValue, Predicate, all_of, any_of
from partitions.sentinels import Watermark, encode

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
        unit: the unit of windows that it holds; None: it holds all rows, whatever their unit.
    """

    column: str
    lower: Any = None
    upper: Any = None
    upper_inclusive: bool = False
    holds_nulls: bool = False
    unit: Mapping[str, Any] | None = None

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
        unit = ", ".join(f"{name} {value}" for name, value in (self.unit or {}).items())
        return " of ".join(filter(None, [" and ".join(bounds) or f"{self.column} has any value", unit]))

    @property
    def rows(self) -> Predicate:
        """The rows of the range, whatever their other watermark columns have."""
        if self.holds_nulls:
            return Among(self.column, (None,))
        if self.lower is None and self.upper is None:
            return HasValue(self.column)
        return Between(self.column, self.lower, self.upper, upper_inclusive=self.upper_inclusive)

    def as_json(self) -> dict[str, Any]:
        """Return its bounds as objects in sentinel JSON; None: no bound."""
        bounds = {"lower": self.lower, "upper": self.upper}
        unit = {} if self.unit is None else {"unit": encode(dict(self.unit))}
        return {
            name: None if value is None else {self.column: encode(value)} for name, value in bounds.items()
        } | {"without_value": self.holds_nulls, **unit}


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
        units: the units of windows, each with the predicate of its rows; each has ranges of its own.
        loaded: rows of loaded windows; None: all rows up to ``state`` are loaded.
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
    units: tuple[tuple[Mapping[str, Any], Predicate], ...] = ()
    loaded: Predicate | None = None

    def __post_init__(self) -> None:
        """Refuse more ranges than a comparison keeps sums of."""
        count = (len(self.edges) + 1) * max(1, len(self.units))
        if count > MAX_RANGES:
            raise ConfigurationError(
                f"--every: expected at most {MAX_RANGES:,} ranges, found {count:,}: take longer ones"
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
        if self.units:
            return [replace(range_, unit=unit) for range_ in ranges for unit, _ in self.units]
        return [*ranges, ComparedRange(self.column, holds_nulls=True)] if self.with_nulls else ranges

    @property
    def reach(self) -> Watermark:
        """The end of the last range, in the form of a state; empty if it has none."""
        return {} if self.end is None else ColumnState({self.column: self.end}).watermark()

    @property
    def reached(self) -> Predicate:
        """Rows that runs have loaded: of loaded windows, or above no watermark column."""
        if self.loaded is not None:
            return self.loaded
        return all_of(reached_rows(self.state, name) for name in self.watermark_columns)

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


def reached_rows(state: ColumnState, column: str) -> Predicate:
    """Return the rows that do not lie above a state by one column; without a value none does."""
    mark = state.bounds.get(column)
    without_value = Among(column, (None,))
    if mark is None:
        return without_value
    return any_of([Between(column, None, mark.value, upper_inclusive=mark.inclusive), without_value])
