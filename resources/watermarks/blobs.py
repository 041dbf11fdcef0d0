"""Small named objects with put-if-absent: all that the log asks of a store.

Keys are slash-separated ASCII. Values are written whole or not at all.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

from partitions.errors import ProviderError
from resources.places import Place

if TYPE_CHECKING:
    from obstore.store import ObjectStore


class Blobs(Protocol):
    """A store of small objects. Every method raises ProviderError when the store fails."""

    def get(self, key: str) -> bytes | None:
        """The value, or None where there is none."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write durably unless the key exists; False where it does. Of many callers at most one gets True."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """Write durably, over what is there."""
        ...

    def first(self, folder: str, count: int) -> list[str]:
        """The first names directly in a folder, in key order; none where the folder does not exist."""
        ...

    def delete(self, key: str) -> None:
        """Remove the key; nothing happens where it does not exist."""
        ...


def open_blobs(place: Place) -> Blobs:
    """The blobs of a place: files of a local folder, or objects of a store with conditional put."""
    return LocalBlobs(place.local) if place.local is not None else ObjectBlobs(place)


class LocalBlobs:
    """Blobs as files: a temporary file is written, synced and linked to its name, so a crash leaves no half entry."""

    def __init__(self, root: Path) -> None:
        """Use a folder, which is made at the first write."""
        self._root = root

    def get(self, key: str) -> bytes | None:
        """Read the file."""
        with self._failing("read", key):
            try:
                return (self._root / key).read_bytes()
            except FileNotFoundError:
                return None

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Link the name, which fails where it exists."""
        path = self._root / key
        with self._failing("write", key), self._written(path, data) as temporary:
            try:
                os.link(temporary, path)
            except FileExistsError:
                return False
            return True

    def put(self, key: str, data: bytes) -> None:
        """Rename over the name."""
        path = self._root / key
        with self._failing("write", key), self._written(path, data) as temporary:
            temporary.replace(path)

    def first(self, folder: str, count: int) -> list[str]:
        """Sort the folder's names."""
        with self._failing("list", folder):
            try:
                names = [
                    entry.name for entry in os.scandir(self._root / folder) if not entry.name.startswith(".")
                ]
            except FileNotFoundError:
                return []
        return sorted(names)[:count]

    def delete(self, key: str) -> None:
        """Unlink the file."""
        with self._failing("delete", key):
            (self._root / key).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _written(self, path: Path, data: bytes) -> Iterator[Path]:
        """A synced temporary file beside ``path``; the folder is synced after the caller has named it."""
        self._make(path.parent)
        temporary = path.parent / f".{uuid4().hex}.tmp"
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(path.parent)

    def _make(self, folder: Path) -> None:
        if not folder.is_dir():
            self._make(folder.parent)
            folder.mkdir(exist_ok=True)
            _sync_folder(folder.parent)

    @contextlib.contextmanager
    def _failing(self, verb: str, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ProviderError(
                f"watermark store {self._root}: cannot {verb} {key}: {error.strerror or error}"
            ) from error


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class ObjectBlobs:
    """Blobs as objects; ``If-None-Match: *`` makes a put conditional."""

    def __init__(self, place: Place) -> None:
        """Use the prefix of a bucket."""
        self._place = place

    @property
    def _store(self) -> ObjectStore:
        return self._place.store

    def get(self, key: str) -> bytes | None:
        """One GET."""
        with self._failing("read", key):
            try:
                return bytes(self._store.get(key).bytes())
            except FileNotFoundError:
                return None

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """One conditional PUT. A retried PUT whose first try was applied answers "exists": the log reads back."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._failing("write", key):
            try:
                self._store.put(key, data, mode="create")
            except (AlreadyExistsError, PreconditionError):
                return False
            return True

    def put(self, key: str, data: bytes) -> None:
        """One PUT."""
        with self._failing("write", key):
            self._store.put(key, data)

    def first(self, folder: str, count: int) -> list[str]:
        """One LIST, however long the folder is: only its first page is asked for."""
        with self._failing("list", folder):
            page = next(iter(self._store.list(folder, chunk_size=count)), ())
        return [meta["path"].rpartition("/")[2] for meta in page]

    def delete(self, key: str) -> None:
        """One DELETE."""
        with self._failing("delete", key), contextlib.suppress(FileNotFoundError):
            self._store.delete(key)

    @contextlib.contextmanager
    def _failing(self, verb: str, key: str) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError) as error:
            # obstore's texts hold whole requests; the class and the first line say enough and hold no secret.
            first = str(error).strip().splitlines()[0][:200] if str(error).strip() else ""
            raise ProviderError(
                f"watermark store {self._place}: cannot {verb} {key}: {type(error).__name__} {first}"
            ) from error
