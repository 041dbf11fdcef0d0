"""Blobs as objects of a store with conditional put."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from partitions.errors import ProviderError, ProviderRefused
from resources.connections.object_store_errors import is_missing_bucket, store_failure
from resources.connections.places import Place

if TYPE_CHECKING:
    from obstore.store import ObjectStore


class ObjectBlobs:
    """Blobs as objects; ``If-None-Match: *`` makes a put conditional."""

    def __init__(self, place: Place, label: str = "watermark store") -> None:
        """Bind to a folder of a bucket, without opening anything yet.

        Args:
            place: the folder.
            label: name of the store in errors.
        """
        self._place, self._label = place, label

    @property
    def _store(self) -> ObjectStore:
        return self._place.store

    def get(self, key: str) -> bytes | None:
        """Return the value by one GET, or None if the object does not exist."""
        with self._store_errors("read", key):
            try:
                return bytes(self._store.get(key).bytes())
            except FileNotFoundError as error:
                if is_missing_bucket(error):  # this says nothing about the object
                    raise
                return None

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Send one conditional PUT; return False if the key exists.

        A retry after an applied PUT also returns False; the log then reads the entry back.
        """
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._store_errors("write", key):
            try:
                self._store.put(key, data, mode="create")
            except (AlreadyExistsError, PreconditionError):
                return False
            return True

    def put(self, key: str, data: bytes) -> None:
        """Write by one PUT, over an existing value."""
        with self._store_errors("write", key):
            self._store.put(key, data)

    def first_names(self, folder: str, count: int) -> list[str]:
        """Return the first names of a folder by one LIST of its first page, however long the folder is."""
        with self._store_errors("list", folder):
            page = next(iter(self._store.list(folder, chunk_size=count)), ())
        return [meta["path"].rpartition("/")[2] for meta in page]

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders directly in a folder, by a LIST with a delimiter."""
        with self._store_errors("list", folder or "the folder"):
            prefixes = self._store.list_with_delimiter(folder or None)["common_prefixes"]
        return sorted(prefix.rstrip("/").rpartition("/")[2] for prefix in prefixes)

    def delete(self, key: str) -> None:
        """Remove the object by one DELETE, if it exists."""
        with self._store_errors("delete", key), contextlib.suppress(FileNotFoundError):
            self._store.delete(key)

    @contextlib.contextmanager
    def _store_errors(self, verb: str, key: str) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError) as error:
            failure = store_failure(self._place, error)
            kind = ProviderError if failure.transient else ProviderRefused
            raise kind(f"{self._label} {self._place}: cannot {verb} {key}: {failure}") from None
