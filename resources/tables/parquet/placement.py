"""Where the files of a Parquet table lie: staged before their commit, in their places after it, set aside once a commit has removed them.

Staged files and those that were set aside lie beside the table's folder, at ``_staging/<table>``: some readers of Parquet open whatever is
below a folder, also what other readers take for hidden. Moving is done again by whoever comes next, until it is done; a commit is put only
once all earlier ones have been moved, so that only the newest can be unfinished.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from partitions.errors import StrandlineError, TargetError
from resources.connections.places import Place
from resources.listing.failures import store_failures
from resources.listing.removal import remove_folder
from resources.tables.contract.commits import Tag
from resources.tables.parquet.commit_list import CommitList, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

_STAGED = re.compile(r"(.+)-(\d{10})-([0-9a-f]{32})")
_OWN = re.compile(r"strandline-\d{10}-[0-9a-f]{32}-\d{5}\.parquet")
_ASIDE = "removed"
_PENDING = "_pending"
_AT_ONCE = 16
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.ENOTSUP)
"""What a file system says that has no links, or not from one disk to another."""
_MOST_COPIED = 5 * 2**30
"""Bytes of an object that S3 copies in one request."""


@dataclass(frozen=True)
class StagedFolder:
    """A folder for one try to write a number.

    Attributes:
        name: of the folder; it tells app id and number.
    """

    name: str

    @classmethod
    def of(cls, tag: Tag) -> StagedFolder:
        """Return a new one."""
        return cls(f"{tag.app_id}-{tag.number:010d}-{uuid4().hex}")

    def final_name(self, index: int) -> str:
        """Return the name that a file of it has in its place, which no other file has."""
        _, number, attempt = self.name.rsplit("-", 2)
        return f"strandline-{number}-{attempt}-{index:05d}.parquet"


def is_own(path: str) -> bool:
    """Return whether a file has a name that only Strandline gives."""
    return _OWN.fullmatch(path.rpartition("/")[2]) is not None


class Placement:
    """The files of the table at a place.

    Attributes:
        hidden: the place of those that are staged or set aside.
    """

    def __init__(self, table: Place) -> None:
        """Use a table; it need not exist."""
        base, _, self._name = table.url.rpartition("/")
        self._table, self._parent = table, Place(base, table.connection)
        self.hidden = self._parent.child(f"_staging/{self._name}")

    def begin(self, folder: StagedFolder) -> None:
        """Note that a commit without rows of its own has files to set aside."""
        with self._failing():
            if self.hidden.local is not None:
                (self.hidden.local / folder.name).mkdir(parents=True, exist_ok=True)
            self.hidden.store.put(f"{folder.name}/{_PENDING}", b"")

    def finish(self, commit: CommitList) -> None:
        """Move the files of a commit, those that it removes first: a reader sees no row twice. Done again it does no harm.

        Raises:
            TargetError: a file cannot be moved.
        """
        staged = self.staged(commit)
        if staged is None:
            return
        with self._failing():
            self.set_aside(commit.set_aside)
            moves = {self._staged(commit, file.staged): self._placed(file.path) for file in commit.added}
            self._each(self._move, {key: moves[key] for key in moves if key in staged})
        self.drop(commit.staged)

    def staged(self, commit: CommitList) -> frozenset[str] | None:
        """Return the keys of the files of a commit that still are staged; None if all of the commit's files have been moved."""
        if not commit.staged:
            return None
        with self._failing():
            keys = frozenset(self._keys(f"_staging/{self._name}/{commit.staged}"))
        return keys or None

    def set_aside(self, paths: Iterable[str]) -> None:
        """Move files of the table out of it; one that is not there was moved before."""
        with self._failing():
            self._each(self._move, {self._placed(path): self._aside(path) for path in paths})

    def aside(self) -> list[str]:
        """Return the paths of the files of Strandline's that were set aside."""
        folder = f"_staging/{self._name}/{_ASIDE}"
        with self._failing():
            return [key.removeprefix(f"{folder}/") for key in self._keys(folder) if is_own(key)]

    def delete_aside(self, paths: Iterable[str]) -> None:
        """Delete files that were set aside; one that is gone already was deleted before."""
        keys = [f"_staging/{self._name}/{_ASIDE}/{path}" for path in paths]
        with self._failing():
            if self._parent.local is not None:
                for key in keys:
                    (self._parent.local / key).unlink(missing_ok=True)
            elif keys:
                self._parent.store.delete(keys)

    def drop(self, folder: str) -> None:
        """Remove a staged folder."""
        with suppress(StrandlineError):
            remove_folder(self.hidden.child(folder))

    def remove(self) -> None:
        """Remove all that is staged or set aside.

        Raises:
            TargetError: some of it is still there.
        """
        folder = self.hidden.local
        with self._failing():
            remove_folder(self.hidden)
        if folder is None:
            return
        if folder.exists():
            raise TargetError(
                f"table {self._table}: expected to remove {folder}, found files that are still there. Check owner and mode of the folder"
            )
        with suppress(OSError):  # other tables stage beside it
            folder.parent.rmdir()

    def drop_leftovers(self, snapshot: Snapshot) -> None:
        """Remove staged folders of numbers that a table holds whose commits are finished: whoever still writes one commits nothing any more."""
        for name in self._staged_folders():
            match = _STAGED.fullmatch(name)
            if match and int(match[2]) <= snapshot.tags.get(match[1], 0):
                self.drop(name)

    def resolve(self, snapshot: Snapshot, newest: Snapshot) -> dict[str, tuple[str, str]]:
        """Return where the files of a version lie now: by path, the folder below the table's parent and the path in it.

        Args:
            snapshot: the version.
            newest: the newest one.
        """
        staged = self.staged(newest.newest)
        added = {file.path: file for file in newest.newest.added}
        moving = set(newest.newest.set_aside) if staged is not None else set()
        places: dict[str, tuple[str, str]] = {}
        for path in snapshot.files:
            if staged is not None and path in added and not self.is_placed(path):
                places[path] = (f"_staging/{self._name}/{newest.newest.staged}", added[path].staged)
            elif path in newest.files or (path in moving and self.is_placed(path)):
                places[path] = (self._name, path)
            else:
                places[path] = (f"_staging/{self._name}/{_ASIDE}", path)
        return places

    def is_placed(self, path: str) -> bool:
        """Return whether a file is in its place."""
        return self._exists(self._placed(path))

    def place_of(self, folder: str) -> Place:
        """Return the place of a folder that :meth:`resolve` tells."""
        return self._parent.child(folder)

    def visible(self) -> set[str]:
        """Return the paths of the Parquet files that a plain reader sees in the table's folder.

        Raises:
            SourceError: if the folder cannot be listed.
        """
        if self._table.local is not None and not self._table.local.is_dir():
            return set()
        with store_failures(self._table):
            if self._table.local is not None:
                return set(_local_files(str(self._table.local)))
            return {
                meta["path"]
                for page in self._table.store.list()
                for meta in page
                if _is_visible(meta["path"])
            }

    def has_visible(self) -> bool:
        """Return whether there is one such file."""
        if self._table.local is not None:
            return next(_local_files(str(self._table.local)), None) is not None
        with store_failures(self._table):
            return any(_is_visible(meta["path"]) for page in self._table.store.list() for meta in page)

    def _placed(self, path: str) -> str:
        return f"{self._name}/{path}"

    def _aside(self, path: str) -> str:
        """Where a file goes. Names that others give may come again, for another file; no version of the table has these."""
        folder = _ASIDE if is_own(path) else f"{_ASIDE}/{uuid4().hex}"
        return f"_staging/{self._name}/{folder}/{path}"

    def _staged(self, commit: CommitList, path: str) -> str:
        return f"_staging/{self._name}/{commit.staged}/{path}"

    def _each(self, move: Callable[[str, str], None], moves: Mapping[str, str]) -> None:
        if self._parent.local is not None or len(moves) < 2:
            for source, goal in moves.items():
                move(source, goal)
            return
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(move, moves, moves.values()))

    def _move(self, source: str, goal: str) -> None:
        """Move a file, if it is there: else another process has moved it. What is at its goal already is the same file."""
        if self._parent.local is not None:
            _move_local(self._parent.local / source, self._parent.local / goal)
            return
        store = self._parent.store
        with suppress(FileNotFoundError):
            size = store.head(source)["size"]
            if size > _MOST_COPIED:
                store.put(goal, store.get(source))
            else:
                store.copy(source, goal)
            store.delete(source)

    def _keys(self, folder: str) -> Iterator[str]:
        if self._parent.local is not None:
            root = self._parent.local / folder
            for parent, _, names in os.walk(root):
                relative = os.path.relpath(parent, self._parent.local)
                yield from (f"{relative}/{name}" for name in names)
            return
        yield from (meta["path"] for page in self._parent.store.list(folder) for meta in page)

    def _exists(self, key: str) -> bool:
        if self._parent.local is not None:
            return (self._parent.local / key).exists()
        with self._failing():
            try:
                self._parent.store.head(key)
            except FileNotFoundError:
                return False
            return True

    def _staged_folders(self) -> list[str]:
        with self._failing():
            if self.hidden.local is not None:
                folder = self.hidden.local
                return [path.name for path in folder.iterdir()] if folder.is_dir() else []
            found = self.hidden.store.list_with_delimiter()["common_prefixes"]
            return [folder.rstrip("/").rpartition("/")[2] for folder in found]

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            with store_failures(self._table):
                yield
        except TargetError:
            raise
        except StrandlineError as error:
            raise TargetError(
                f"table {self._table}: its files cannot be moved or looked up: {error.message}. Nothing is lost: the next run finishes it"
            ) from error


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


def _local_files(root: str) -> Iterator[str]:
    for parent, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        yield from (os.path.relpath(f"{parent}/{name}", root) for name in names if _is_data(name))


def _is_visible(path: str) -> bool:
    *folders, name = path.split("/")
    return _is_data(name) and not any(map(_is_hidden, folders))


def _is_hidden(folder: str) -> bool:
    """Whether readers pass over a folder: a column's name may begin with any letter."""
    return folder.startswith(("_", ".")) and "=" not in folder


def _is_data(name: str) -> bool:
    return name.endswith(".parquet") and not name.startswith(("_", "."))
