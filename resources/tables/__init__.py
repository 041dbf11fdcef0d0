"""Tables that dataflows load into and read: one contract, one package a format. Here is which format is which package."""

from collections.abc import Sequence

from resources.places import Place
from resources.tables.delta.table import DeltaLakeTable
from resources.tables.table import Table


def open_table(table_format: str, place: Place, partition_by: Sequence[str] = ()) -> Table:
    """Return the table at a place, which need not exist.

    Args:
        table_format: as ``target.format`` names it.
        place: of the table.
        partition_by: columns that a new table is partitioned by.
    """
    return {"delta": DeltaLakeTable}[table_format](place, partition_by)
