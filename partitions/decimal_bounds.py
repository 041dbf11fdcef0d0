"""Fit bounds to the precision and scale of decimal columns.

Some engines compare a decimal column only with values of its own type, or lose digits beside others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any, NamedTuple

from partitions.predicate import AllOf, Among, AnyOf, Between, Predicate

_TYPE = re.compile(r"decimal\((\d+), ?(\d+)\)")
_ENOUGH_DIGITS = Context(prec=1000)


class DecimalDigits(NamedTuple):
    """The digits of a decimal column.

    Attributes:
        precision: digits in total.
        scale: digits after the point.
    """

    precision: int
    scale: int

    @property
    def highest(self) -> Decimal:
        """The highest value of the column."""
        return Decimal(10**self.precision - 1).scaleb(-self.scale, _ENOUGH_DIGITS)

    @property
    def lowest(self) -> Decimal:
        """The lowest value of the column."""
        return self.highest.copy_negate()


def decimal_digits(type_name: Any) -> DecimalDigits | None:
    """Parse a type such as ``decimal(10, 2)``; return None for any other type."""
    match = _TYPE.fullmatch(type_name) if isinstance(type_name, str) else None
    return DecimalDigits(int(match[1]), int(match[2])) if match else None


def fit_bounds(predicate: Predicate, columns: Mapping[str, DecimalDigits]) -> Predicate:
    """Return a predicate for the same rows, with bounds that its decimal columns can hold.

    Args:
        predicate: its bounds may have more digits than a column, or lie beyond its range.
        columns: the decimal columns, by name.
    """
    match predicate:
        case Between(column) if column in columns:
            return _between(predicate, columns[column])
        case Among(column, values) if column in columns:
            column_values = [
                _exact_column_value(value, columns[column]) for value in values if value is not None
            ]
            null = (None,) if None in values else ()
            return Among(column, (*(value for value in column_values if value is not None), *null))
        case AnyOf(parts) | AllOf(parts):
            return type(predicate)(tuple(fit_bounds(part, columns) for part in parts))
    return predicate


def _between(between: Between, digits: DecimalDigits) -> Between:
    lower, lower_inclusive = between.lower, between.lower_inclusive
    upper, upper_inclusive = between.upper, between.upper_inclusive
    if _is_exact(lower):
        value = Decimal(lower)
        lower = _floor_in_column(value, digits)
        lower_inclusive = (lower_inclusive and lower == value) or value < digits.lowest
    if _is_exact(upper):
        value = Decimal(upper)
        upper = _floor_in_column(value, digits)
        upper_inclusive = (upper_inclusive or upper != value) and value >= digits.lowest
    return replace(
        between, lower=lower, upper=upper, lower_inclusive=lower_inclusive, upper_inclusive=upper_inclusive
    )


def _floor_in_column(value: Decimal, digits: DecimalDigits) -> Decimal:
    """Return the highest value of a column at or below a value; the lowest one if the value is below all."""
    if value > digits.highest:
        return digits.highest
    if value < digits.lowest:
        return digits.lowest
    return value.quantize(Decimal(1).scaleb(-digits.scale), ROUND_FLOOR, _ENOUGH_DIGITS)


def _exact_column_value(value: Any, digits: DecimalDigits) -> Any:
    """Return the value in the column's type; None if the column cannot hold it exactly."""
    if not _is_exact(value):
        return value
    floor = _floor_in_column(Decimal(value), digits)
    return floor if floor == value else None


def _is_exact(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)
