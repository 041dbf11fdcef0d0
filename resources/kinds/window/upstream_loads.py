"""What a window dataflow has loaded since an entry of its log, for the dataflows that read its table.

See docs/how-to/chains.md, Wait for complete windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple
from weakref import WeakKeyDictionary

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
_POSITIONS = 100
"""The most answers that are kept of a log; sensors ask for the same ones at each tick."""


class _Spans(NamedTuple):
    """What was loaded up to an entry, of a number and an id."""

    number: int
    id: str
    spans: tuple[LoadedSpan, ...]


_lock = Lock()
_caches: WeakKeyDictionary[WatermarkLog, dict[tuple[str, int, str], _Spans]] = WeakKeyDictionary()


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
    if newest is None:
        return () if position == NO_ENTRY else None
    key = (maker.name, position[0], position[1])
    with _lock:
        cache = _caches.setdefault(log, {})
        earlier = cache.get(key)
    spans = _spans_since(log, maker.name, newest, position, earlier)
    if spans is not None:
        with _lock:
            cache[key] = _Spans(newest.number, newest.id, spans)
            while len(cache) > _POSITIONS:
                del cache[next(iter(cache))]
    return spans


def _spans_since(
    log: WatermarkLog, maker: str, newest: Entry, position: Position, earlier: _Spans | None
) -> tuple[LoadedSpan, ...] | None:
    """Return what was loaded after an entry; ``earlier`` is an answer of an earlier call."""
    number, spans = position[0], dict[LoadedSpan, None]()
    for entry in log.history(maker, _ALL):
        if entry.number > newest.number:
            continue
        if earlier is not None and (entry.number, entry.id) == (earlier.number, earlier.id):
            return tuple(dict.fromkeys((*spans, *earlier.spans)))
        if entry.number <= number:
            return tuple(spans) if [entry.number, entry.id] == position else None
        if (loaded := _spans_of(log, entry)) is None:
            return None
        spans |= dict.fromkeys(loaded)
        if entry.previous <= number and entry.previous <= log.floor(maker):
            return tuple(spans) if entry.previous == number else None
    return tuple(spans) if position == NO_ENTRY and log.floor(maker) == 0 else None


def _spans_of(log: WatermarkLog, entry: Entry) -> list[LoadedSpan] | None:
    """Return the windows that an entry has loaded; None if it does not tell."""
    if entry.why in _EVERYTHING:
        return None
    if entry.why not in LOADS:
        return []
    if entry.kind != "window" or entry.file_list is None:
        return None
    works = list(loaded_units(log.get_list(entry.file_list, WORK_UNITS)))
    spans = [
        LoadedSpan(work.unit, work.start, work.end)
        for work in works
        if work.start is not None and work.end is not None
    ]
    return spans if len(spans) == len(works) else None
