"""Tables that dataflows load into and read: one contract, one package a format. Here is which format is which package."""

from collections.abc import Callable, Mapping, Sequence

from resources.places import Place
from resources.tables.delta.table import DeltaLakeTable
from resources.tables.table import Table

FORMATS: Mapping[str, Callable[[Place, Sequence[str]], Table]] = {"delta": DeltaLakeTable}
"""By the word that ``target.format`` has for it; the first one is meant if nothing tells."""


def open_table(table_format: str, place: Place, partition_by: Sequence[str] = ()) -> Table:
    """Return the table of a format at a place; it need not exist.

    Args:
        table_format: as ``target.format`` names it.
        place: of the table.
        partition_by: columns that a new table is partitioned by.
    """
    return FORMATS[table_format](place, partition_by)


def find_table(place: Place) -> Table:
    """Return the table at a place, whoever wrote it and whatever its format; if there is none, one that says so when it is read."""
    first, *others = (make(place, ()) for make in FORMATS.values())
    return next((table for table in others if table.exists()), first)
