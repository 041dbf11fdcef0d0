"""Functions that the tests' dataflows name as their ``transform``, and a run's death at a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from resources.loop.rows.transform import Batch
from resources.outcome import Observer, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_batch(df: DataFrame, batch: Batch) -> DataFrame:
    """Show the function's arguments as columns."""
    from pyspark.sql import functions as F

    values = {
        "dataflow": batch.dataflow,
        "number": str(batch.number),
        "lower": batch.lower,
        "upper": batch.upper,
    }
    return df.withColumns({name: F.lit(value).cast("string") for name, value in values.items()})


class Killed(BaseException):
    """Ends a run as SIGKILL does: nothing in the product catches it."""


def killed_at(step: Step, times: int) -> Observer:
    """Return an observer that ends the run when a step occurs for this time."""
    reached: list[Step] = []

    def observer(reached_step: Step, line: str) -> None:
        reached.append(reached_step)
        if reached_step is step and reached.count(step) == times:
            raise Killed

    return observer
