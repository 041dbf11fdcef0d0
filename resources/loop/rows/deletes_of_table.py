"""A copy of the deletes in force beside the table, for a state that was lost.

The copy never lacks a delete that is in force. The delete itself writes it before its entry; a decision adds to
it before its entry, and removes from it afterwards; a slice renews it before its commit, since the table may
be another or an older one by now. If a process dies after the entry of a forget, the next run or decision writes it.
A second list holds the conditions of forgotten deletes, whose rows are away and would come back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from partitions.errors import CorruptWatermark
from resources.tables.contract.table import Table
from resources.watermarks.blobs import open_blobs
from resources.watermarks.deleted_rows import (
    DeleteInForce,
    deletes_in_force,
    forgotten_deletes,
    forgotten_in,
    list_of_deletes,
    list_of_forgotten,
    united,
)
from resources.watermarks.entry import Entry
from resources.watermarks.lists import DELETED_ROWS, FORGOTTEN_DELETES, read_list
from resources.watermarks.log import WatermarkLog

_FOLDER = "_strandline_deletes"
"""Folder in the table's own; readers skip names that begin with an underscore."""


_ENDS_DELETES = ("forget", "adopt", "import", "reset")
"""Decisions after which fewer deletes may be in force than the list beside the table names."""


def put_deletes_of_table(table: Table, app_id: str, deletes: Sequence[DeleteInForce]) -> None:
    """Store all deletes in force of a dataflow beside its table, in place of an earlier list."""
    open_blobs(table.place, "table").put(_key(app_id), list_of_deletes(deletes).to_bytes())


def renew_deletes_of_table(table: Table, app_id: str, deletes: Sequence[DeleteInForce]) -> None:
    """Store the deletes in force beside the table, unless exactly these are stored there."""
    if _readable_deletes(table, app_id) != tuple(deletes):
        put_deletes_of_table(table, app_id, deletes)


def add_deletes_of_table(table: Table, app_id: str, deletes: Sequence[DeleteInForce]) -> None:
    """Store deletes beside the table that are not stored there yet; those stored there stay."""
    stored = _readable_deletes(table, app_id) or ()
    combined = united(deletes, stored)
    if combined != stored:
        put_deletes_of_table(table, app_id, combined)


def renew_lists_of_table(table: Table, log: WatermarkLog, entry: Entry) -> None:
    """Store the deletes of an entry beside the table unless they are there: forgotten ones first.

    If the process dies in between, a forgotten delete counts as in force there.
    """
    forgotten = forgotten_deletes(log, entry)
    if forgotten and _readable_forgotten(table, entry.app_id) != forgotten:
        data = list_of_forgotten(forgotten).to_bytes()
        open_blobs(table.place, "table").put(_key_of_forgotten(entry.app_id), data)
    renew_deletes_of_table(table, entry.app_id, deletes_in_force(log, entry))


def finish_deletes_of_table(table: Table, log: WatermarkLog, entry: Entry | None) -> None:
    """Store the lists beside the table if the process of a decision that ends deletes died before."""
    if entry is None or entry.why not in _ENDS_DELETES:
        return
    if entry.why == "forget" or entry.forgotten is not None:
        renew_lists_of_table(table, log, entry)


def forgotten_of_table(table: Table, app_id: str) -> Mapping[str, int]:
    """Return the conditions of forgotten deletes beside a table, each with the entry that ended it.

    Raises:
        CorruptWatermark: the list does not read.
    """
    key = _key_of_forgotten(app_id)
    data = open_blobs(table.place, "table").get(key)
    return {} if data is None else forgotten_in(read_list(FORGOTTEN_DELETES, data, key))


def deletes_of_table(table: Table, app_id: str) -> tuple[DeleteInForce, ...]:
    """Return the deletes of a dataflow that are stored beside its table; none without a list.

    Raises:
        CorruptWatermark: the list does not read.
    """
    key = _key(app_id)
    data = open_blobs(table.place, "table").get(key)
    if data is None:
        return ()
    return tuple(DeleteInForce(*row) for row in read_list(DELETED_ROWS, data, key).rows)


def forgotten_conditions(table: Table, app_id: str | None) -> tuple[str, ...]:
    """Return the conditions of deletes that were forgotten and not made again, as the table's lists say."""
    if app_id is None:
        return ()
    in_force = {delete.predicate for delete in deletes_of_table(table, app_id)}
    return tuple(predicate for predicate in forgotten_of_table(table, app_id) if predicate not in in_force)


def _readable_deletes(table: Table, app_id: str) -> tuple[DeleteInForce, ...] | None:
    """Return the deletes that are stored beside the table; None if their list does not read."""
    try:
        return deletes_of_table(table, app_id)
    except CorruptWatermark:
        return None


def _readable_forgotten(table: Table, app_id: str) -> Mapping[str, int] | None:
    """Return the forgotten deletes that are stored beside the table; None if their list does not read."""
    try:
        return forgotten_of_table(table, app_id)
    except CorruptWatermark:
        return None


def _key_of_forgotten(app_id: str) -> str:
    return f"{_FOLDER}/{app_id}-forgotten.json.gz"


def _key(app_id: str) -> str:
    return f"{_FOLDER}/{app_id}.json.gz"
