"""How late a row may be, as Spark's ``delayThreshold`` (docs/reference/streams-on-spark.md)."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from partitions.model import Duration

_MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 7 * 86_400_000_000,
    "month": 31 * 86_400_000_000,  # as Spark counts a delay
    "year": 12 * 31 * 86_400_000_000,
}
_PART = re.compile(rf"([+-]?)\s*(\d+(?:\.\d+)?)\s+({'|'.join(_MICROSECONDS)})s?(?:\s+|$)", re.IGNORECASE)
_DURATION = TypeAdapter[timedelta](Duration)


def spark_delay(text: object) -> str:
    """Return a timeout as Spark's ``delayThreshold``.

    Args:
        text: an ISO 8601 duration such as PT10S, or Spark's own text such as ``10 seconds`` or ``1 hour 30
        minutes``.

    Raises:
        ValueError: if it is neither, or negative; in Spark's words.
    """
    try:
        return _as_interval(_DURATION.validate_python(text))
    except ValidationError:
        pass
    if not isinstance(text, str):
        raise ValueError(f"expected a duration such as PT10S or 10 seconds, found {text!r}")  # noqa: TRY004 - pydantic tells it with its place
    total = _microseconds(text)
    if total is None:
        raise ValueError(
            f"[CANNOT_PARSE_INTERVAL] Unable to parse '{text}'. Expected an ISO 8601 duration such as PT10S, or Spark's text such as 10 seconds"
        )
    if total < 0:
        raise ValueError(f"delay threshold ({text}) should not be negative.")
    return text


def _as_interval(span: timedelta) -> str:
    return f"{span // timedelta(microseconds=1)} microseconds"


def _microseconds(text: str) -> Fraction | None:
    """Return the length of Spark's text of an interval, in microseconds; None if it is none."""
    rest = re.sub(r"^\s*interval\s+", "", text, flags=re.IGNORECASE).strip()
    total, at = Fraction(0), 0
    while match := _PART.match(rest, at):
        sign, number, unit = match[1], match[2], match[3].lower()
        if "." in number and unit != "second":
            return None
        total += (-1 if sign == "-" else 1) * Fraction(number) * _MICROSECONDS[unit]
        at = match.end()
    return total if rest and at == len(rest) else None


Delay = Annotated[str, BeforeValidator(spark_delay)]
"""A timeout in Spark's own words."""
