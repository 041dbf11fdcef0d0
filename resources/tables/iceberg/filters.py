"""A predicate in pyiceberg's words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from functools import reduce
from typing import TYPE_CHECKING, Any

from partitions.decimal_bounds import digits_of, within
from partitions.predicate import Among, AnyOf, Between, HasValue, Predicate, columns_of

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
    types = {field["name"].casefold(): field["type"] for field in schema["fields"]}
    columns = {name: types.get(name.casefold()) for name in columns_of(predicate)}
    digits = {name: found for name, kind in columns.items() if (found := digits_of(kind)) is not None}
    return _expression(within(predicate, digits))


def _expression(predicate: Predicate) -> BooleanExpression:
    made: BooleanExpression
    match predicate:
        case Among():
            made = _among(predicate)
        case Between():
            made = _between(predicate)
        case HasValue(column):
            made = words().NotNull(column)
        case AnyOf(parts):
            made = reduce(words().Or, map(_expression, parts), words().AlwaysFalse())
        case _:
            parts = predicate.parts
            made = reduce(words().And, map(_expression, parts), words().AlwaysTrue())
    return made


def _among(predicate: Among) -> Any:
    values = [_value(value) for value in predicate.values if value is not None]
    inside = words().In(predicate.column, values) if values else words().AlwaysFalse()
    return words().Or(inside, words().IsNull(predicate.column)) if None in predicate.values else inside


def _between(predicate: Between) -> Any:
    column = predicate.column
    above = words().GreaterThanOrEqual if predicate.lower_inclusive else words().GreaterThan
    below = words().LessThanOrEqual if predicate.upper_inclusive else words().LessThan
    bounds = [(above, predicate.lower), (below, predicate.upper)]
    return reduce(
        words().And,
        [compared(column, _value(bound)) for compared, bound in bounds if bound is not None],
        words().AlwaysTrue(),
    )


def _value(value: Any) -> Any:
    """The value as pyiceberg takes it: times as texts."""
    return value.isoformat() if isinstance(value, datetime | date | time) else value
