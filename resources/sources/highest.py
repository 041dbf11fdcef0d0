"""The highest value of a column, exact in any time zone of the process."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column


_KNOWN_TIMES = {
    "date": ("0001-01-01", "9999-12-31"),
    "timestamp_ntz": ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
    "timestamp": ("0001-01-01 00:00:00Z", "9999-12-31 23:59:59.999999Z"),
}


def highest_value(name: str, kind: str) -> Column:
    """Return the aggregate for a column's highest value; instants become microseconds.

    pyspark would return an instant in the zone of the process. Infinity, NaN (Spark's highest number) and
    years that Python lacks are ignored, since no watermark can hold them.
    """
    from pyspark.sql import functions as F

    column = F.col(quoted(name))
    if kind in ("float", "double"):
        return F.max(F.when(column.between(-sys.float_info.max, sys.float_info.max), column))
    if kind in _KNOWN_TIMES:
        column = F.when(column.between(*(F.lit(text).cast(kind) for text in _KNOWN_TIMES[kind])), column)
    return F.max(F.unix_micros(column) if kind == "timestamp" else column)


def as_value(value: Any, kind: str) -> Any:
    """Return the result of :func:`highest_value` as a value of the column."""
    if kind == "timestamp" and value is not None:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
    return value
