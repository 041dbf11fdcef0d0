"""What a window dataflow has loaded since an entry of its log, for the dataflows that read its table.

See docs/how-to/chains.md, Wait for complete windows.
"""

from __future__ import annotations

from collections.abc import Sequence

from partitions.dataflow import Dataflow
from partitions.window.upstream import LoadedSpan, Position
from resources.watermarks.entry import LOADS, Entry, Why
from resources.watermarks.log import WatermarkLog
from resources.watermarks.work_units import WORK_UNITS, loaded_units

NO_ENTRY: Position = [0, ""]
"""The position in a log without entries."""

_EVERYTHING: frozenset[Why] = frozenset({"adopt", "import"})
"""Reasons of entries after which any row of the table may be another one."""

_ALL = 1_000_000


def position_of(entry: Entry | None) -> Position:
    """Return the number and the id of an entry."""
    return NO_ENTRY if entry is None else [entry.number, entry.id]


def loaded_since(
    log: WatermarkLog, maker: Dataflow, newest: Entry | None, position: Position | None
) -> Sequence[LoadedSpan] | None:
    """Return the windows that a dataflow has loaded after an entry; None if the log does not tell.

    Rows that a delete or the retention has removed do not count: a dataflow that reads the table has
    deletes of its own, and keeps what has expired upstream.

    Args:
        log: the watermark log.
        maker: the dataflow.
        newest: its newest entry; None if it has none.
        position: number and id of the entry; None if it is unknown.
    """
    if position is None:
        return None
    number, id_ = position
    if newest is None:
        return () if position == NO_ENTRY else None
    spans: dict[LoadedSpan, None] = {}
    for entry in log.history(maker.name, _ALL):
        if entry.number > newest.number:
            continue
        if entry.number <= number:
            return tuple(spans) if [entry.number, entry.id] == [number, id_] else None
        lists_work_units = entry.kind == "window" and entry.file_list is not None
        if entry.why in _EVERYTHING or (entry.why in LOADS and not lists_work_units):
            return None
        if entry.why in LOADS and entry.file_list is not None:
            for work in loaded_units(log.get_list(entry.file_list, WORK_UNITS)):
                if work.start is None or work.end is None:
                    return None
                spans[LoadedSpan(work.unit, work.start, work.end)] = None
        if entry.previous <= number and entry.previous <= log.floor(maker.name):
            return tuple(spans) if entry.previous == number else None
    return tuple(spans) if position == NO_ENTRY and log.floor(maker.name) == 0 else None
