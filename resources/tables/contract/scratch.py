"""Scratch files: tables that only one read needs, in a folder that the session can read."""

from __future__ import annotations

from collections.abc import Callable

from resources.connections.places import Place
from resources.listing.failures import store_failures

ScratchFolder = Callable[[], Place]
"""Returns a folder that the session can read, whose files live until the rows were read."""


def put_scratch_file(folder: Place, path: str, data: bytes) -> None:
    """Write a file below a scratch folder.

    Raises:
        SourceError: it cannot be written.
    """
    with store_failures(folder):
        if folder.local is None:
            folder.store.put(path, data)
            return
        file = folder.local / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
