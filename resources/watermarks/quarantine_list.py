"""The stored list of quarantined files, which an entry names."""

from __future__ import annotations

from partitions.path.quarantined_files import Quarantine
from resources.watermarks.entry import Entry
from resources.watermarks.lists import QUARANTINED_FILES
from resources.watermarks.log import WatermarkLog


def read_quarantine(log: WatermarkLog, entry: Entry | None) -> Quarantine:
    """Return the quarantine after an entry."""
    if entry is None or entry.quarantine is None:
        return Quarantine()
    return Quarantine.of(log.get_list(entry.quarantine, QUARANTINED_FILES).rows)
