"""What is known of a replay in place that is under way: one object beside the log, and the entries since it began (docs/reference/replay.md, In place)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from partitions.fingerprint import short_hash
from resources.kinds.contract.kind import Kind
from resources.loop.recorded import recorded_slice
from resources.watermarks.entry import Entry, StoredRecord, read_record, utc_now
from resources.watermarks.log import WatermarkLog

REPLAYING = "replaying"
"""The folder of the objects, beside the log."""

_ANOTHER_TABLE = ("reset", "adopt", "accept", "import")
"""After these an entry before tells nothing of the table's rows."""

_MOST_ENTRIES = 1_000_000
"""All that the log has."""


class InPlace(StoredRecord):
    """A replay into the dataflow's own table that is under way.

    Attributes:
        dataflow: its name.
        asked: what was asked for: as options of the command, or which partitions by which backfill.
        range: lower (inclusive) and upper (exclusive) bound, sentinel JSON text; of a column as values of its type.
        number: of the newest entry when it began; 0 without one.
        time: when it began, ISO in UTC; for people.
    """

    dataflow: str
    asked: str
    range: str
    number: int
    time: str


def begin(log: WatermarkLog, dataflow: str, words: str, typed_range: Callable[[], str]) -> InPlace:
    """Return the replay that was asked for in these words; put it, if there is none."""
    if (under_way := find(log, dataflow, words)) is not None:
        return under_way
    newest = log.newest(dataflow)
    number = newest.number if newest else 0
    replay = InPlace(dataflow=dataflow, asked=words, range=typed_range(), number=number, time=utc_now())
    log.put_object(dataflow, REPLAYING, _name(words), replay.to_bytes())
    return find(log, dataflow, words) or replay


def find(log: WatermarkLog, dataflow: str, words: str) -> InPlace | None:
    """Return the replay that is under way and was asked for so; None if there is none."""
    data = log.get_object(dataflow, REPLAYING, _name(words))
    return None if data is None else read_record(InPlace, data, f"replay of {dataflow} in place")


def forget(log: WatermarkLog, dataflow: str, words: str) -> None:
    """All of it is done: the same may be asked for again."""
    log.delete(dataflow, REPLAYING, [_name(words)])


def entries_of(log: WatermarkLog, replay: InPlace) -> Iterator[Entry]:
    """Yield the entries of a replay that still tell what is in the table, newest first."""
    for entry in log.history(replay.dataflow, _MOST_ENTRIES):
        if entry.number <= replay.number or entry.why in _ANOTHER_TABLE:
            return
        if entry.reason == replay.asked and entry.why != "abandon":
            yield entry


def done_keys(log: WatermarkLog, kind: Kind[Any], replay: InPlace) -> set[Any]:
    """Return what tells the parts of slices that a replay has loaded, as far as the log knows."""
    keys: set[Any] = set()
    for entry in entries_of(log, replay):
        intent = log.intent(replay.dataflow, entry.number)
        if intent is not None and intent.id == entry.id:
            slice_ = recorded_slice(log, kind, intent)
            keys |= set(slice_.keys) - set(slice_.failures)
    return keys


def _name(words: str) -> str:
    return f"{short_hash({'asked': words})}.json"
