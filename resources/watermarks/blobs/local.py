"""Blobs as files of a local folder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from partitions.errors import ProviderError


class LocalBlobs:
    """Blobs as files. Each write syncs a temporary file, then links it, so a crash leaves no half entry."""

    def __init__(self, root: Path, label: str = "watermark store") -> None:
        """Bind to a folder; the first write creates it.

        Args:
            root: the folder.
            label: name of the store in errors.
        """
        self._root, self._label = root, label

    def get(self, key: str) -> bytes | None:
        """Return the file's content, or None if there is no file."""
        with self._store_errors("read", key):
            try:
                return (self._root / key).read_bytes()
            except FileNotFoundError:
                return None

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Link a written file to the name; return False if the name exists."""
        path = self._root / key
        with self._store_errors("write", key), self._written(path, data) as temporary:
            try:
                os.link(temporary, path)
            except FileExistsError:
                return False
            return True

    def put(self, key: str, data: bytes) -> None:
        """Rename a written file to the name, over an existing one."""
        path = self._root / key
        with self._store_errors("write", key), self._written(path, data) as temporary:
            temporary.replace(path)

    def first_names(self, folder: str, count: int) -> list[str]:
        """Return the first names of a folder; reads all of them."""
        with self._store_errors("list", folder):
            try:
                names = [
                    entry.name for entry in os.scandir(self._root / folder) if not entry.name.startswith(".")
                ]
            except FileNotFoundError:
                return []
        return sorted(names)[:count]

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders directly in a folder, sorted."""
        with self._store_errors("list", folder or "the folder"):
            try:
                return sorted(entry.name for entry in os.scandir(self._root / folder) if entry.is_dir())
            except FileNotFoundError:
                return []

    def delete(self, key: str) -> None:
        """Remove the file, if it exists."""
        with self._store_errors("delete", key):
            (self._root / key).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _written(self, path: Path, data: bytes) -> Iterator[Path]:
        """Yield a synced temporary file beside ``path``, and sync the folder after the caller has named it."""
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
    def _store_errors(self, verb: str, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ProviderError(
                f"{self._label} {self._root}: cannot {verb} {key}: {error.strerror or error}. Check the "
                "folder's path, owner and mode, and that its disk has free space"
            ) from error


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
