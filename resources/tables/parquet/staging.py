"""Files of a Parquet table before their commit: each try to write a number has a folder of its own beside the table."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

from partitions.errors import StrandlineError
from resources.connections.places import Place
from resources.listing.removal import remove_folder
from resources.tables.contract.commits import Tag
from resources.tables.parquet.commit_list import CommitList, Snapshot
from resources.tables.parquet.table_files import TableFiles

_STAGED = re.compile(r"(.+)-(\d{10})-([0-9a-f]{32})")
_OWN = re.compile(r"strandline-\d{10}-[0-9a-f]{32}-\d{5}\.parquet")
_PENDING = "_pending"


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


@dataclass(frozen=True)
class Staging:
    """The staged folders of a table.

    Attributes:
        files: of the table.
    """

    files: TableFiles

    @property
    def place(self) -> Place:
        """Where the folders lie."""
        return self.files.hidden

    def place_of(self, folder: StagedFolder) -> Place:
        """Return where a folder lies."""
        return self.place.child(folder.name)

    def begin(self, folder: StagedFolder) -> None:
        """Note that a commit without rows of its own has files to set aside."""
        with self.files.failing():
            if self.place.local is not None:
                (self.place.local / folder.name).mkdir(parents=True, exist_ok=True)
            self.place.store.put(f"{folder.name}/{_PENDING}", b"")

    def keys(self, commit: CommitList) -> frozenset[str] | None:
        """Return the keys of the files of a commit that still are staged; None if all of the commit's files have been moved."""
        if not commit.staged:
            return None
        with self.files.failing():
            keys = frozenset(self.files.keys(self.files.hidden_key(commit.staged)))
        return keys or None

    def drop(self, folder: str) -> None:
        """Remove a staged folder."""
        with suppress(StrandlineError):
            remove_folder(self.place.child(folder))

    def drop_leftovers(self, snapshot: Snapshot) -> None:
        """Remove staged folders of numbers that a table holds whose commits are finished: whoever still writes one commits nothing any more."""
        for name in self._folders():
            match = _STAGED.fullmatch(name)
            if match and int(match[2]) <= snapshot.tags.get(match[1], 0):
                self.drop(name)

    def _folders(self) -> list[str]:
        with self.files.failing():
            if self.place.local is not None:
                folder = self.place.local
                return [path.name for path in folder.iterdir()] if folder.is_dir() else []
            prefixes = self.place.store.list_with_delimiter()["common_prefixes"]
            return [folder.rstrip("/").rpartition("/")[2] for folder in prefixes]
