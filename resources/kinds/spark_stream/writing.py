"""How the commit of Spark's batches changes the table, by the output mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.loads import Load, OrderByColumn, ReplaceAll, load_for_target
from partitions.predicate import NOTHING
from partitions.spark_stream.batches import BatchSlice
from resources.kinds.contract.writing import Writing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class SparkStreamWriting(Writing[BatchSlice]):
    """Loads of batches.

    Attributes:
        dataflow: what the user declared.
    """

    dataflow: Dataflow

    @override
    def load(self, slice_: BatchSlice, rows: DataFrame) -> Load:
        """Append; in mode update by keys, of which a batch has each once; in mode complete all rows anew."""
        if self.dataflow.spark_stream.output_mode == "complete":
            return ReplaceAll()
        order = tuple(OrderByColumn(name) for name in rows.columns if name == "window_end")
        return load_for_target(self.dataflow.target, NOTHING, order)
