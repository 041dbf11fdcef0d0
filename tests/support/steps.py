"""Functions that the tests' dataflows name as their ``transform``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from resources.loop.transform import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_batch(df: DataFrame, batch: Batch) -> DataFrame:
    """Show what the function was told, as columns."""
    from pyspark.sql import functions as F

    told = {
        "dataflow": batch.dataflow,
        "number": str(batch.number),
        "lower": batch.lower,
        "upper": batch.upper,
    }
    return df.withColumns({name: F.lit(value).cast("string") for name, value in told.items()})
