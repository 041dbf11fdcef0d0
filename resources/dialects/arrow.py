"""A predicate over Arrow batches, to filter rows before Spark sees them."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from partitions.decimal_bounds import DecimalDigits, fit_bounds
from partitions.predicate import AllOf, Among, AnyOf, Between, HasValue, Predicate, SqlCondition

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc


def arrow_expression(predicate: Predicate, schema: pa.Schema) -> pc.Expression:
    """Return the expression that exactly the predicate's rows match.

    NULL is as in SQL, text compares by bytes.

    Args:
        predicate: over columns of the schema.
        schema: schema of the rows.

    Raises:
        ValueError: the predicate has a condition in Spark's SQL.
    """
    import pyarrow as pa

    digits = {
        field.name: DecimalDigits(field.type.precision, field.type.scale)
        for field in schema
        if pa.types.is_decimal(field.type)
    }
    return _expression(fit_bounds(predicate, digits))


def _expression(predicate: Predicate) -> pc.Expression:
    import pyarrow.compute as pc

    match predicate:
        case AllOf(parts):
            return reduce(lambda above, below: above & below, map(_expression, parts), pc.scalar(True))
        case AnyOf(parts):
            either = [pc.coalesce(_expression(part), pc.scalar(False)) for part in parts]
            return reduce(lambda above, below: above | below, either, pc.scalar(False))
        case Among():
            return _among(predicate)
        case HasValue(column):
            return pc.field(column).is_valid()
        case Between():
            return _between(predicate)
        case SqlCondition(sql):
            raise ValueError(f"only Spark evaluates a condition in SQL: {sql}")


def _among(predicate: Among) -> pc.Expression:
    import pyarrow.compute as pc

    column = pc.field(predicate.column)
    values = [value for value in predicate.values if value is not None]
    equal = [pc.coalesce(column == value, pc.scalar(False)) for value in values]
    if None in predicate.values:
        equal.append(column.is_null())
    return reduce(lambda above, below: above | below, equal, pc.scalar(False))


def _between(predicate: Between) -> pc.Expression:
    import pyarrow.compute as pc

    column, conditions = pc.field(predicate.column), []
    if predicate.lower is not None:
        lower = predicate.lower
        conditions.append(column >= lower if predicate.lower_inclusive else column > lower)
    if predicate.upper is not None:
        upper = predicate.upper
        conditions.append(column <= upper if predicate.upper_inclusive else column < upper)
    return reduce(lambda above, below: above & below, conditions)
