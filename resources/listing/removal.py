"""Removing a folder with all that is in it, on a disk or in an object store."""

from __future__ import annotations

import shutil

from resources.listing.failures import store_failures
from resources.places import Place


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
