"""Remove the files of a table, whatever its format."""

from __future__ import annotations

import os

from partitions.errors import SourceError, TargetError
from resources.connections.places import Place
from resources.listing.failures import store_failures
from resources.listing.removal import remove_folder
from resources.tables.contract.table import Table


def files_below(place: Place) -> set[str]:
    """Return the paths of all files below a place.

    Raises:
        SourceError: the files cannot be listed.
    """
    with store_failures(place):
        if place.local is not None:
            return {os.path.join(parent, name) for parent, _, names in os.walk(place.local) for name in names}  # noqa: PTH118 - names alone
        return {meta["path"] for page in place.store.list() for meta in page}


def remove_files(table: Table) -> None:
    """Remove the folder of a table.

    Raises:
        TargetError: some files are still there.
    """
    try:
        remove_folder(table.place)
    except SourceError as error:
        raise TargetError(f"table {table.place} cannot be removed: {error.message}") from error
    folder = table.place.local
    if table.exists() or (folder is not None and folder.exists()):
        raise TargetError(
            f"table {table.place}: expected to remove all of its files, found some that remain. Check owner and mode of the folder"
        )
