"""Keep the log of a dataflow short (docs/explanation/watermarks.md, Retention).

Entries beyond the policy are deleted with their intents; the record of ingested files, or that of loaded
windows, keeps what they loaded. The floor rises before the first deletion, so their numbers stay used. If the process dies here,
the next one continues.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from partitions.state_of_kind import lists_windows, remembers_files
from resources.watermarks.entry import Entry
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.log import WatermarkLog
from resources.watermarks.stored_objects import DELETES, FILES, LEASES, OBSERVED, QUARANTINE
from resources.watermarks.window_loads import drop_earlier_records, record_loads

_AT_ONCE = 200
"""The most entries that one run deletes: the chore must not take longer than the load."""


@dataclass(frozen=True)
class RetentionPolicy:
    """The limits of the log's length; an entry is deleted when it exceeds both limits.

    Attributes:
        entries: number of newest entries to keep.
        age: age up to which entries are kept.
        merge_every: number of lists of ingested files that stay separate before they are merged.
    """

    entries: int = 1000
    age: timedelta = timedelta(days=90)
    merge_every: int = 32


def compact_log(
    log: WatermarkLog, dataflow: str, newest: Entry | None, history: RetentionPolicy, now: datetime
) -> None:
    """Merge the lists of ingested files, and delete entries beyond the policy.

    The newest entry, an open intent, and entries whose list of files is not merged yet always stay.
    """
    if newest is None:
        return
    log.delete_numbered(dataflow, LEASES, newest.number)  # of holders that died
    by_file = remembers_files(newest.kind)
    covered = (
        IngestedFiles(log, dataflow, newest).merge(history.merge_every).number if by_file else newest.number
    )
    numbers = [number for number in log.numbers(dataflow) if number < newest.number]
    beyond = sorted(number for number in numbers[max(0, history.entries - 1) :] if number <= covered)
    removable = _older(log, dataflow, beyond[:_AT_ONCE], now - history.age)
    needed = _snapshot(
        log, dataflow, [number for number in (*numbers, newest.number) if number not in removable]
    )
    removable = [number for number in removable if number < needed]
    if removable:
        _delete(log, dataflow, newest, removable)


def _snapshot(log: WatermarkLog, dataflow: str, retained: list[int]) -> int:
    """Return the number of the oldest entry that is needed to read the retained ones."""
    oldest = log.entry(dataflow, min(retained))
    return oldest.snapshot or oldest.number


def _older(log: WatermarkLog, dataflow: str, numbers: list[int], limit: datetime) -> list[int]:
    """Return the leading numbers of an ascending list, up to an entry that is too young to delete."""
    floor, removable = log.floor(dataflow), []
    for number in numbers:
        if number > floor and datetime.fromisoformat(log.entry(dataflow, number).time) > limit:
            break
        removable.append(number)
    return removable


def _delete(log: WatermarkLog, dataflow: str, newest: Entry, numbers: list[int]) -> None:
    floor = max(numbers[-1], log.floor(dataflow))
    has_windows = lists_windows(newest.kind)
    if has_windows:
        record_loads(log, dataflow, numbers)
    log.raise_floor(dataflow, floor)
    log.delete_entries(dataflow, numbers)
    if has_windows:
        drop_earlier_records(log, dataflow)
    log.delete_numbered(dataflow, "intents", floor)
    for folder, keys in ((QUARANTINE, (newest.quarantine,)), (DELETES, (newest.deletes, newest.forgotten))):
        log.delete_numbered(dataflow, folder, floor, [key.rpartition("/")[2] for key in keys if key])
    if not remembers_files(newest.kind):
        log.delete_numbered(dataflow, FILES, floor)
        log.delete_numbered(dataflow, OBSERVED, floor)
