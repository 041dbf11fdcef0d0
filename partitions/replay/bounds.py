"""The bounds of a replay, typed by their text (docs/reference/replay.md)."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from typing import Any

from partitions.errors import ConfigurationError
from partitions.watermark import compare_values

ReplayBound = date | datetime | int
"""A date, a time with or without a zone, or a whole number."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d+", re.ASCII)
_EXPECTED = (
    "a date such as 2025-01-31, a time such as 2025-01-31T10:00:00 with or without a zone, or a whole number"
)


def typed_bounds(start: Any, end: Any, *, with_time: bool = False) -> tuple[ReplayBound, ReplayBound]:
    """Return both bounds in the wider of their types: beside a time, a date counts as its midnight.

    Args:
        start: text, or a typed value; inclusive.
        end: text, or a typed value; exclusive.
        with_time: whether dates always become times, since chunks are shorter than a day.

    Raises:
        ConfigurationError: if a bound cannot be parsed, if they have no common order (with and without a
        zone, a number beside a date), or if start does not lie below end.
    """
    lower, upper = typed_bound("start", start), typed_bound("end", end)
    if with_time or isinstance(lower, datetime) or isinstance(upper, datetime):
        lower, upper = _with_time(lower), _with_time(upper)
    if compare_values(lower, upper) >= 0:
        raise ConfigurationError(f"expected a start below the end, found start {start} and end {end}")
    return lower, upper


def typed_bound(name: str, value: Any) -> ReplayBound:
    """Return a bound, typed by its text.

    Args:
        name: what it bounds, for the error.
        value: text, or a typed value.

    Raises:
        ConfigurationError: it cannot be parsed.
    """
    if isinstance(value, date | int) and not isinstance(value, bool):
        return value
    try:
        if isinstance(value, str) and _DATE.fullmatch(value):
            return date.fromisoformat(value)
        if isinstance(value, str) and _TIME.fullmatch(value):
            return _with_utc(datetime.fromisoformat(value))
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            return int(value)
    except (ValueError, OverflowError) as error:
        raise ConfigurationError(f"{name}: expected {_EXPECTED}, found {value!r}: {error}") from error
    raise ConfigurationError(f"{name}: expected {_EXPECTED}, found {value!r}")


def _with_time(bound: ReplayBound) -> ReplayBound:
    if isinstance(bound, date) and not isinstance(bound, datetime):
        return datetime.combine(bound, time.min)
    return bound


def _with_utc(at: datetime) -> datetime:
    """Return a time that is representable in UTC, too.

    Raises:
        OverflowError: if its year in UTC is out of range.
    """
    if at.tzinfo is not None:
        at.astimezone(UTC)
    return at
