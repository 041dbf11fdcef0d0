"""Removing the files of a table, whatever its format."""

from __future__ import annotations

from partitions.errors import SourceError, TargetError
from resources.listing.removal import remove_folder
from resources.tables.table import Table


def remove_files(table: Table) -> None:
    """Remove the folder of a table.

    Raises:
        TargetError: some of it is still there.
    """
    try:
        remove_folder(table.place)
    except SourceError as error:
        raise TargetError(f"table {table.place} cannot be removed: {error.message}") from error
    folder = table.place.local
    if table.exists() or (folder is not None and folder.exists()):
        raise TargetError(
            f"table {table.place}: expected to remove all of its files, found some that are still there. Check owner and mode of the folder"
        )
