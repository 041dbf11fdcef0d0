"""The times of a file's rows, by statistics as Delta's log has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any

_TYPES = ("date", "timestamp", "timestamp_ntz")
_ROUNDED = timedelta(milliseconds=1)
"""Some writers cut the bounds of times to milliseconds."""


def time_bounds(
    statistics: str | None, types: Mapping[str, Any], names: Mapping[str, str]
) -> dict[str, tuple[Any, Any]]:
    """Return the lowest and highest value of columns with times, as far as the statistics have them.

    Times have no zone; those of instants are in UTC.

    Args:
        statistics: JSON text.
        types: types of the table's columns, in Spark's words.
        names: the table's names of columns, by those in the statistics; another one is its own.
    """
    parsed = json.loads(statistics or "{}")
    lower, upper = parsed.get("minValues") or {}, parsed.get("maxValues") or {}
    bounds: dict[str, tuple[Any, Any]] = {}
    for own in lower.keys() & upper.keys():
        name = names.get(own, own)
        if types.get(name) in _TYPES:
            low, high = time_of(lower[own]), time_of(upper[own])
            if low is not None and high is not None:
                bounds[name] = (low, high + _ROUNDED if isinstance(high, datetime) else high)
    return bounds


def time_of(text: str) -> date | datetime | None:
    """Return a date, or a time without a zone; None if Python has none, as for a year beyond 9999."""
    try:
        if len(text) == len("2026-01-01"):
            return date.fromisoformat(text)
        value = datetime.fromisoformat(text)
        return value.replace(tzinfo=None) - (value.utcoffset() or timedelta(0))
    except (ValueError, OverflowError):
        return None
