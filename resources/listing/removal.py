"""Removing a folder with all that is in it, on a disk or in an object store; and whether there is anything to remove."""

from __future__ import annotations

import shutil

from resources.connections.places import Place
from resources.listing.failures import folder_failure, store_failures


def remove_folder(folder: Place) -> None:
    """Remove a folder; nothing happens if there is none. What a disk does not let go of stays.

    Raises:
        SourceError: an object store does not remove it.
    """
    if folder.local is not None:
        shutil.rmtree(folder.local, ignore_errors=True)
        return
    with store_failures(folder):
        for page in folder.store.list():
            folder.store.delete([meta["path"] for meta in page])


def is_empty(folder: Place) -> bool:
    """Return whether nothing is in a folder, or there is none.

    Raises:
        SourceError: it cannot be looked at.
    """
    if folder.local is not None:
        try:
            return not folder.local.exists() or not any(folder.local.iterdir())
        except OSError as error:
            raise folder_failure("", str(folder), error) from error
    with store_failures(folder):
        return not any(page for page in folder.store.list(chunk_size=1))
