"""Values of units as values of the columns that hold them. Types are kept; text is read if the column holds no text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any, Literal

Kind = Literal["instant", "local", "day", "text", "whole", "number", "flag"]
"""What a column holds: an instant, a local time without zone, a day, text, a whole or any number, true or false."""

TIMES: tuple[Kind, ...] = ("instant", "local", "day")
"""Of these, what holds a time."""

NUMBERS: tuple[Kind, ...] = ("whole", "number")
"""Of these, what holds a number."""

WORDS: Mapping[Kind, str] = {
    "instant": "a timestamp with zone",
    "local": "a timestamp without zone",
    "day": "a date",
    "text": "text",
    "whole": "a whole number",
    "number": "a number",
    "flag": "true or false",
}
"""The kinds for people."""

_ENOUGH_DIGITS = Context(prec=400)
"""For any number that a double can hold, and the digits of a decimal behind its point."""


def fitted(value: Any, kind: Kind, zone: tzinfo) -> Any:
    """A unit's value as one of its column's; None stays None.

    Args:
        value: of any type that a watermark can store.
        kind: of the column.
        zone: of times that are given without one, or wanted without one.

    Raises:
        ValueError: if it cannot be one.
    """
    if value is None:
        return None
    if isinstance(value, str) and kind != "text":
        try:
            value = _READ[kind](value.strip())
        except (ValueError, InvalidOperation, KeyError) as error:
            raise ValueError(f"found text {value!r}") from error
    fitting = _FITTED[kind](value, zone)
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


_READ: Mapping[Kind, Callable[[str], Any]] = {
    "instant": datetime.fromisoformat,
    "local": datetime.fromisoformat,
    "day": date.fromisoformat,
    "whole": int,
    "number": Decimal,
    "flag": _flag,
}
_FITTED: Mapping[Kind, Callable[[Any, tzinfo], Any]] = {
    "instant": _instant,
    "local": _local,
    "day": _day,
    "text": _text,
    "whole": _number,
    "number": _number,
    "flag": lambda value, _: value if isinstance(value, bool) else None,
}


def kind_of_value(value: Any) -> Kind | None:
    """Return what a column holds whose watermark has this value."""
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


def half_up(value: Decimal, digits: int) -> Decimal:
    """Return a number with so many digits after the point, halves away from zero: as Spark rounds it into a decimal."""
    return value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _ENOUGH_DIGITS)
