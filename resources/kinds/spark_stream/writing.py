"""Commits of Spark's batches, by the output mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.loads import Load, OrderByColumn, ReplaceAll, load_for_target
from partitions.predicate import EVERYTHING, NOTHING, Predicate
from partitions.spark_stream.batches import BatchSlice
from partitions.spark_stream.definition import StructuredStream
from resources.kinds.contract.writing import Writing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class SparkStreamWriting(Writing[BatchSlice]):
    """Commits of one stream's batches.

    Attributes:
        dataflow: the definition.
    """

    dataflow: Dataflow

    @override
    def load_of_rejected(self) -> Load:
        """Return the load of the target."""
        return load_for_target(self.dataflow.target, NOTHING, ())

    @override
    def own_rows(self, slice_: BatchSlice, rows: DataFrame) -> Predicate:
        """Return all rows in output mode complete, whose batches each have the whole result."""
        return EVERYTHING if self._is_complete else NOTHING

    @property
    def _is_complete(self) -> bool:
        return self.dataflow.watermark_as(StructuredStream).output_mode == "complete"

    @override
    def load(self, slice_: BatchSlice, rows: DataFrame) -> Load:
        """Return the load of the target; in output mode complete, the replacement of all rows.

        In mode update a batch has each key once.
        """
        if self._is_complete:
            return ReplaceAll()
        order = tuple(OrderByColumn(name) for name in rows.columns if name == "window_end")
        return load_for_target(self.dataflow.target, NOTHING, order)
