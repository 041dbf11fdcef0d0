"""Functions that the tests' dataflows name as their ``transform``, and a run's death at one of its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from resources.loop.transform import Batch
from resources.outcome import Observer, Step

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


class Killed(BaseException):
    """Ends a run as SIGKILL does: nothing in the product catches it."""


def killed_at(step: Step, times: int) -> Observer:
    """An observer that ends the run when a step was done that often."""
    seen: list[Step] = []

    def observer(done: Step, line: str) -> None:
        seen.append(done)
        if done is step and seen.count(step) == times:
            raise Killed

    return observer
