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
        """Use the prefix of a bucket.

        Args:
            place: the prefix.
            label: name of the store in errors.
        """
        self._place, self._label = place, label

    @property
    def _store(self) -> ObjectStore:
        return self._place.store

    def get(self, key: str) -> bytes | None:
        """Send one GET."""
        with self._failing("read", key):
            try:
                return bytes(self._store.get(key).bytes())
            except FileNotFoundError as error:
                if is_missing_bucket(error):  # this says nothing about the object
                    raise
                return None

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Send one conditional PUT.

        A retry after an applied PUT reports that the key exists; the log then reads the entry back.
        """
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._failing("write", key):
            try:
                self._store.put(key, data, mode="create")
            except (AlreadyExistsError, PreconditionError):
                return False
            return True

    def put(self, key: str, data: bytes) -> None:
        """Send one PUT."""
        with self._failing("write", key):
            self._store.put(key, data)

    def first(self, folder: str, count: int) -> list[str]:
        """Send one LIST for the first page only, however long the folder is."""
        with self._failing("list", folder):
            page = next(iter(self._store.list(folder, chunk_size=count)), ())
        return [meta["path"].rpartition("/")[2] for meta in page]

    def folders(self, folder: str) -> list[str]:
        """Send one LIST with a delimiter."""
        with self._failing("list", folder or "the folder"):
            prefixes = self._store.list_with_delimiter(folder or None)["common_prefixes"]
        return sorted(prefix.rstrip("/").rpartition("/")[2] for prefix in prefixes)

    def delete(self, key: str) -> None:
        """Send one DELETE."""
        with self._failing("delete", key), contextlib.suppress(FileNotFoundError):
            self._store.delete(key)

    @contextlib.contextmanager
    def _failing(self, verb: str, key: str) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError) as error:
            failure = store_failure(self._place, error)
            kind = ProviderError if failure.transient else ProviderRefused
            raise kind(f"{self._label} {self._place}: cannot {verb} {key}: {failure}") from None
