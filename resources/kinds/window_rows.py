"""Which columns tell a row's window and unit, in the source and in the target (spec 05, replace_by_watermark)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.instants import as_datetime
from partitions.window.slices import WorkUnit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WINDOW_START = "_window_start"
UNIT = "_unit"
"""Columns of targets whose rows do not tell their window and unit themselves: its start, and its identity."""


@dataclass(frozen=True)
class WindowColumns:
    """Where a row's window and unit stand.

    Attributes:
        tagged: whether rows carry ``_window_start`` and ``_unit``, since no column of the source tells both.
    """

    dataflow: Dataflow
    tagged: bool

    @classmethod
    def of(cls, dataflow: Dataflow) -> WindowColumns:
        """What the source says of its columns."""
        raise NotImplementedError

    def tag(self, df: DataFrame, one: WorkUnit | None) -> DataFrame:
        """Rows of one work unit, with what tells it."""
        if not self.tagged:
            return df
        from pyspark.sql import functions as F

        start = None if one is None or one.start is None else as_datetime(one.start)
        return df.withColumn(WINDOW_START, F.lit(start).cast("timestamp")).withColumn(
            UNIT, F.lit(one.unit if one else None).cast("string")
        )

    def check(self, df: DataFrame, dataflow: Dataflow) -> None:
        """Raise ConfigurationError where rows do not tell their window and unit."""
        known = {name.casefold() for name in df.columns}
        missing = [name for name in self.names if name.casefold() not in known]
        if missing:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: expected rows with the columns {', '.join(self.names)}, by which a window is replaced, found"
                f" {', '.join(df.columns)} after the transform. Keep {', '.join(missing)}",
                code="query",
            )
