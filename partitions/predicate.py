"""A predicate selects rows for a read, for its delete, and for checks (docs/explanation/protocol.md).

A predicate compares columns with typed values; only :class:`SqlCondition` holds SQL, as a person wrote it.
It knows no windows and no units: ``partitions.window.predicates`` builds it from them,
``resources.dialects.predicates`` writes it as SQL, and :func:`matches` tests a row in Python.

NULL is as in SQL: a row with NULL in a compared column does not match, unless None is among the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Among:
    """Rows whose column has one of some values.

    Attributes:
        column: the column's name.
        values: distinct values of the column's type; None means NULL; if empty, no row matches.
    """

    column: str
    values: tuple[Any, ...]

    @cached_property
    def has_null(self) -> bool:
        """Whether NULL is among the values."""
        return None in self.values

    @cached_property
    def ordered(self) -> Sequence[Any] | None:
        """The values that are not NULL, ascending; None if they have no common order."""
        values = [value for value in self.values if value is not None]
        if not are_comparable(*values) or any(value != value for value in values):
            return None
        return sorted(values)


@dataclass(frozen=True)
class Between:
    """Rows whose column lies between two bounds.

    Attributes:
        column: the column's name.
        lower: a value of the column's type; None: unbounded.
        upper: a value of the column's type; None: unbounded.
        lower_inclusive: whether the lower bound itself matches.
        upper_inclusive: whether the upper bound itself matches.
    """

    column: str
    lower: Any
    upper: Any
    lower_inclusive: bool = True
    upper_inclusive: bool = False

    def __post_init__(self) -> None:
        """Refuse a range without bounds: it would leave open whether a row with NULL matches."""
        if self.lower is None and self.upper is None:
            raise ValueError(f"{self.column}: expected a lower or an upper bound, found neither")


@dataclass(frozen=True)
class HasValue:
    """Rows whose column is not NULL."""

    column: str


@dataclass(frozen=True)
class AnyOf:
    """Rows that match at least one part; without parts, no row."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class AllOf:
    """Rows that match every part; without parts, every row."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class SqlCondition:
    """Rows for which a condition in Spark's SQL is true, as a person wrote it.

    Only Spark can tell which rows match.

    Attributes:
        sql: condition over the table's columns.
        columns: columns that it names.
    """

    sql: str
    columns: tuple[str, ...]


Predicate = Among | Between | HasValue | AnyOf | AllOf | SqlCondition

EVERYTHING = AllOf(())
NOTHING = AnyOf(())


def any_of(parts: Iterable[Predicate]) -> Predicate:
    """Return the predicate of rows that match at least one part, simplified."""
    alternatives = tuple(parts)
    if EVERYTHING in alternatives:
        return EVERYTHING
    return alternatives[0] if len(alternatives) == 1 else AnyOf(alternatives)


def all_of(parts: Iterable[Predicate]) -> Predicate:
    """Return the predicate of rows that match every part, simplified."""
    conditions = tuple(part for part in parts if part != EVERYTHING)
    return conditions[0] if len(conditions) == 1 else AllOf(conditions)


def are_comparable(*values: Any) -> bool:
    """Return whether values have one type, so that an engine compares them without conversion.

    Otherwise an engine may take ``1`` and ``'1'`` for equal.
    """
    return len({_kind(value) for value in values if value is not None}) <= 1


def _kind(value: Any) -> Any:
    match value:
        case bool():
            return bool
        case int() | Decimal():
            return Decimal
        case datetime():
            return datetime, value.tzinfo is not None
    return type(value)


def columns_of(predicate: Predicate) -> tuple[str, ...]:
    """Return the columns that a predicate compares, without duplicates, in order of appearance."""
    if isinstance(predicate, Among | Between | HasValue):
        return (predicate.column,)
    if isinstance(predicate, SqlCondition):
        return predicate.columns
    return tuple(dict.fromkeys(column for part in predicate.parts for column in columns_of(part)))


def rename_columns(predicate: Predicate, names: Mapping[str, str]) -> Predicate:
    """Return the same predicate over renamed columns.

    Args:
        predicate: over columns with the old names.
        names: new names by old names.

    Raises:
        ValueError: the predicate has a condition in SQL.
    """
    if isinstance(predicate, SqlCondition):
        raise ValueError(f"a condition in SQL cannot rename its columns: {predicate.sql}")  # noqa: TRY004
    if isinstance(predicate, Among | Between | HasValue):
        return replace(predicate, column=names[predicate.column])
    return type(predicate)(tuple(rename_columns(part, names) for part in predicate.parts))


def matches(predicate: Predicate, row: Mapping[str, Any]) -> bool:
    """Return whether a row matches.

    Args:
        predicate: over columns of the row.
        row: column names to values; None is NULL.

    Raises:
        KeyError: the row lacks a column.
        ValueError: the predicate has a condition in SQL, which only Spark evaluates.
    """
    match predicate:
        case SqlCondition(sql):
            raise ValueError(f"only Spark can evaluate a condition in SQL: {sql}")
        case AnyOf(parts):
            return any(matches(part, row) for part in parts)
        case AllOf(parts):
            return all(matches(part, row) for part in parts)
        case Among(column, values):
            return row[column] in values
        case HasValue(column):
            return row[column] is not None
        case Between():
            return _lies_between(predicate, row[predicate.column])


def _lies_between(range_: Between, value: Any) -> bool:
    if value is None:
        return False
    if range_.lower is not None and not (
        range_.lower < value or (range_.lower_inclusive and range_.lower == value)
    ):
        return False
    return range_.upper is None or bool(
        value < range_.upper or (range_.upper_inclusive and range_.upper == value)
    )
