"""A predicate in pyiceberg's words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

from partitions.predicate import Among, AnyOf, Between, HasValue, Predicate

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression


def words() -> Any:
    """Return pyiceberg's expressions. They are pydantic models whose positional arguments mypy does not know."""
    from pyiceberg import expressions

    return expressions


def expression(predicate: Predicate, schema: Mapping[str, Any]) -> BooleanExpression:
    """Return the expression that exactly the predicate's rows meet.

    Args:
        predicate: over the table's columns.
        schema: of the table, as its metadata has it.
    """
    made: BooleanExpression
    match predicate:
        case Among():
            made = _among(predicate, schema)
        case Between():
            made = _between(predicate, schema)
        case HasValue(column):
            made = words().NotNull(column)
        case AnyOf(parts):
            made = reduce(words().Or, [expression(part, schema) for part in parts], words().AlwaysFalse())
        case _:
            parts = predicate.parts
            made = reduce(words().And, [expression(part, schema) for part in parts], words().AlwaysTrue())
    return made


def _among(predicate: Among, schema: Mapping[str, Any]) -> Any:
    values = [_value(value, schema, predicate.column) for value in predicate.values if value is not None]
    inside = words().In(predicate.column, values) if values else words().AlwaysFalse()
    return words().Or(inside, words().IsNull(predicate.column)) if None in predicate.values else inside


def _between(predicate: Between, schema: Mapping[str, Any]) -> Any:
    column = predicate.column
    above = words().GreaterThanOrEqual if predicate.lower_inclusive else words().GreaterThan
    below = words().LessThanOrEqual if predicate.upper_inclusive else words().LessThan
    bounds = [(above, predicate.lower), (below, predicate.upper)]
    return reduce(
        words().And,
        [compared(column, _value(bound, schema, column)) for compared, bound in bounds if bound is not None],
        words().AlwaysTrue(),
    )


def _value(value: Any, schema: Mapping[str, Any], column: str) -> Any:
    """The value as the column's type takes it: times as texts, decimals with the column's digits."""
    kind = next(
        (field["type"] for field in schema["fields"] if field["name"].lower() == column.lower()), "string"
    )
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal) and isinstance(kind, str) and kind.startswith("decimal"):
        digits = int(kind.rstrip(")").rpartition(",")[2])
        return value.quantize(Decimal(1).scaleb(-digits))
    return value
