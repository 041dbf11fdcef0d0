"""What of the input of a stream cannot be read: a run stops at it (docs/reference/streams.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from partitions.errors import BadPart
from partitions.stream.slices import EpochSlice
from resources.kinds.contract.bad_parts import BadParts
from resources.kinds.stream.epochs import Epochs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class StreamBadParts(BadParts[EpochSlice]):
    """Bad parts of the input of epochs.

    Attributes:
        epochs: the source.
    """

    epochs: Epochs

    def find(self, spark: SparkSession, slice_: EpochSlice, pinned: str, error: Exception) -> BadPart | None:
        """Return the file, or the version, that cannot be read."""
        if slice_.reads_nothing:
            return None
        return self.epochs.find_bad_part(spark, slice_.input, pinned, error)
