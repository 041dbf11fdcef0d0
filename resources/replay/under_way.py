"""The record of a replay in place: one object beside the log, and the entries since it began.

See docs/reference/replay.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pydantic import ConfigDict, Field

from partitions.fingerprint import short_hash
from resources.kinds.contract.kind import Kind
from resources.loop.recorded import recorded_slice
from resources.watermarks.entry import Entry, StoredRecord, read_record, utc_now
from resources.watermarks.log import WatermarkLog

REPLAYING = "replaying"
"""The folder of the objects, beside the log."""

_TABLE_CHANGES = ("reset", "adopt", "accept", "import")
"""Reasons of entries after which earlier entries no longer describe the table's rows."""

_MAX_ENTRIES = 1_000_000
"""All that the log has."""


class ReplayInPlace(StoredRecord):
    """A replay into the dataflow's own table that is in progress.

    Attributes:
        dataflow: the dataflow's name.
        options: the requested options as text, stored as ``asked``, or the chosen partitions and their backfill.
        range: lower (inclusive) and upper (exclusive) bound, sentinel JSON text; a column's bounds have
            its type.
        number: the number of the newest entry when it began; 0 without one.
        time: when it began, ISO in UTC; for people.
    """

    model_config = ConfigDict(populate_by_name=True)

    dataflow: str
    options: str = Field(validation_alias="asked", serialization_alias="asked")
    range: str
    number: int
    time: str


def begin_in_place(
    log: WatermarkLog, dataflow: str, options: str, typed_range: Callable[[], str]
) -> ReplayInPlace:
    """Return the replay with these options; store it if there is none."""
    if (in_progress := find_in_place(log, dataflow, options)) is not None:
        return in_progress
    newest = log.newest(dataflow)
    number = newest.number if newest else 0
    replay = ReplayInPlace(
        dataflow=dataflow, options=options, range=typed_range(), number=number, time=utc_now()
    )
    log.put_object(dataflow, REPLAYING, _name(options), replay.to_bytes())
    return find_in_place(log, dataflow, options) or replay


def find_in_place(log: WatermarkLog, dataflow: str, options: str) -> ReplayInPlace | None:
    """Return the replay in progress with these options; None if there is none."""
    data = log.get_object(dataflow, REPLAYING, _name(options))
    return None if data is None else read_record(ReplayInPlace, data, f"replay of {dataflow} in place")


def forget_in_place(log: WatermarkLog, dataflow: str, options: str) -> None:
    """Remove a finished replay, so that the same options start a new one."""
    log.delete(dataflow, REPLAYING, [_name(options)])


def entries_of(log: WatermarkLog, replay: ReplayInPlace) -> Iterator[Entry]:
    """Yield the entries of a replay that still describe the table, newest first."""
    for entry in log.history(replay.dataflow, _MAX_ENTRIES):
        if entry.number <= replay.number or entry.why in _TABLE_CHANGES:
            return
        if entry.reason == replay.options and entry.why != "abandon":
            yield entry


def done_keys(log: WatermarkLog, kind: Kind[Any], replay: ReplayInPlace) -> set[Any]:
    """Return the keys of the slice parts that a replay has loaded, as far as the log shows."""
    keys: set[Any] = set()
    for entry in entries_of(log, replay):
        intent = log.intent(replay.dataflow, entry.number)
        if intent is not None and intent.id == entry.id:
            slice_ = recorded_slice(log, kind, intent)
            keys |= set(slice_.keys) - set(slice_.failures)
    return keys


def _name(options: str) -> str:
    return f"{short_hash({'asked': options})}.json"
