"""List, move and delete the files of a Parquet table, and those beside it at ``_staging/<table>``."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from partitions.errors import StrandlineError, TargetError
from resources.connections.places import Place
from resources.listing.failures import store_failures

_MAX_MOVERS = 16
_LINK_ERRORS = (errno.EXDEV, errno.EPERM, errno.ENOTSUP)
"""Errors of file systems without hard links, or across disks."""
_MAX_COPIED_BYTES = 5 * 2**30
"""Largest object in bytes that S3 copies in one request."""


class TableFiles:
    """The files of a table and the hidden files beside it. Keys are relative to the parent folder.

    Attributes:
        table: place of the table.
        name: name of the table's folder.
        parent: folder that holds the table's folder.
        hidden: place of staged and removed files. It lies outside the table, because some readers open
            every file below a table's folder, even those that other readers skip as hidden.
    """

    def __init__(self, table: Place) -> None:
        """Use the table at a place; it need not exist."""
        base, _, self.name = table.url.rpartition("/")
        self.table, self.parent = table, Place(base, table.connection)
        self.hidden = self.parent.child(self.hidden_key())

    def key(self, path: str) -> str:
        """Return the key of a file of the table."""
        return f"{self.name}/{path}"

    def hidden_key(self, *path: str) -> str:
        """Return the key of a staged or removed file or folder."""
        return "/".join(("_staging", self.name, *path))

    def keys(self, folder: str) -> Iterator[str]:
        """Yield the keys of all files below a folder."""
        if self.parent.local is not None:
            root = self.parent.local / folder
            for parent, _, names in os.walk(root):
                relative = os.path.relpath(parent, self.parent.local)
                yield from (f"{relative}/{name}" for name in names)
            return
        yield from (meta["path"] for page in self.parent.store.list(folder) for meta in page)

    def exists(self, key: str) -> bool:
        """Return whether a file exists."""
        if self.parent.local is not None:
            return (self.parent.local / key).exists()
        with self.raising_target_errors():
            try:
                self.parent.store.head(key)
            except FileNotFoundError:
                return False
            return True

    def move(self, moves: Mapping[str, str]) -> None:
        """Move files to other keys; a missing one was moved before."""
        if self.parent.local is not None or len(moves) < 2:
            for source, target in moves.items():
                self._move(source, target)
            return
        with ThreadPoolExecutor(_MAX_MOVERS) as pool:
            list(pool.map(self._move, moves, moves.values()))

    def delete(self, keys: Sequence[str]) -> None:
        """Delete files; a missing one was deleted before."""
        if self.parent.local is not None:
            for key in keys:
                (self.parent.local / key).unlink(missing_ok=True)
        elif keys:
            self.parent.store.delete(keys)

    @contextmanager
    def raising_target_errors(self) -> Iterator[None]:
        """Turn errors of file operations within the context into a TargetError."""
        try:
            with store_failures(self.table):
                yield
        except TargetError:
            raise
        except StrandlineError as error:
            raise TargetError(
                f"table {self.table}: its files cannot be moved or listed: {error.message}. No data is "
                "lost: the next run moves them"
            ) from error

    def _move(self, source: str, target: str) -> None:
        """Move a file; a missing one was moved by another process, and a file at the target is the same."""
        if self.parent.local is not None:
            _move_local(self.parent.local / source, self.parent.local / target)
            return
        store = self.parent.store
        with suppress(FileNotFoundError):
            size = store.head(source)["size"]
            if size > _MAX_COPIED_BYTES:
                store.put(target, store.get(source))
            else:
                store.copy(source, target)
            store.delete(source)


def _move_local(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with suppress(FileExistsError):
            _copy_local(source, target)
    except FileNotFoundError:
        if source.exists():  # the target's folder is gone: someone removes empty folders
            raise
    source.unlink(missing_ok=True)


def _copy_local(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _LINK_ERRORS:
            raise
        copy = target.with_name(f".{uuid4().hex}.tmp")
        shutil.copyfile(source, copy)
        copy.replace(target)
