"""Rows that are counted while Spark does something with them for another reason: a count of its own would read them once more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from resources.observation import observed
from resources.spark.frames import observed_rows, read_once

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Count = Callable[[], "int | None"]
"""Tells how many rows there were; nothing if Spark has not told."""


def counting(rows: DataFrame, which: Column) -> tuple[DataFrame, Count]:
    """Return the rows, and what tells how many of them meet a condition once they are written, or kept."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    counted = Observation()
    asked = observed_rows(rows, counted, F.count_if(which).alias("rows"))
    return asked, lambda: observed(counted).get("rows")


def kept_and_counted(rows: DataFrame) -> tuple[DataFrame, int | None]:
    """Return rows as :func:`resources.spark.engine.read_once` does, and how many they are; None if Spark has not told."""
    from pyspark.sql import functions as F

    asked, count = counting(rows, F.lit(True))
    kept = read_once(asked)
    return kept, count()
