"""Spark's batches as the log stores them: their numbers, and the folder that they lie in."""

from __future__ import annotations

from partitions.sentinels import deserialise
from partitions.spark_stream.batches import BatchSlice
from partitions.stream.state import StreamState
from resources.kinds.contract.stored_slices import StoredSlices
from resources.watermarks.entry import Intent
from resources.watermarks.lists import ListKind, StoredList

STREAM_BATCHES = ListKind("stream_batches", 1, ("batch", "bytes"))
"""One row for each batch of a slice; the head has the folder that they lie in."""


class StoredSparkStreamSlices(StoredSlices[BatchSlice]):
    """Conversion of slices to lists of batches."""

    @property
    def list_kind(self) -> ListKind:
        """Kind of the list: batches."""
        return STREAM_BATCHES

    def to_rows(self, slice_: BatchSlice) -> StoredList:
        """Return the batches' numbers, and their folder in the head."""
        rows = [(number, slice_.bytes) for number in slice_.batches]
        return StoredList(STREAM_BATCHES, rows, {"folder": slice_.after.position["folder"]})

    def from_rows(self, intent: Intent, stored: StoredList) -> BatchSlice:
        """Restore the slice with the same batches and the same state after them."""
        size = next((size for _, size in stored.rows), None)
        after = StreamState.of(deserialise(intent.watermark))
        return BatchSlice(tuple(number for number, _ in stored.rows), after, size)
