"""The highest value of a column, exact whatever the zone of the process."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column


def highest_value(name: str, kind: str) -> Column:
    """Return the highest value; an instant as microseconds, since a row of pyspark has it in the zone of the process.

    Infinity and NaN, which Spark takes for the highest number of all, are no values that a watermark can have.
    """
    from pyspark.sql import functions as F

    column = F.col(quoted(name))
    if kind in ("float", "double"):
        return F.max(F.when(column.between(-sys.float_info.max, sys.float_info.max), column))
    return F.max(F.unix_micros(column) if kind == "timestamp" else column)


def as_value(value: Any, kind: str) -> Any:
    """Return what :func:`highest_value` has found as a value of the column."""
    if kind == "timestamp" and value is not None:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
    return value
