"""The highest value of a column, exact whatever the zone of the process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column


def highest_value(name: str, kind: str) -> Column:
    """Return the highest value; an instant as microseconds, since a row of pyspark has it in the zone of the process."""
    from pyspark.sql import functions as F

    column = F.col(quoted(name))
    return F.max(F.unix_micros(column) if kind == "timestamp" else column)


def as_value(value: Any, kind: str) -> Any:
    """Return what :func:`highest_value` has found as a value of the column."""
    if kind == "timestamp" and value is not None:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
    return value
