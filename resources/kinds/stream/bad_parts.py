"""Unreadable parts of a stream's input: a run stops at them (docs/reference/streams.md)."""

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
    """Unreadable files or versions in the input of epochs.

    Attributes:
        epochs: the source, read epoch by epoch.
    """

    epochs: Epochs

    def find(self, spark: SparkSession, slice_: EpochSlice, pinned: str, error: Exception) -> BadPart | None:
        """Return the file or version that cannot be read; None if the source is not the cause."""
        if slice_.reads_nothing:
            return None
        return self.epochs.find_bad_part(spark, slice_.input, pinned, error)
