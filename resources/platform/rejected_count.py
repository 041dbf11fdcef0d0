"""How many rejected rows of a dataflow wait for a release."""

from __future__ import annotations

from partitions.dataflow import Dataflow
from partitions.table_names import REJECTED
from resources.platform.stores import Stores


def count_rejected(platform: Stores, dataflow: Dataflow) -> int | None:
    """Return how many rejected rows wait, by the log of their table; None without rules. Starts no Spark."""
    table = platform.side_tables(dataflow).get(REJECTED)
    if table is None:
        return None
    if not table.exists():
        return 0
    rows = table.contents.rows_in_log()
    return table.contents.count_rows() if rows is None else rows
