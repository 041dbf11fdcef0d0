"""What a window dataflow has loaded since an entry of its log, for the dataflows that read its table.

See docs/how-to/chains.md, Wait for complete windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import NamedTuple
from weakref import WeakKeyDictionary

from partitions.dataflow import Dataflow
from partitions.window.expired import LoadedSpan
from partitions.window.upstream import Position
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog
from resources.watermarks.window_loads import DeletedLoads, LoadedWindow, windows_of

NO_ENTRY: Position = [0, ""]
"""The position in a log without entries."""

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
    spans = _spans_since(log, maker, newest, position, earlier)
    if spans is not None:
        with _lock:
            cache[key] = _Spans(newest.number, newest.id, spans)
            while len(cache) > _POSITIONS:
                del cache[next(iter(cache))]
    return spans


def _spans_since(
    log: WatermarkLog, maker: Dataflow, newest: Entry, position: Position, earlier: _Spans | None
) -> tuple[LoadedSpan, ...] | None:
    """Return what was loaded after an entry; ``earlier`` is an answer of an earlier call."""
    (number, entry_id), spans = position, dict[LoadedSpan, None]()
    oldest = newest.number
    for entry in log.history(maker.name, _ALL):
        if entry.number > newest.number:
            continue
        if earlier is not None and (entry.number, entry.id) == (earlier.number, earlier.id):
            return tuple(dict.fromkeys((*spans, *earlier.spans)))
        if entry.number <= number:
            return tuple(spans) if [entry.number, entry.id] == position else None
        if (loaded := windows_of(log, maker.name, entry)) is None:
            return None
        spans |= dict.fromkeys(_changed(maker, loaded))
        oldest = entry.previous
    record = DeletedLoads.of(log, maker.name) if number else None
    if oldest == number:  # the entry itself was deleted, or there was none
        return None if record and record.rules_out(number, entry_id) else tuple(spans)
    record = record or DeletedLoads.of(log, maker.name)
    loaded_before = record.since(number, entry_id) if record and record.number >= oldest else None
    if loaded_before is None:
        return None
    return tuple(spans | dict.fromkeys(_changed(maker, loaded_before)))


def _changed(maker: Dataflow, windows: Iterable[LoadedWindow]) -> Iterator[LoadedSpan]:
    """Yield the stretches whose rows may differ: the part of a window that was read.

    If the start of its window is all that a row tells of its time, or nothing has checked where the rows of
    a user's step lie, they may lie anywhere in the window.
    """
    has_step = maker.sql is not None or maker.transform is not None
    is_unchecked = has_step and not maker.target.replace_by_watermark
    whole = is_unchecked or maker.source.row_columns.window is None
    for unit, start, lower, end in windows:
        yield LoadedSpan(unit, start if whole else lower, end)
