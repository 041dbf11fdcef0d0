"""Read commits of a Delta table from its log, without Spark.

Only the commits after a known version are read, so the cost does not depend on the size of the table. If
these were cleaned up already, deltalake reads the checkpoint.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from partitions.errors import TargetError, shorten_to_line
from resources.connections.object_store_errors import store_failure
from resources.connections.places import Place
from resources.tables.delta.commit import DeltaCommit, file_name

if TYPE_CHECKING:
    from deltalake import DeltaTable

_COMMIT = re.compile(r"(\d{20})\.json")
_NUMBERED = re.compile(r"(\d{20})\.")
_COLOUR = re.compile(r"\x1b\[\d+m")
_STORE_ERRORS = re.compile(r"Error performing|HTTP error|lacked the necessary privileges|[Cc]redential")

_MOST_LOOKED_UP = 200
"""The most new versions that are looked up one by one."""


class LogCheckpoint(NamedTuple):
    """A checkpoint of a table.

    Attributes:
        version: version whose state it holds.
        names: names of its files in the log's folder, in order.
    """

    version: int
    names: tuple[str, ...]

    @classmethod
    def of(cls, note: Mapping[str, Any]) -> LogCheckpoint:
        """Return the checkpoint that the log's file ``_last_checkpoint`` names.

        Raises:
            KeyError, TypeError, ValueError: the note has another form.
        """
        version, parts = int(note["version"]), int(note.get("parts") or 1)
        stem = f"{version:020d}.checkpoint"
        if path := (note.get("v2Checkpoint") or {}).get("path"):
            return cls(version, (str(path).rpartition("/")[2],))
        if parts == 1:
            return cls(version, (f"{stem}.parquet",))
        names = (f"{stem}.{number:010d}.{parts:010d}.parquet" for number in range(1, parts + 1))
        return cls(version, tuple(names))


class DeltaLog:
    """The log of the table at a place."""

    def __init__(self, place: Place) -> None:
        """Use the table at a place; it need not exist."""
        self.place = place

    def commits(self, since: int | None) -> list[DeltaCommit]:
        """Return the commits after a version, oldest first; all that remain if ``since`` is None.

        Raises:
            TargetError: the log cannot be read.
        """
        return [self.read(version) for version in self.versions(since)]

    def exists(self) -> bool:
        """Return whether the log has a commit; read at most the first page of its listing.

        Raises:
            TargetError: the log cannot be listed.
        """
        return any(version_of(name) is not None for name in self._names())

    def versions(self, since: int | None) -> list[int]:
        """Return the versions after ``since``, ascending.

        Raises:
            TargetError: the log cannot be listed.
        """
        if since is not None and since >= 0 and (following := self._following(since)) is not None:
            return following
        lower_bound = "" if since is None else f"{since + 1:020d}"
        return sorted(
            version
            for name in self._names(since)
            if name >= lower_bound and (version := version_of(name)) is not None
        )

    def newest_version(self) -> int | None:
        """Return the newest version; None if there is no table.

        Raises:
            TargetError: the log cannot be listed.
        """
        noted = self.last_checkpoint()
        versions = [] if noted is None else self.versions(noted.version - 1)
        versions = versions or self.versions(None)
        return versions[-1] if versions else None

    def _following(self, since: int) -> list[int] | None:
        """Return the versions after one, looked up one by one; None if only a listing tells them.

        A local folder cannot be listed from a name on, and may have thousands of versions. Their numbers
        have no gaps: cleaning starts with the oldest.
        """
        if self.place.local is None:
            return None
        folder = self.place.local / "_delta_log"
        versions: list[int] = []
        while (folder / commit_name(since + len(versions) + 1)).exists():
            versions.append(since + len(versions) + 1)
            if len(versions) > _MOST_LOOKED_UP:
                return None
        return versions if versions or (folder / commit_name(since)).exists() else None

    def table(self, version: int | None = None) -> DeltaTable | None:
        """Open a version of the table (None: the newest); return None if there is no table.

        Raises:
            TargetError: it cannot be opened.
        """
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        if not self.exists():
            return None
        try:
            return DeltaTable(
                self.place.url, version=version, storage_options=self.place.storage_options or None
            )
        except (DeltaError, OSError) as error:
            raise _log_error(self.place, "read", error) from None

    def files(self, version: int | None = None) -> set[str]:
        """Return the names of the data files of a version (None: the newest).

        Raises:
            TargetError: the version cannot be opened.
        """
        table = self.table(version)
        paths: Any = table.get_add_actions().column("path").to_pylist() if table else []
        return {file_name(str(path)) for path in paths}

    def files_outside_log(self) -> set[str]:
        """Return the paths of all files in the table's folder outside its log, data files or not.

        Raises:
            TargetError: the folder cannot be listed.
        """
        from obstore.exceptions import BaseError

        try:
            pages = self.place.store.list()
            return {
                meta["path"] for page in pages for meta in page if not meta["path"].startswith("_delta_log/")
            }
        except (BaseError, OSError) as error:
            raise _log_error(self.place, "list the files outside", error) from None

    def delete_before(self, version: int) -> int:
        """Delete the files of the log that only versions before a version need; return their number.

        The log must have a checkpoint of that version.

        Raises:
            TargetError: the log cannot be listed, or a file cannot be deleted.
        """
        from obstore.exceptions import BaseError

        names = [
            name
            for name in self._names()
            if (match := _NUMBERED.match(name)) is not None and int(match[1]) < version
        ]
        try:
            for name in names:
                self.place.store.delete(f"_delta_log/{name}")
        except (BaseError, OSError) as error:
            raise _log_error(self.place, "delete old versions of", error) from None
        return len(names)

    def _names(self, since: int | None = None) -> Iterator[str]:
        """Yield the file names in the log's folder, in any order.

        In a store, only names after that of version ``since``.
        """
        from obstore.exceptions import BaseError

        try:
            if self.place.local is not None:
                # obstore stats every local file; a table that is written every minute has thousands.
                with (
                    suppress(FileNotFoundError, NotADirectoryError),
                    os.scandir(self.place.local / "_delta_log") as entries,
                ):
                    yield from (entry.name for entry in entries)
                return
            offset = None if since is None else f"_delta_log/{since:020d}.json"
            for page in self.place.store.list("_delta_log", offset=offset, chunk_size=1000):
                yield from (meta["path"].rpartition("/")[2] for meta in page)
        except (BaseError, OSError) as error:
            raise _log_error(self.place, "list", error) from None

    def read(self, version: int) -> DeltaCommit:
        """Return the commit of a version.

        Raises:
            TargetError: it cannot be read.
        """
        return DeltaCommit.parse(version, self._text(version))

    def read_with(self, version: int, *prefixes: bytes) -> tuple[DeltaCommit, Iterator[dict[str, Any]]]:
        """Return a version's commit, and its actions whose lines begin with one of the prefixes, in order.

        Raises:
            TargetError: it cannot be read.
        """
        text = self._text(version)
        actions = (json.loads(line) for line in text.splitlines() if line.startswith(prefixes))
        return DeltaCommit.parse(version, text), actions

    def actions(self, version: int, *prefixes: bytes) -> list[dict[str, Any]]:
        """Return the actions of a version whose lines begin with one of the prefixes, in order.

        Raises:
            TargetError: it cannot be read.
        """
        return [json.loads(line) for line in self._text(version).splitlines() if line.startswith(prefixes)]

    def read_parquet(self, path: str) -> BinaryIO:
        """Open a Parquet file below the log's folder, such as a checkpoint.

        Raises:
            TargetError: it cannot be read.
        """
        from obstore.exceptions import BaseError

        try:
            return self._open(path)
        except (BaseError, OSError) as error:
            raise _log_error(self.place, f"read checkpoint {path} of", error) from None

    def _open(self, path: str) -> BinaryIO:
        """Open a file below the log's folder; of a local table without a store, which a missing folder lacks."""
        from io import BytesIO

        if self.place.local is not None:
            return (self.place.local / "_delta_log" / path).open("rb")
        return BytesIO(bytes(self.place.store.get(f"_delta_log/{path}").bytes()))

    def last_checkpoint(self) -> LogCheckpoint | None:
        """Return the last checkpoint, as its writer noted it; None without a note.

        Raises:
            TargetError: the note cannot be read.
        """
        from obstore.exceptions import BaseError, NotFoundError

        try:
            with self._open("_last_checkpoint") as note:
                return LogCheckpoint.of(json.load(note))
        except (
            NotFoundError,
            FileNotFoundError,
            NotADirectoryError,
            ValueError,
            KeyError,
            TypeError,
        ):
            return None
        except (BaseError, OSError) as error:
            raise _log_error(self.place, "read the last checkpoint's note of", error) from None

    def names(self, since: int | None = None) -> list[str]:
        """Return the names of the log's files; files of versions up to ``since`` may be left out.

        Raises:
            TargetError: the log cannot be listed.
        """
        lower_bound = "" if since is None else f"{since:020d}.json"
        return [name for name in self._names(since) if name > lower_bound]

    def removes(self, version: int, file: str) -> bool:
        """Return whether a commit removes a data file of this name."""
        lines = self._text(version).splitlines()
        return any(file.encode() in line for line in lines if line.startswith(b'{"remove"'))

    def _text(self, version: int) -> bytes:
        from obstore.exceptions import BaseError

        try:
            return bytes(self.place.store.get(f"_delta_log/{commit_name(version)}").bytes())
        except (BaseError, OSError) as error:
            raise _log_error(self.place, f"read version {version} of", error) from None


def _log_error(place: Place, verb: str, error: Exception) -> TargetError:
    message = f"{type(error).__name__}: {shorten_to_line(_COLOUR.sub('', str(error)))}"
    if place.local is None and _STORE_ERRORS.search(str(error)):
        message = str(store_failure(place, error))
    elif isinstance(error, OSError):
        message += ". Check the table's path, owner and mode"
    return TargetError(f"table {place}: cannot {verb} its Delta log: {message}")


def commit_name(version: int) -> str:
    """Return the name of a commit's file in the log's folder."""
    return f"{version:020d}.json"


def version_of(name: str) -> int | None:
    """Return the version whose commit a file of the log's folder is; None if it is another file."""
    match = _COMMIT.fullmatch(name)
    return int(match[1]) if match else None
