"""Read commits of a Delta table from its log, without Spark.

Only the commits after a known version are read, so the cost does not depend on the size of the table. If
these were cleaned up already, deltalake reads the checkpoint.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

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
        return any(_version_of(name) is not None for name in self._names())

    def versions(self, since: int | None) -> list[int]:
        """Return the versions after ``since``, ascending, from one listing.

        Raises:
            TargetError: the log cannot be listed.
        """
        lower_bound = -1 if since is None else since
        return sorted(
            version
            for name in self._names(since)
            if (version := _version_of(name)) is not None and version > lower_bound
        )

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
            raise self._error("read", error) from None

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
            raise self._error("list the files outside", error) from None

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
            raise self._error("delete old versions of", error) from None
        return len(names)

    def _names(self, since: int | None = None) -> Iterator[str]:
        """Yield the file names in the log's folder, in any order.

        In a store, only names after that of version ``since``.
        """
        from obstore.exceptions import BaseError

        try:
            if self.place.local is not None:
                # obstore stats every local file; a table that is written every minute has thousands.
                with suppress(FileNotFoundError, NotADirectoryError):
                    yield from os.listdir(self.place.local / "_delta_log")  # noqa: PTH208 - names, not paths
                return
            offset = None if since is None else f"_delta_log/{since:020d}.json"
            for page in self.place.store.list("_delta_log", offset=offset, chunk_size=1000):
                yield from (meta["path"].rpartition("/")[2] for meta in page)
        except (BaseError, OSError) as error:
            raise self._error("list", error) from None

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

    def removes(self, version: int, file: str) -> bool:
        """Return whether a commit removes a data file of this name."""
        lines = self._text(version).splitlines()
        return any(file.encode() in line for line in lines if line.startswith(b'{"remove"'))

    def _text(self, version: int) -> bytes:
        from obstore.exceptions import BaseError

        try:
            return bytes(self.place.store.get(f"_delta_log/{version:020d}.json").bytes())
        except (BaseError, OSError) as error:
            raise self._error(f"read version {version} of", error) from None

    def _error(self, verb: str, error: Exception) -> TargetError:
        message = f"{type(error).__name__}: {shorten_to_line(_COLOUR.sub('', str(error)))}"
        if self.place.local is None and _STORE_ERRORS.search(str(error)):
            message = str(store_failure(self.place, error))
        elif isinstance(error, OSError):
            message += ". Check the table's path, owner and mode"
        return TargetError(f"table {self.place}: cannot {verb} its Delta log: {message}")


def _version_of(name: str) -> int | None:
    match = _COMMIT.fullmatch(name)
    return int(match[1]) if match else None
