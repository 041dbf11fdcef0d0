"""Remove a folder with all its contents, on a disk or in an object store."""

from __future__ import annotations

import shutil

from resources.connections.places import Place
from resources.listing.failures import folder_failure, store_failures


def remove_folder(folder: Place) -> None:
    """Remove a folder, if it exists. Files that a disk refuses to delete stay.

    Raises:
        SourceError: an object store does not delete it.
    """
    if folder.local is not None:
        shutil.rmtree(folder.local, ignore_errors=True)
        return
    with store_failures(folder):
        for page in folder.store.list():
            folder.store.delete([meta["path"] for meta in page])


def is_empty(folder: Place) -> bool:
    """Return whether a folder is empty or missing.

    Raises:
        SourceError: it cannot be listed.
    """
    if folder.local is not None:
        try:
            return not folder.local.exists() or not any(folder.local.iterdir())
        except OSError as error:
            raise folder_failure("", str(folder), error) from error
    with store_failures(folder):
        return not any(page for page in folder.store.list(chunk_size=1))
