"""Which values a rule compares with a column: accepted ones, and those of another table's column.

Spark would cast a text to the column's type, and fail on one that has no such value.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from partitions.reconcile.families import Family, family_of
from partitions.sources.database_types import ColumnType

_LONG = range(-(2**63), 2**63)
_DIGITS = 38
"""Most digits of a decimal, before and after its point."""

_ALIKE: Sequence[frozenset[Family | None]] = (
    frozenset({"number", "float"}),
    frozenset({"day", "instant", "local"}),
    frozenset({"text", "time"}),
)


def accepted_literal(value: Any, type_: ColumnType | None) -> Any:
    """Return an accepted value as a literal that Spark compares with a column; None if none fits.

    Args:
        value: value of the definition, or of an intent, which has dates as texts.
        type_: the column's type; None: a nested type.
    """
    family = None if type_ is None or type_.dimensions else family_of(type_)
    match family:
        case "text":
            return str(value).lower() if isinstance(value, bool) else str(value)
        case "flag":
            return value if isinstance(value, bool) else None
        case "number" | "float":
            return _number(value)
        case "day" | "instant" | "local":
            return _time(value, family)
        case "bytes":
            return value if isinstance(value, str) else None
    return None


def are_comparable(own: ColumnType | None, other: ColumnType | None) -> bool:
    """Return whether values of two columns can be compared without a cast that fails on some."""
    if own is None or other is None or own.dimensions or other.dimensions:
        return own == other
    families = {family_of(own), family_of(other)}
    return len(families) == 1 or any(families <= alike for alike in _ALIKE)


def _number(value: Any) -> int | float | Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, float) or (isinstance(value, int) and value in _LONG):
        return value
    with suppress(InvalidOperation):
        number = Decimal(value)
        if number.is_finite() and number.as_tuple().exponent >= -_DIGITS and number.adjusted() < _DIGITS:  # type: ignore[operator]
            return number if len(number.as_tuple().digits) <= _DIGITS else None
    return None


def _time(value: Any, family: Family) -> str | None:
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, str):
        return None
    with suppress(ValueError):
        if family == "day":
            return date.fromisoformat(value).isoformat()
        return datetime.fromisoformat(value).isoformat(" ")
    return None
