"""The side tables of a stream over splits (docs/reference/streams.md)."""

from __future__ import annotations

from collections.abc import Mapping

from partitions.dataflow import Dataflow
from partitions.stream.definition import StreamWatermark
from partitions.stream.operators import EPOCH, OverWindow, splits_operator

LATE, QUARANTINE, BUFFER, CARRY = "late", "quarantine", "buffer", "over"
"""Short names of the tables: late rows, quarantined rows, waiting rows, and rows that later rows look back to."""


def stream_side_tables(dataflow: Dataflow) -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """Return the side tables of a stream by short name: table name, and partition columns.

    Empty if it is no stream over splits.
    """
    watermark = dataflow.watermark
    if not isinstance(watermark, StreamWatermark) or watermark.engine != "splits":
        return {}
    # Even without divert: rows of an abandoned number, or from before a reset, are deleted there.
    names = [LATE, QUARANTINE, BUFFER]
    names += [CARRY] if isinstance(splits_operator(dataflow.operators), OverWindow) else []
    # The buffer is not partitioned, since one read takes the files of several epochs.
    return {name: (f"{dataflow.table}__{name}", (EPOCH,) if name == CARRY else ()) for name in names}
