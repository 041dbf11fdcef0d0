"""Times of Python, NumPy and pandas, converted to one kind: all with a zone, or all without.

See docs/reference/python-functions.md, What it yields.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from typing import Any

from partitions.instants import zone_of
from partitions.local_time import latest_instant

_MISSING = frozenset({"NaTType", "NAType"})
"""What pandas writes for no value, by the names of the types."""


def is_missing_type(value_type: type) -> bool:
    """Return whether a type is one of pandas' markers for a missing value."""
    return value_type.__name__ in _MISSING and value_type.__module__.startswith("pandas.")


def is_missing(value: Any) -> bool:
    """Return whether a value is None, or a missing value of pandas."""
    return value is None or is_missing_type(type(value))


def is_time_type(value_type: type) -> bool:
    """Return whether values of the type are days or times, of Python or NumPy."""
    return issubclass(value_type, date) or value_type.__name__ == "datetime64"


def are_zoned(values: Sequence[Any], value_types: set[type]) -> bool:
    """Return whether all values are times with a zone, which Arrow accepts unchanged."""
    return value_types == {datetime} and all(value is None or value.tzinfo is not None for value in values)


def times_of_one_kind(values: Sequence[Any], zone: str | None, zoned: bool) -> Sequence[Any]:
    """Return days if all values are days; else times, all with a zone if one has it."""
    days_or_times = [python_time(value) for value in values]
    if all(value is None or not isinstance(value, datetime) for value in days_or_times) and not zoned:
        return days_or_times
    times = [_midnight(value) for value in days_or_times]
    if zoned or any(value is not None and value.tzinfo is not None for value in times):
        if zone is None and not all(value is None or value.tzinfo for value in times):
            raise TypeError("times with and without a zone")
        local_zone = zone_of(zone or "UTC")
        return [
            value and (value.astimezone(UTC) if value.tzinfo else latest_instant(value, local_zone))
            for value in times
        ]
    return times


def python_time(value: Any) -> Any:
    """Return a time of NumPy or pandas as a Python time.

    Raises:
        ValueError: it has nanoseconds.
        TypeError: it is no time.
    """
    import pyarrow as pa

    if type(value).__name__ == "datetime64":
        value = pa.scalar(value).as_py()
    if getattr(value, "nanosecond", 0):
        raise ValueError(f"{value} has nanoseconds, which no column holds")
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime()
    if value is not None and not isinstance(value, date):
        raise TypeError(f"times and {type(value).__name__}")
    return value


def _midnight(value: date | None) -> datetime | None:
    return value if value is None or isinstance(value, datetime) else datetime.combine(value, time.min)
