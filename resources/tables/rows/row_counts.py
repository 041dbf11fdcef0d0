"""Count rows while Spark writes or caches them, because a separate count would read them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from resources.observation import observed_values
from resources.spark.frames import observed_rows, read_once

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RowCounter = Callable[[], "int | None"]
"""Returns a number of rows; None if Spark did not report it."""


def count_while_written(rows: DataFrame, condition: Column) -> tuple[DataFrame, RowCounter]:
    """Return the rows, and a function that counts those that met a condition.

    The count is known once the rows are written or cached.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    observation = Observation()
    observed_frame = observed_rows(rows, observation, F.count_if(condition).alias("rows"))
    return observed_frame, lambda: observed_values(observation).get("rows")


def cache_and_count(rows: DataFrame) -> tuple[DataFrame, int | None]:
    """Cache rows and count them; the count is None if Spark did not report it.

    See :func:`resources.spark.frames.read_once`.
    """
    from pyspark.sql import functions as F

    observed_frame, count = count_while_written(rows, F.lit(True))
    cached = read_once(observed_frame)
    return cached, count()
