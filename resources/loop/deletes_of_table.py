"""A copy of the deletes in force beside the table, for a state that was lost.

The object is written before the entry of a delete, and after that of a forget. So it never lacks a delete
that is in force. If a process dies after the entry of a forget, the next run or decision writes the object.
"""

from __future__ import annotations

from collections.abc import Sequence

from partitions.errors import CorruptWatermark
from resources.tables.contract.table import Table
from resources.watermarks.blobs import open_blobs
from resources.watermarks.deleted_rows import DeleteInForce, deletes_in_force, list_of_deletes
from resources.watermarks.entry import Entry
from resources.watermarks.lists import DELETED_ROWS, read_list
from resources.watermarks.log import WatermarkLog

_FOLDER = "_strandline_deletes"
"""Folder in the table's own; readers skip names that begin with an underscore."""

_LISTED_AFTERWARDS = ("forget", "import")
"""Decisions that change which deletes are in force, and write the list after their entry."""


def put_deletes_of_table(table: Table, app_id: str, deletes: Sequence[DeleteInForce]) -> None:
    """Store all deletes in force of a dataflow beside its table, in place of an earlier list."""
    open_blobs(table.place, "table").put(_key(app_id), list_of_deletes(deletes).to_bytes())


def renew_deletes_of_table(table: Table, log: WatermarkLog, entry: Entry | None) -> None:
    """Store the deletes beside the table if the process of a forget or import died before it did so."""
    if entry is None or entry.why not in _LISTED_AFTERWARDS:
        return
    in_force = deletes_in_force(log, entry)
    try:
        is_current = deletes_of_table(table, entry.app_id) == in_force
    except CorruptWatermark:
        is_current = False
    if not is_current:
        put_deletes_of_table(table, entry.app_id, in_force)


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


def _key(app_id: str) -> str:
    return f"{_FOLDER}/{app_id}.json.gz"
