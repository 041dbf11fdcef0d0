"""The lists of a Parquet table's commits, ``_strandline/<number>.json``.

Writing a number once is the commit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from partitions.errors import ProviderError, StrandlineError, TargetError, shorten_to_line
from resources.connections.places import Place
from resources.listing.failures import store_failures
from resources.tables.parquet.commit_list import LISTS_PER_FULL_LIST, CommitList, TableSnapshot
from resources.watermarks.blobs import Blobs, open_blobs

FOLDER = "_strandline"
_LIST = re.compile(r"(\d{20})\.json")
_MAX_READERS = 16
_REMEDY = "Restore it; or delete the table's folder _strandline and reload the table: `strandline state reset NAME --replace`"


class CommitLog:
    """The lists of the table at a place."""

    def __init__(self, place: Place) -> None:
        """Use the table at a place; it need not exist."""
        self.place = place

    def versions(self, since: int | None = None) -> list[int]:
        """Return the numbers of the lists after ``since`` (None: all), ascending.

        Raises:
            TargetError: they cannot be listed.
        """
        try:
            names = self._local_names() if self.place.local is not None else self._remote_names(since)
        except StrandlineError as error:
            raise TargetError(f"table {self.place}: cannot list its commits: {error.message}") from error
        except OSError as error:
            raise TargetError(
                f"table {self.place}: cannot list its commits: {error.strerror}. Check the table's path, owner and mode"
            ) from error
        versions = sorted(int(match[1]) for name in names if (match := _LIST.fullmatch(name)))
        return [version for version in versions if since is None or version > since]

    def read(self, version: int) -> CommitList:
        """Return a list.

        Raises:
            TargetError: it is missing or cannot be parsed.
        """
        try:
            data = self._blobs.get(_key(version))
        except ProviderError as error:
            raise TargetError(error.message) from error
        if data is None:
            raise TargetError(
                f"table {self.place}: expected the list {_key(version)}, found none: it was removed. {_REMEDY}"
            )
        try:
            return CommitList.parse(data)
        except ValueError as error:
            raise TargetError(
                f"table {self.place}: the list {_key(version)} cannot be read: "
                f"{shorten_to_line(str(error))}. It is damaged, or a newer version of Strandline wrote "
                f"it. {_REMEDY}"
            ) from error

    def read_all(self, versions: Sequence[int]) -> list[CommitList]:
        """Return several lists; see :meth:`read`."""
        if self.place.local is not None or len(versions) < 2:
            return [self.read(version) for version in versions]
        with ThreadPoolExecutor(_MAX_READERS) as pool:
            return list(pool.map(self.read, versions))

    def snapshot(self, version: int | None = None) -> TableSnapshot | None:
        """Return the table after a commit (None: the newest); None if there is no table.

        Raises:
            TargetError: a needed list is missing or cannot be parsed.
        """
        if version is None:
            versions = self.versions()
            if not versions:
                return None
            version = versions[-1]
        begin = version - (version - 1) % LISTS_PER_FULL_LIST
        return TableSnapshot.of(self.read_all(range(begin, version + 1)))

    def put(self, commit: CommitList) -> bool:
        """Write a list; return False if its number is taken.

        Raises:
            ProviderError: the store does not answer: the list may be there, or appear later.
        """
        return self._blobs.put_if_absent(_key(commit.version), commit.encode())

    @property
    def _blobs(self) -> Blobs:
        return open_blobs(self.place, "table")

    def _local_names(self) -> list[str]:
        try:
            return [path.name for path in Path(self.place.url, FOLDER).iterdir()]
        except FileNotFoundError:
            return []

    def _remote_names(self, since: int | None) -> list[str]:
        offset = None if since is None else _key(since)
        with store_failures(self.place):
            pages = self.place.store.list(FOLDER, offset=offset)
            return [meta["path"].rpartition("/")[2] for page in pages for meta in page]


def _key(version: int) -> str:
    return f"{FOLDER}/{version:020d}.json"
