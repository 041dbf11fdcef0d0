"""Commits of a Delta table, read from its log without Spark.

Only the commits after a known version are read, so the cost does not depend on the size of the table. If these were
cleaned up already, deltalake reads the checkpoint.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from partitions.errors import TargetError, in_one_line
from resources.connections.object_store_errors import store_failure
from resources.connections.places import Place
from resources.tables.delta.commit import Commit, file_name

if TYPE_CHECKING:
    from deltalake import DeltaTable

_COMMIT = re.compile(r"(\d{20})\.json")
_COLOUR = re.compile(r"\x1b\[\d+m")
_OF_THE_STORE = re.compile(r"Error performing|HTTP error|lacked the necessary privileges|[Cc]redential")


class DeltaLog:
    """The log of the table at a place."""

    def __init__(self, place: Place) -> None:
        """Use a table; it need not exist."""
        self.place = place

    def commits(self, since: int | None) -> list[Commit]:
        """The commits after a version, oldest first; all that are still there when ``since`` is None.

        Raises:
            TargetError: if the log cannot be read.
        """
        return [self.read(version) for version in self.versions(since)]

    def exists(self) -> bool:
        """Whether there is a commit; asks for no more of the log than its first page.

        Raises:
            TargetError: if the log cannot be listed.
        """
        return any(_version(name) is not None for name in self._names())

    def versions(self, since: int | None) -> list[int]:
        """The versions after one, ascending, from one listing.

        Raises:
            TargetError: if the log cannot be listed.
        """
        least = -1 if since is None else since
        return sorted(
            version
            for name in self._names(since)
            if (version := _version(name)) is not None and version > least
        )

    def table(self, version: int | None = None) -> DeltaTable | None:
        """The whole table as a version (None: the newest) knows it, checkpoints included; None if there is none.

        Raises:
            TargetError: if it cannot be opened.
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
            raise self._failed("read", error) from None

    def files(self, version: int | None = None) -> set[str]:
        """The names of the data files of a version (None: the newest).

        Raises:
            TargetError: if it cannot be opened.
        """
        table = self.table(version)
        paths: Any = table.get_add_actions().column("path").to_pylist() if table else []
        return {file_name(str(path)) for path in paths}

    def beside(self) -> set[str]:
        """The paths of all files in the table's folder but those of its log, data files or not.

        Raises:
            TargetError: if the folder cannot be listed.
        """
        from obstore.exceptions import BaseError

        try:
            pages = self.place.store.list()
            return {
                meta["path"] for page in pages for meta in page if not meta["path"].startswith("_delta_log/")
            }
        except (BaseError, OSError) as error:
            raise self._failed("list the files beside", error) from None

    def _names(self, since: int | None = None) -> Iterator[str]:
        """The names in the log's folder, in any order; of a store, those that sort behind a version's."""
        from obstore.exceptions import BaseError

        try:
            if self.place.local is not None:
                # A store of local files looks at each file; a table that is written every minute has thousands.
                with suppress(FileNotFoundError, NotADirectoryError):
                    yield from os.listdir(self.place.local / "_delta_log")  # noqa: PTH208 - names, not paths
                return
            offset = None if since is None else f"_delta_log/{since:020d}.json"
            for page in self.place.store.list("_delta_log", offset=offset, chunk_size=1000):
                yield from (meta["path"].rpartition("/")[2] for meta in page)
        except (BaseError, OSError) as error:
            raise self._failed("list", error) from None

    def read(self, version: int) -> Commit:
        """One commit.

        Raises:
            TargetError: if it cannot be read.
        """
        return Commit.parse(version, self._text(version))

    def read_with(self, version: int, *beginnings: bytes) -> tuple[Commit, Iterator[dict[str, Any]]]:
        """One commit, and those of its actions whose lines begin so, in their order.

        Raises:
            TargetError: if it cannot be read.
        """
        text = self._text(version)
        actions = (json.loads(line) for line in text.splitlines() if line.startswith(beginnings))
        return Commit.parse(version, text), actions

    def removes(self, version: int, file: str) -> bool:
        """Whether a commit removes a data file of this name."""
        lines = self._text(version).splitlines()
        return any(file.encode() in line for line in lines if line.startswith(b'{"remove"'))

    def _text(self, version: int) -> bytes:
        from obstore.exceptions import BaseError

        try:
            return bytes(self.place.store.get(f"_delta_log/{version:020d}.json").bytes())
        except (BaseError, OSError) as error:
            raise self._failed(f"read version {version} of", error) from None

    def _failed(self, verb: str, error: Exception) -> TargetError:
        said = f"{type(error).__name__}: {in_one_line(_COLOUR.sub('', str(error)))}"
        if self.place.local is None and _OF_THE_STORE.search(str(error)):
            said = str(store_failure(self.place, error))
        elif isinstance(error, OSError):
            said += ". Check the table's path, owner and mode"
        return TargetError(f"table {self.place}: cannot {verb} its Delta log: {said}")


def _version(name: str) -> int | None:
    match = _COMMIT.fullmatch(name)
    return int(match[1]) if match else None
