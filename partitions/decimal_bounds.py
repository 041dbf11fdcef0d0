"""Bounds of decimal columns as values of theirs: for engines that compare a column with nothing else, or lose digits beside others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any, NamedTuple

from partitions.predicate import AllOf, Among, AnyOf, Between, Predicate

_TYPE = re.compile(r"decimal\((\d+), ?(\d+)\)")
_ENOUGH_DIGITS = Context(prec=1000)


class Digits(NamedTuple):
    """What a decimal column holds.

    Attributes:
        precision: digits in all.
        scale: of these behind the point.
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


def digits_of(type_name: Any) -> Digits | None:
    """Return what a type such as ``decimal(10, 2)`` holds; None for any other."""
    found = _TYPE.fullmatch(type_name) if isinstance(type_name, str) else None
    return Digits(int(found[1]), int(found[2])) if found else None


def within(predicate: Predicate, columns: Mapping[str, Digits]) -> Predicate:
    """Return a predicate that means the same rows, with bounds that its decimal columns can hold.

    Args:
        predicate: whose bounds may have more digits, or lie beyond a column.
        columns: the decimal ones, by name.
    """
    match predicate:
        case Between(column) if column in columns:
            return _between(predicate, columns[column])
        case Among(column, values) if column in columns:
            held = [_held(value, columns[column]) for value in values if value is not None]
            null = (None,) if None in values else ()
            return Among(column, (*(value for value in held if value is not None), *null))
        case AnyOf(parts) | AllOf(parts):
            return type(predicate)(tuple(within(part, columns) for part in parts))
    return predicate


def _between(between: Between, digits: Digits) -> Between:
    lower, lower_inclusive = between.lower, between.lower_inclusive
    upper, upper_inclusive = between.upper, between.upper_inclusive
    if _is_exact(lower):
        value = Decimal(lower)
        lower = _floor(value, digits)
        lower_inclusive = (lower_inclusive and lower == value) or value < digits.lowest
    if _is_exact(upper):
        value = Decimal(upper)
        upper = _floor(value, digits)
        upper_inclusive = (upper_inclusive or upper != value) and value >= digits.lowest
    return replace(
        between, lower=lower, upper=upper, lower_inclusive=lower_inclusive, upper_inclusive=upper_inclusive
    )


def _floor(value: Decimal, digits: Digits) -> Decimal:
    """The highest value of the column that is not above a value; the lowest one if all are."""
    if value > digits.highest:
        return digits.highest
    if value < digits.lowest:
        return digits.lowest
    return value.quantize(Decimal(1).scaleb(-digits.scale), ROUND_FLOOR, _ENOUGH_DIGITS)


def _held(value: Any, digits: Digits) -> Any:
    """The value as the column's; None if the column cannot hold it."""
    if not _is_exact(value):
        return value
    floor = _floor(Decimal(value), digits)
    return floor if floor == value else None


def _is_exact(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)
