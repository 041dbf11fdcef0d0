"""Translate predicates into pyiceberg expressions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from functools import reduce
from typing import TYPE_CHECKING, Any

from partitions.decimal_bounds import decimal_digits, fit_bounds
from partitions.predicate import Among, AnyOf, Between, HasValue, Predicate, SqlCondition, columns_of

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression


def expressions() -> Any:
    """Return pyiceberg's expressions module, untyped.

    Its pydantic models take positional arguments that mypy does not know.
    """
    from pyiceberg import expressions as module

    return module


def to_expression(predicate: Predicate, schema: Mapping[str, Any]) -> BooleanExpression:
    """Return the expression that exactly the predicate's rows meet.

    Args:
        predicate: predicate over the table's columns.
        schema: schema of the table in its metadata.

    Raises:
        ValueError: a condition in SQL, which only Spark can evaluate.
    """
    types = {field["name"].casefold(): field["type"] for field in schema["fields"]}
    columns = {name: types.get(name.casefold()) for name in columns_of(predicate)}
    digits = {
        name: count for name, data_type in columns.items() if (count := decimal_digits(data_type)) is not None
    }
    return _expression(fit_bounds(predicate, digits))


def _expression(predicate: Predicate) -> BooleanExpression:
    result: BooleanExpression
    match predicate:
        case Among():
            result = _among(predicate)
        case Between():
            result = _between(predicate)
        case HasValue(column):
            result = expressions().NotNull(column)
        case SqlCondition(sql):
            raise ValueError(f"only Spark can evaluate a condition in SQL: {sql}")
        case AnyOf(parts):
            result = reduce(expressions().Or, map(_expression, parts), expressions().AlwaysFalse())
        case _:
            parts = predicate.parts
            result = reduce(expressions().And, map(_expression, parts), expressions().AlwaysTrue())
    return result


def _among(predicate: Among) -> Any:
    values = [_value(value) for value in predicate.values if value is not None]
    is_listed = expressions().In(predicate.column, values) if values else expressions().AlwaysFalse()
    return (
        expressions().Or(is_listed, expressions().IsNull(predicate.column))
        if None in predicate.values
        else is_listed
    )


def _between(predicate: Between) -> Any:
    column = predicate.column
    lower_comparison = (
        expressions().GreaterThanOrEqual if predicate.lower_inclusive else expressions().GreaterThan
    )
    upper_comparison = expressions().LessThanOrEqual if predicate.upper_inclusive else expressions().LessThan
    bounds = [(lower_comparison, predicate.lower), (upper_comparison, predicate.upper)]
    return reduce(
        expressions().And,
        [comparison(column, _value(bound)) for comparison, bound in bounds if bound is not None],
        expressions().AlwaysTrue(),
    )


def _value(value: Any) -> Any:
    """Return a value as pyiceberg takes it: times as texts."""
    return value.isoformat() if isinstance(value, datetime | date | time) else value
