"""Windows that wait for a stream: up to when its table is complete.

See docs/reference/streams.md, Complete days.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo

from partitions.dataflow import Dataflow
from partitions.fingerprint import fingerprint
from partitions.lineage import Lineage
from partitions.stream.completeness import complete_up_to
from partitions.stream.definition import StreamWatermark
from partitions.stream.state import StreamState
from partitions.window.expired import ExpiredRows
from partitions.window.upstream import UpstreamTables
from resources.kinds.window.expired import find_expired
from resources.loop.entries import required_commit
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog

_INSTANT = "timestamp"
"""The type of a column whose values are instants, in Spark's words."""


@dataclass(frozen=True)
class Waits:
    """The dataflow that windows wait for, and up to when its table is complete.

    Attributes:
        stream: its name; the table that is read if no stream of the project makes it.
        reached: the time below which its table has all rows, aware; None: unknown.
        lacks_rows: whether the table is not the one that the dataflow has loaded, so that nothing is known.
        problem: another reason why nothing is known, for people; "" if there is none.
        is_stream: whether it is a stream, or the table of none.
        expired: the rows that a retention has taken out of its table; None if there was never one.
    """

    stream: str
    reached: datetime | None
    lacks_rows: bool = False
    is_stream: bool = False
    problem: str = ""
    expired: ExpiredRows | None = None

    def tables(self, zone: tzinfo) -> UpstreamTables | None:
        """Return the table that windows in a zone read, if rows of it are gone; None if none are."""
        return UpstreamTables((), zone, (self.expired,)) if self.expired else None

    @property
    def in_words(self) -> str:
        """How far the dataflow is, for people."""
        if self.problem:
            return self.problem
        if self.lacks_rows:
            return (
                f"the table of {self.stream} is older than its state, or a different table: `strandline run "
                f"{self.stream}` shows what to do"
            )
        if self.reached is None:
            return f"{self.stream} has no {'global ' if self.is_stream else ''}watermark yet"
        return f"{self.stream} is complete up to {self.reached.isoformat()}"


def find_waits(
    dataflow: Dataflow,
    lineage: Lineage,
    log: WatermarkLog,
    table_of: Callable[[Dataflow], Table],
    now: datetime,
) -> Waits | None:
    """Return what a dataflow's windows wait for; None if they wait for nothing.

    Args:
        dataflow: whose windows may wait.
        lineage: says which stream makes the table that it reads.
        log: the watermark log.
        table_of: opens the table that a dataflow loads.
        now: the clock, aware.
    """
    table = dataflow.source.lake_table
    if not dataflow.watermark.follows or table is None:
        return None
    for maker in lineage.makers(table):
        if isinstance(maker, Dataflow) and isinstance(maker.watermark, StreamWatermark):
            entry = log.newest(maker.name)
            if has_changed(maker, entry):
                return Waits(maker.name, None, is_stream=True, problem=describe_change(maker))
            if entry is not None and not holds_loaded(table_of(maker), entry):
                return Waits(maker.name, None, lacks_rows=True, is_stream=True)
            state = StreamState.of(entry.state() if entry else None)
            column = dataflow.source.row_columns.window or ""
            expired = find_expired(log, maker, entry, now, frozenset({column.casefold()}), dataflow.zone)
            reached = complete_up_to(maker, column, state.drained)
            # Times without a zone belong to the windows as the reader cuts them, in its own zone.
            if reached is not None and lacks_zone(table_of(maker), column):
                reached = reached.replace(tzinfo=dataflow.zone)
            return Waits(maker.name, reached, is_stream=True, expired=expired)
    return Waits(table, None, is_stream=True)


def has_changed(maker: Dataflow, entry: Entry | None) -> bool:
    """Return whether a definition has changed since the newest entry, and nobody has accepted it.

    Its state then says nothing of the windows that it declares now.
    """
    return entry is not None and bool(entry.fingerprint) and entry.fingerprint != fingerprint(maker)


def describe_change(maker: Dataflow) -> str:
    """Return what to do about a changed definition, for people."""
    return f"the definition of {maker.name} has changed since it was loaded: `strandline run {maker.name}` shows what to do"


def holds_loaded(table: Table, entry: Entry) -> bool:
    """Return whether a table still has all rows that count as loaded."""
    if (loaded := required_commit(entry)) is None:
        return True
    head = table.head(loaded, entry.app_id)
    return (
        head.newest is not None and head.has_recorded and not head.emptied_by and not head.lacks_recorded_file
    )


def lacks_zone(table: Table, column: str) -> bool:
    """Return whether a table has the column, and its values are no instants."""
    return any(
        name.casefold() == column.casefold() and data_type != _INSTANT for name, data_type in _columns(table)
    )


def describe_type(table: Table, column: str) -> str:
    """Return name and type of a column, such as ``at (date)``."""
    return next(
        f"{name} ({data_type})" for name, data_type in _columns(table) if name.casefold() == column.casefold()
    )


def _columns(table: Table) -> Iterator[tuple[str, object]]:
    described = table.contents.schema()
    for field in json.loads(described[1])["fields"] if described else ():
        yield field["name"], field["type"]
