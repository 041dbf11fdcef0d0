"""Windows that wait for a stream: up to when the table that they read is complete (docs/streams.md, Complete days)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from partitions.dataflow import Dataflow
from partitions.lineage import Lineage
from partitions.stream.completeness import complete_up_to
from partitions.stream.definition import StreamWatermark
from partitions.stream.state import StreamState
from partitions.window.definition import WindowWatermark
from resources.watermarks.log import WatermarkLog


@dataclass(frozen=True)
class Waits:
    """What windows wait for.

    Attributes:
        stream: the name of the dataflow.
        reached: below it the stream's table has all of its rows, aware; None: nothing is known of any.
    """

    stream: str
    reached: datetime | None

    @property
    def in_words(self) -> str:
        """How far the stream is, for people."""
        if self.reached is None:
            return f"{self.stream} has no global watermark yet"
        return f"{self.stream} is complete up to {self.reached.isoformat()}"


def find_waits(dataflow: Dataflow, lineage: Lineage, log: WatermarkLog) -> Waits | None:
    """Return what a dataflow's windows wait for; None if they wait for nothing. Only the stream's newest entry is read."""
    watermark, table = dataflow.watermark, dataflow.source.lake_table
    if not isinstance(watermark, WindowWatermark) or not watermark.follows or table is None:
        return None
    for maker in lineage.makers(table):
        if isinstance(maker, Dataflow) and isinstance(maker.watermark, StreamWatermark):
            entry = log.newest(maker.name)
            state = StreamState.of(entry.state() if entry else None)
            column = dataflow.source.row_columns.window
            return Waits(maker.name, _in_utc(complete_up_to(maker, column, state.drained)))
    return Waits(table, None)


def _in_utc(at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at
