"""The deletes in force, which each entry names: rows that no later slice writes.

See docs/how-to/deleting-and-keeping.md. The list is carried from entry to entry, so that no compaction,
copy, reset or rename can lose it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from partitions.errors import CorruptWatermark
from resources.watermarks.entry import Entry
from resources.watermarks.lists import DELETED_ROWS, FORGOTTEN_DELETES, StoredList
from resources.watermarks.log import WatermarkLog
from resources.watermarks.stored_objects import DELETES

RETENTION = 0
"""The number of the rule that a retention makes: no entry has it."""


@dataclass(frozen=True)
class DeleteInForce:
    """A delete in force: no later slice writes the rows that its condition names.

    Attributes:
        number: number of its entry.
        predicate: condition in Spark's SQL.
        columns: types of the columns that the condition names, by name, in Spark's words.
        reason: the operator's reason.
        time: when it was made, ISO in UTC.
    """

    number: int
    predicate: str
    columns: Mapping[str, str]
    reason: str
    time: str

    def as_json(self) -> dict[str, Any]:
        """Return the delete in the public JSON form (docs/reference/cli.md, JSON)."""
        return {
            "number": self.number,
            "predicate": self.predicate,
            "columns": dict(self.columns),
            "reason": self.reason,
            "time": self.time,
        }


def deletes_in_force(log: WatermarkLog, entry: Entry | None) -> tuple[DeleteInForce, ...]:
    """Return the deletes in force after an entry, oldest first.

    Raises:
        CorruptWatermark: their list is missing or does not read.
    """
    return () if entry is None or entry.deletes is None else stored_deletes(log, entry.deletes)


def stored_deletes(log: WatermarkLog, key: str) -> tuple[DeleteInForce, ...]:
    """Return the deletes of a stored list, oldest first.

    Raises:
        CorruptWatermark: the list is missing or does not read.
    """
    return tuple(DeleteInForce(*row) for row in log.get_list(key, DELETED_ROWS).rows)


def put_deletes(log: WatermarkLog, dataflow: str, name: str, deletes: Sequence[DeleteInForce]) -> str | None:
    """Store the deletes in force beside the log; return the object's key, None if there are none.

    Args:
        log: the log.
        dataflow: the dataflow's name.
        name: the number of their entry, ten digits, and its id.
        deletes: all of them, oldest first.
    """
    if not deletes:
        return None
    return log.put_list(dataflow, name, list_of_deletes(deletes), DELETES)


def list_of_deletes(deletes: Sequence[DeleteInForce]) -> StoredList:
    """Return deletes as a list that can be stored."""
    rows = [
        (delete.number, delete.predicate, dict(delete.columns), delete.reason, delete.time)
        for delete in deletes
    ]
    return StoredList(DELETED_ROWS, rows)


def forgotten_deletes(log: WatermarkLog, entry: Entry | None) -> dict[str, int]:
    """Return the conditions of deletes that were forgotten by an entry, each with the entry that ended it.

    A list that is lost stops nobody: without it such a delete may come in force again, and no row comes back.
    """
    if entry is not None and entry.forgotten is not None:
        with suppress(CorruptWatermark):
            return forgotten_in(log.get_list(entry.forgotten, FORGOTTEN_DELETES))
    return {}


def put_forgotten(log: WatermarkLog, dataflow: str, name: str, forgotten: Mapping[str, int]) -> str | None:
    """Store the conditions of forgotten deletes beside the log; return the object's key, None without any.

    Args:
        log: the log.
        dataflow: the dataflow's name.
        name: the number of their entry, ten digits, and its id.
        forgotten: the number of the entry that ended it, by condition.
    """
    if not forgotten:
        return None
    return log.put_list(dataflow, f"{name}-forgotten", list_of_forgotten(forgotten), DELETES)


def list_of_forgotten(forgotten: Mapping[str, int]) -> StoredList:
    """Return the conditions of forgotten deletes as a list that can be stored."""
    return StoredList(FORGOTTEN_DELETES, [(number, predicate) for predicate, number in forgotten.items()])


def forgotten_in(stored: StoredList) -> dict[str, int]:
    """Return the numbers of a stored list of forgotten deletes, by condition."""
    return {predicate: number for number, predicate in stored.rows}


def without_forgotten(
    deletes: Sequence[DeleteInForce], forgotten: Mapping[str, int]
) -> tuple[DeleteInForce, ...]:
    """Return the deletes that no later entry has ended."""
    return tuple(delete for delete in deletes if forgotten.get(delete.predicate, 0) < delete.number)


def united(*lists: Sequence[DeleteInForce]) -> tuple[DeleteInForce, ...]:
    """Return the deletes of several lists, each condition once, oldest first."""
    by_predicate = {delete.predicate: delete for deletes in reversed(lists) for delete in deletes}
    return tuple(sorted(by_predicate.values(), key=lambda delete: delete.number))
