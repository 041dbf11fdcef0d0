"""Windows that wait for a stream: up to when its table is complete.

See docs/reference/streams.md, Complete days.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from partitions.dataflow import Dataflow
from partitions.lineage import Lineage
from partitions.stream.completeness import complete_up_to
from partitions.stream.definition import StreamWatermark
from partitions.stream.state import StreamState
from resources.loop.entries import required_commit
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog


@dataclass(frozen=True)
class Waits:
    """The dataflow that windows wait for, and up to when its table is complete.

    Attributes:
        stream: its name; the table that is read if no stream of the project makes it.
        reached: the time below which its table has all rows, aware; None: unknown.
        lacks_rows: whether the table is not the one that the dataflow has loaded, so that nothing is known.
        is_stream: whether it is a stream, or the table of none.
    """

    stream: str
    reached: datetime | None
    lacks_rows: bool = False
    is_stream: bool = False

    @property
    def in_words(self) -> str:
        """How far the dataflow is, for people."""
        if self.lacks_rows:
            return (
                f"the table of {self.stream} is older than its state, or a different table: `strandline run "
                f"{self.stream}` shows what to do"
            )
        if self.reached is None:
            return f"{self.stream} has no {'global ' if self.is_stream else ''}watermark yet"
        return f"{self.stream} is complete up to {self.reached.isoformat()}"


def find_waits(
    dataflow: Dataflow, lineage: Lineage, log: WatermarkLog, table_of: Callable[[Dataflow], Table]
) -> Waits | None:
    """Return what a dataflow's windows wait for; None if they wait for nothing.

    Args:
        dataflow: whose windows may wait.
        lineage: says which stream makes the table that it reads.
        log: the watermark log.
        table_of: opens the table that a dataflow loads.
    """
    table = dataflow.source.lake_table
    if not dataflow.watermark.follows or table is None:
        return None
    for maker in lineage.makers(table):
        if isinstance(maker, Dataflow) and isinstance(maker.watermark, StreamWatermark):
            entry = log.newest(maker.name)
            if entry is not None and not holds_loaded(table_of(maker), entry):
                return Waits(maker.name, None, lacks_rows=True, is_stream=True)
            state = StreamState.of(entry.state() if entry else None)
            column = dataflow.source.row_columns.window
            return Waits(maker.name, _in_utc(complete_up_to(maker, column, state.drained)), is_stream=True)
    return Waits(table, None, is_stream=True)


def holds_loaded(table: Table, entry: Entry) -> bool:
    """Return whether a table still has all rows that count as loaded."""
    if (loaded := required_commit(entry)) is None:
        return True
    head = table.head(loaded, entry.app_id)
    return (
        head.newest is not None and head.has_recorded and not head.emptied_by and not head.lacks_recorded_file
    )


def _in_utc(at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at
