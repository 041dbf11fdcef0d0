"""The stored list of a slice's work units, which its intent names."""

from __future__ import annotations

from collections.abc import Iterator

from partitions.window.work_unit import WorkUnit
from resources.watermarks.lists import ListKind, StoredList

WORK_UNITS = ListKind(
    "work_units", 1, ("start", "end", "unit", "lower", "reason", "open", "grid", "bound", "error")
)
"""The work units of a slice, with the error of one that is skipped; the head says what is read, when it was planned, what was
deferred, and the files of each work unit if it is a folder."""


def loaded_units(stored: StoredList) -> Iterator[WorkUnit]:
    """Return the work units that a slice loads, without the failed ones."""
    return (WorkUnit(*row) for *row, error in stored.rows if error is None)
