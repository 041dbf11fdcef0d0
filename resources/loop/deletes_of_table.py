"""A copy of the deletes in force beside the table, for a state that was lost.

The copy never lacks a delete that is in force. The delete itself writes it before its entry; a decision adds to
it before its entry, and removes from it afterwards; a slice renews it before its commit, since the table may
be another or an older one by now. If a process dies after the entry of a forget, the next run or decision writes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from partitions.errors import CorruptWatermark
from resources.tables.contract.table import Table
from resources.watermarks.blobs import open_blobs
from resources.watermarks.deleted_rows import DeleteInForce, deletes_in_force, list_of_deletes, united
from resources.watermarks.entry import Entry
from resources.watermarks.lists import DELETED_ROWS, read_list
from resources.watermarks.log import WatermarkLog

_FOLDER = "_strandline_deletes"
"""Folder in the table's own; readers skip names that begin with an underscore."""


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


def finish_deletes_of_table(table: Table, log: WatermarkLog, entry: Entry | None) -> None:
    """Store the deletes beside the table if the process of a forget died before it did so."""
    if entry is not None and entry.why == "forget":
        renew_deletes_of_table(table, entry.app_id, deletes_in_force(log, entry))


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


def _readable_deletes(table: Table, app_id: str) -> tuple[DeleteInForce, ...] | None:
    """Return the deletes that are stored beside the table; None if their list does not read."""
    try:
        return deletes_of_table(table, app_id)
    except CorruptWatermark:
        return None


def _key(app_id: str) -> str:
    return f"{_FOLDER}/{app_id}.json.gz"
