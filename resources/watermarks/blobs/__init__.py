"""Small named objects with put-if-absent: all that the log asks of a store, and the stores that have it.

Belongs here: one module a backend, each the same contract (``tests/contract``). Does not belong here: what the objects
say. Keys are slash-separated ASCII. Values are written whole or not at all.
"""

from __future__ import annotations

from resources.connections.places import Place
from resources.connections.postgres import Database
from resources.watermarks.blobs.local import LocalBlobs
from resources.watermarks.blobs.objects import ObjectBlobs
from resources.watermarks.blobs.protocol import Blobs

__all__ = ["Blobs", "open_blobs"]


def open_blobs(store: Place | Database, label: str = "watermark store") -> Blobs:
    """The blobs of a local folder, of an object store with conditional put, or of a database. Opens nothing yet.

    Args:
        store: where they are.
        label: a folder or bucket is, for errors.
    """
    if isinstance(store, Database):
        from resources.watermarks.blobs.postgres import PostgresBlobs  # psycopg takes a third of a second

        return PostgresBlobs(store)
    return LocalBlobs(store.local, label) if store.local is not None else ObjectBlobs(store, label)
