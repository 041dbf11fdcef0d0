"""Rows that a load by a condition is about, counted while Spark writes them: those that it does not replace, and those that it copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from partitions.load import Replace
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.spark import observed_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OUTSIDE = "rows_outside"
"""Code of the error for rows that are not among those that their load replaces."""


def is_outside(load: Replace) -> Column:
    """Return whether a row is not among those that a load replaces."""
    from pyspark.sql import functions as F

    return ~F.coalesce(F.expr(sql(load.where, SPARK)), F.lit(False))


def counting(rows: DataFrame, which: Column) -> tuple[DataFrame, Callable[[], int]]:
    """Return the rows, and what tells how many of them meet a condition once they are written."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    counted = Observation()
    return observed_rows(rows, counted, F.count_if(which).alias("rows")), lambda: int(counted.get["rows"])
