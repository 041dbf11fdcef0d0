"""Convert the values of units to the types of the columns that hold them.

Text is parsed if the column holds no text, integers become text if it does, and times change their zone. Any
other value of another type does not fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any, Literal

ValueType = Literal["instant", "local", "day", "text", "whole", "number", "flag"]
"""The type of a column's values: an instant, a local time without zone, a day, text, an integer, any number, a boolean."""

TIMES: tuple[ValueType, ...] = ("instant", "local", "day")
"""Value types that hold a time."""

NUMBERS: tuple[ValueType, ...] = ("whole", "number")
"""Value types that hold a number."""

WORDS: Mapping[ValueType, str] = {
    "instant": "a timestamp with zone",
    "local": "a timestamp without zone",
    "day": "a date",
    "text": "text",
    "whole": "a whole number",
    "number": "a number",
    "flag": "true or false",
}
"""The value types for people."""

_ENOUGH_DIGITS = Context(prec=400)
"""Enough digits for any double, and for the digits of a decimal after the point."""


def fit_value(value: Any, value_type: ValueType, zone: tzinfo) -> Any:
    """Return a unit's value in its column's type; None stays None.

    Args:
        value: a value of any type that a watermark can store.
        value_type: type of the column's values.
        zone: zone for times without one, on either side.

    Raises:
        ValueError: the value does not fit.
    """
    if value is None:
        return None
    if isinstance(value, str) and value_type != "text":
        try:
            value = _READ[value_type](value.strip())
        except (ValueError, InvalidOperation, KeyError) as error:
            raise ValueError(f"found text {value!r}") from error
    fitting = _FITTED[value_type](value, zone)
    if fitting is None:
        raise ValueError(f"found {type(value).__name__} {value!r}")
    return fitting


def _flag(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _text(value: Any, _: tzinfo) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        return None
    value.encode()  # a surrogate alone is no text: UnicodeEncodeError is a ValueError
    return value if "\x00" not in value else None


def _number(value: Any, _: tzinfo) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return value if math.isfinite(value) else None


def _instant(value: Any, zone: tzinfo) -> datetime | None:
    if not isinstance(value, datetime):
        return None
    return (value if value.tzinfo else value.replace(tzinfo=zone)).astimezone(UTC)


def _local(value: Any, zone: tzinfo) -> datetime | None:
    if not isinstance(value, datetime):
        return None
    return value.astimezone(zone).replace(tzinfo=None) if value.tzinfo else value


def _day(value: Any, _: tzinfo) -> date | None:
    return value if isinstance(value, date) and not isinstance(value, datetime) else None


_READ: Mapping[ValueType, Callable[[str], Any]] = {
    "instant": datetime.fromisoformat,
    "local": datetime.fromisoformat,
    "day": date.fromisoformat,
    "whole": int,
    "number": Decimal,
    "flag": _flag,
}
_FITTED: Mapping[ValueType, Callable[[Any, tzinfo], Any]] = {
    "instant": _instant,
    "local": _local,
    "day": _day,
    "text": _text,
    "whole": _number,
    "number": _number,
    "flag": lambda value, _: value if isinstance(value, bool) else None,
}


def value_type_of(value: Any) -> ValueType | None:
    """Return the type of a column whose watermark has this value."""
    match value:
        case datetime():
            return "instant" if value.tzinfo else "local"
        case date():
            return "day"
        case bool():
            return "flag"
        case int():
            return "whole"
        case float() | Decimal():
            return "number"
        case str():
            return "text"
    return None


def round_half_up(value: Decimal, digits: int) -> Decimal:
    """Round to some digits after the point, halves away from zero, as Spark rounds to a decimal."""
    return value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _ENOUGH_DIGITS)
