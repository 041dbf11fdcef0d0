"""The rows that the retention of an upstream has taken out, for the windows that read its table.

See docs/how-to/chains.md, Limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo

from partitions.dataflow import Dataflow
from partitions.instants import as_datetime, milliseconds
from partitions.window.definition import WindowWatermark
from partitions.window.expired import EarlierExpiry, ExpiredRows, LoadedSpan
from resources.kinds.window.upstream_loads import loaded_since
from resources.watermarks.entry import Entry
from resources.watermarks.expiry import Expiry, find_expiry
from resources.watermarks.log import WatermarkLog

_ALL = 2**62
"""After every instant: a retention by another column has taken out rows of any window."""


def find_expired(
    log: WatermarkLog,
    maker: Dataflow,
    entry: Entry | None,
    now: datetime,
    columns: frozenset[str],
    zone: tzinfo,
) -> ExpiredRows | None:
    """Return the rows that retentions have taken out of a dataflow's table; None if there was never one.

    Args:
        log: the watermark log.
        maker: the dataflow that loads the table.
        entry: its newest entry.
        now: the clock, aware.
        columns: the columns that tell the window of a row, in lower case.
        zone: the zone of times that have none.
    """
    retention = maker.target.retention
    earlier = find_expiry(entry, log.history(maker.name))
    by_time = retention is not None and retention.column.casefold() in columns
    before = _local(milliseconds(retention.limit(now)), zone) if retention and by_time else None
    if earlier is None:
        return None if before is None else ExpiredRows(maker.table, before)
    steps = []
    for step in earlier.steps:
        bounds = [
            _local(bound, zone) if column.casefold() in columns else _ALL
            for column, bound in step.before.items()
        ]
        steps.append(EarlierExpiry(max(bounds), _spans(log, maker, entry, step)))
    return ExpiredRows(maker.table, before, tuple(steps))


def _spans(log: WatermarkLog, maker: Dataflow, entry: Entry | None, earlier: Expiry) -> Sequence[LoadedSpan]:
    if not isinstance(maker.watermark, WindowWatermark):
        return ()
    return loaded_since(log, maker, entry, [earlier.number, earlier.id]) or ()


def _local(bound: int, zone: tzinfo) -> int:
    """Return a midnight in UTC, or that of a zone if it is later: times without a zone count as UTC."""
    local = as_datetime(bound).replace(tzinfo=zone)
    return max(bound, milliseconds(local))
