"""Describe an entry of the log as ``strandline why`` names it."""

from __future__ import annotations

from partitions.why_answer import LoadingEntry
from resources.watermarks.entry import Entry


def loading_entry(entry: Entry, part: str = "", part_rows: int | None = None) -> LoadingEntry:
    """Return what an entry has loaded of a part.

    Args:
        entry: the entry.
        part: what of the part it loaded; "" for all of it.
        part_rows: rows of the part alone; None if nobody has counted them.
    """
    return LoadingEntry(
        entry.number, entry.time, entry.why, entry.rows, entry.run_id, entry.table_version, part, part_rows
    )
