"""The files of a Parquet table, and those that lie beside it at ``_staging/<table>``: listed, moved and deleted by key."""

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

_AT_ONCE = 16
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.ENOTSUP)
"""What a file system says that has no links, or not from one disk to another."""
_MOST_COPIED = 5 * 2**30
"""Bytes of an object that S3 copies in one request."""


class TableFiles:
    """The files of the table at a place, and those beside it. A key counts from the folder that the table lies in.

    Attributes:
        table: the place.
        name: of the table's folder.
        parent: the folder that the table lies in.
        hidden: the place of files that are staged or set aside: some readers of Parquet open whatever is below a table's folder, also what
            other readers take for hidden.
    """

    def __init__(self, table: Place) -> None:
        """Use a table; it need not exist."""
        base, _, self.name = table.url.rpartition("/")
        self.table, self.parent = table, Place(base, table.connection)
        self.hidden = self.parent.child(self.hidden_key())

    def key(self, path: str) -> str:
        """Return the key of a file of the table."""
        return f"{self.name}/{path}"

    def hidden_key(self, *path: str) -> str:
        """Return the key of a file or a folder that is staged or set aside."""
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
        """Return whether there is a file."""
        if self.parent.local is not None:
            return (self.parent.local / key).exists()
        with self.failing():
            try:
                self.parent.store.head(key)
            except FileNotFoundError:
                return False
            return True

    def move(self, moves: Mapping[str, str]) -> None:
        """Move files to other keys; one that is not there was moved before."""
        if self.parent.local is not None or len(moves) < 2:
            for source, goal in moves.items():
                self._move(source, goal)
            return
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(self._move, moves, moves.values()))

    def delete(self, keys: Sequence[str]) -> None:
        """Delete files; one that is gone already was deleted before."""
        if self.parent.local is not None:
            for key in keys:
                (self.parent.local / key).unlink(missing_ok=True)
        elif keys:
            self.parent.store.delete(keys)

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Turn what goes wrong with files into a TargetError."""
        try:
            with store_failures(self.table):
                yield
        except TargetError:
            raise
        except StrandlineError as error:
            raise TargetError(
                f"table {self.table}: its files cannot be moved or looked up: {error.message}. Nothing is lost: the next run finishes it"
            ) from error

    def _move(self, source: str, goal: str) -> None:
        """Move a file, if it is there: else another process has moved it. What is at its goal already is the same file."""
        if self.parent.local is not None:
            _move_local(self.parent.local / source, self.parent.local / goal)
            return
        store = self.parent.store
        with suppress(FileNotFoundError):
            size = store.head(source)["size"]
            if size > _MOST_COPIED:
                store.put(goal, store.get(source))
            else:
                store.copy(source, goal)
            store.delete(source)


def _move_local(source: Path, goal: Path) -> None:
    goal.parent.mkdir(parents=True, exist_ok=True)
    try:
        with suppress(FileExistsError):
            _copy_local(source, goal)
    except FileNotFoundError:
        if source.exists():  # the goal's folder is what is gone: somebody removes empty ones
            raise
    source.unlink(missing_ok=True)


def _copy_local(source: Path, goal: Path) -> None:
    try:
        os.link(source, goal)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        copy = goal.with_name(f".{uuid4().hex}.tmp")
        shutil.copyfile(source, copy)
        copy.replace(goal)
