"""Small named objects with put-if-absent: all that the log needs from a store, and the stores.

Belongs here: one module per backend, all with the same contract (``tests/contract``). Does not belong
here: the meaning of the objects. Keys are slash-separated ASCII. Values are written whole or not at all.
"""

from __future__ import annotations

from resources.connections.places import Place
from resources.connections.postgres import Database
from resources.watermarks.blobs.local import LocalBlobs
from resources.watermarks.blobs.objects import ObjectBlobs
from resources.watermarks.blobs.protocol import Blobs

__all__ = ["Blobs", "open_blobs"]


def open_blobs(store: Place | Database, label: str = "watermark store") -> Blobs:
    """Return the blobs of a local folder, an object store with conditional put, or a database.

    It opens nothing yet.

    Args:
        store: the address.
        label: name of the store in errors; not used for a database.
    """
    if isinstance(store, Database):
        from resources.watermarks.blobs.postgres import PostgresBlobs  # psycopg takes a third of a second

        return PostgresBlobs(store)
    return LocalBlobs(store.local, label) if store.local is not None else ObjectBlobs(store, label)
