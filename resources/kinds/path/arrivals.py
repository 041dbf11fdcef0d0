"""The number of files that arrived on each day, kept in a note beside the log.

Each run adds the entries since the last one, so a chart of months costs one read and one write. Nothing
depends on the note: if it is lost, the newest entries start it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import NamedTuple

from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog

_NOTE = "arrivals"
_DAYS = 60
"""The number of newest days with files that the note keeps."""

_ENTRIES = 200
"""The most entries that are read for a note that is not there, or far behind."""


class DayArrivals(NamedTuple):
    """The files of one day.

    Attributes:
        files: loaded ones, except late ones.
        late: loaded late ones.
        quarantined: those put in quarantine.
    """

    files: int = 0
    late: int = 0
    quarantined: int = 0

    def plus(self, entry: Entry) -> DayArrivals:
        """Return the sum with an entry's files."""
        late = entry.files if entry.why == "late" else 0
        return DayArrivals(
            self.files + entry.files - late, self.late + late, self.quarantined + entry.quarantined
        )


def arrivals(log: WatermarkLog, dataflow: str, entry: Entry | None) -> dict[str, DayArrivals]:
    """Return the files of the newest 60 days with files, by ISO day in UTC, oldest first.

    Args:
        log: the watermark log.
        dataflow: the dataflow's name.
        entry: the newest entry; None if nothing has arrived yet.
    """
    if entry is None:
        return {}
    number, days = _read_note(log, dataflow, entry)
    for added in _since(log, dataflow, entry, number):
        day = added.time[:10]
        day_arrivals = days.get(day, DayArrivals()).plus(added)
        if any(day_arrivals):
            days[day] = day_arrivals
    days = {day: days[day] for day in sorted(days)[-_DAYS:]}
    if number != entry.number:
        log.put_note(dataflow, _NOTE, {"number": entry.number, "days": days})
    return days


def _read_note(log: WatermarkLog, dataflow: str, entry: Entry) -> tuple[int, dict[str, DayArrivals]]:
    """Return the number that the note covers, and its days; 0 and none if the log lacks that number."""
    note = log.note(dataflow, _NOTE) or {}
    number, days = note.get("number"), note.get("days")
    if not isinstance(number, int) or number > entry.number or not isinstance(days, Mapping):
        return 0, {}
    try:
        return number, {str(day): DayArrivals(*map(int, counts)) for day, counts in days.items()}
    except (TypeError, ValueError):
        return 0, {}


def _since(log: WatermarkLog, dataflow: str, entry: Entry, number: int) -> Iterable[Entry]:
    if entry.number == number:
        return ()
    if entry.previous == number:
        return (entry,)
    return takewhile(lambda entry_: entry_.number > number, log.history(dataflow, _ENTRIES))
