"""JSON values as column values, for comparisons before Spark reads them.

See docs/reference/apis.md, Schema.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Self

from partitions.unit_values import ValueType, value_type_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SentNumber(float):
    """A number with a fraction or an exponent.

    Attributes:
        text: its original digits, which a double may not hold.
    """

    __slots__ = ("text",)

    text: str

    def __new__(cls, text: str) -> Self:
        """Parse the text of a JSON number."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]  # of a float it is the number
        """Return the arguments for a copy."""
        return (self.text,)


def as_text(value: Any) -> str:
    """Return a value as it appears in a request, and in a text column."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case SentNumber():
            return value.text
    return str(value)


def as_json(value: Any) -> str:
    """Return a value as JSON, with the original digits of numbers."""
    match value:
        case SentNumber():
            return value.text
        case Mapping():
            members = (f"{json.dumps(name)}: {as_json(member)}" for name, member in value.items())
            return f"{{{', '.join(members)}}}"
        case list() | tuple():
            return f"[{', '.join(map(as_json, value))}]"
    return json.dumps(value)


def to_column_value(value: Any, kind: ValueType | None) -> Any:
    """Return a JSON value as Spark reads it into a column; without a kind unchanged.

    None, infinity and NaN become None.

    Raises:
        ValueError: the value cannot be one of the column.
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    match kind, value:
        case None, _:
            return value
        case "instant", str():
            moment = datetime.fromisoformat(value)
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        case "instant", int() if not isinstance(value, bool):
            return _EPOCH + timedelta(seconds=value)
        case "local", str():
            return datetime.fromisoformat(value).replace(tzinfo=None)
        case "day", str():
            return date.fromisoformat(value[:10])
        case "text", str() | bool() | int() | float():
            return as_text(value)
        case "whole", int() if not isinstance(value, bool):
            return value
        case "whole" | "number", int() | float() if not isinstance(value, bool):
            return Decimal(as_text(value))  # with the API's digits, not as a binary fraction
    raise ValueError(f"expected a value of a column that holds {kind}, found {type(value).__name__}")


def kind_of_values(values: Iterable[Any]) -> ValueType | None:
    """Return the data type of a column with these JSON values; None if it cannot be inferred.

    None if all are null, or some are objects or arrays. Values of several types are text, as in an
    inferred schema.
    """
    kinds = {_kind_of_json(value) for value in values if value is not None}
    if kinds == {"whole", "number"}:
        return "number"
    if len(kinds) > 1 and None not in kinds:
        return "text"
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of_json(value: Any) -> ValueType | None:
    """Return the data type of a JSON value; texts are times only in the form that all readers accept."""
    if not isinstance(value, str):
        return value_type_of(value)
    if len(value) < len("2026-01-01") or value[4:5] != "-" or value[7:8] != "-":
        return "text"
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return "text"
    if len(value) == len("2026-01-01"):
        return "day"
    return "instant" if moment.tzinfo else "local"
