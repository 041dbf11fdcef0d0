"""Find the files that a load takes out of a Parquet table, whole or in part."""

from __future__ import annotations

from partitions.errors import RowsRefused
from partitions.file_statistics import FileMatch, match_statistics
from partitions.loads import Append, Load, Replace, ReplaceAll
from resources.tables.parquet.columns import (
    column_types,
)
from resources.tables.parquet.commit_list import (
    ListedFile,
    TableSnapshot,
)
from resources.tables.parquet.extents import extents_of


def find_removals(table: TableSnapshot, load: Load) -> tuple[tuple[ListedFile, ...], tuple[ListedFile, ...]]:
    """Return the files that a load removes wholly, and the files of which it may remove some rows.

    Raises:
        RowsRefused: the load is keyed.
    """
    if isinstance(load, Append):
        return (), ()
    if isinstance(load, ReplaceAll):
        return tuple(table.files.values()), ()
    if not isinstance(load, Replace):
        raise RowsRefused("a Parquet table supports no keyed load. Use format: delta")
    types = column_types(table.columns_json)
    matches = [(file, match_statistics(load.where, extents_of(file, types))) for file in table.files.values()]
    return (
        tuple(file for file, match in matches if match is FileMatch.ALL),
        tuple(file for file, match in matches if match is FileMatch.UNKNOWN),
    )
