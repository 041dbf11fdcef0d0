"""How many files came on which day: a note beside the log, which the entries since the last look are added to.

So a picture of months costs one read and one write a run. It is a chore and no truth: if the note is lost, the newest entries begin it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import NamedTuple

from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog

_NOTE = "arrivals"
_DAYS = 60
"""The newest days with files that are kept."""

_ENTRIES = 200
"""Entries that are read for a note that is not there, or far behind."""


class Arrived(NamedTuple):
    """Files of a day.

    Attributes:
        files: loaded in their order.
        late: loaded below the watermark.
        quarantined: put in quarantine.
    """

    files: int = 0
    late: int = 0
    quarantined: int = 0

    def plus(self, entry: Entry) -> Arrived:
        """Return the sum with those of an entry."""
        late = entry.files if entry.why == "late" else 0
        return Arrived(
            self.files + entry.files - late, self.late + late, self.quarantined + entry.quarantined
        )


def arrivals(log: WatermarkLog, dataflow: str, entry: Entry | None) -> dict[str, Arrived]:
    """Return the files of the newest 60 days that had some, by ISO day in UTC, oldest first.

    Args:
        log: of the watermarks.
        dataflow: whose.
        entry: the newest; None: nothing has come yet.
    """
    if entry is None:
        return {}
    number, days = _noted(log, dataflow, entry)
    for added in _since(log, dataflow, entry, number):
        day = added.time[:10]
        counted = days.get(day, Arrived()).plus(added)
        if any(counted):
            days[day] = counted
    days = {day: days[day] for day in sorted(days)[-_DAYS:]}
    if number != entry.number:
        log.put_note(dataflow, _NOTE, {"number": entry.number, "days": days})
    return days


def _noted(log: WatermarkLog, dataflow: str, entry: Entry) -> tuple[int, dict[str, Arrived]]:
    """Return the number that the note goes up to, and its days; a note of entries that the log does not have counts as none."""
    note = log.note(dataflow, _NOTE) or {}
    number, days = note.get("number"), note.get("days")
    if not isinstance(number, int) or number > entry.number or not isinstance(days, Mapping):
        return 0, {}
    try:
        return number, {str(day): Arrived(*map(int, counts)) for day, counts in days.items()}
    except (TypeError, ValueError):
        return 0, {}


def _since(log: WatermarkLog, dataflow: str, entry: Entry, number: int) -> Iterable[Entry]:
    if entry.number == number:
        return ()
    if entry.previous == number:
        return (entry,)
    return takewhile(lambda found: found.number > number, log.history(dataflow, _ENTRIES))
