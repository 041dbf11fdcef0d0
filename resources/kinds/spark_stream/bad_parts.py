"""Bad parts of Spark's batches: there are none, since a bad file stops Spark before its batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.spark_stream.batches import BatchSlice
from resources.kinds.contract.bad_parts import BadParts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkStreamBadParts(BadParts[BatchSlice]):
    """Bad parts of a stream on Spark's engine: a slice never has one."""

    @override
    def find(self, spark: SparkSession, slice_: BatchSlice, pinned: str, error: Exception) -> None:
        """Return None: an unreadable outbox is no fault of the source."""
