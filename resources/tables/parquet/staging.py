"""Files of a Parquet table before their commit: each attempt has its own folder beside the table."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

from partitions.errors import StrandlineError
from resources.connections.places import Place
from resources.listing.removal import remove_folder
from resources.tables.contract.commits import Tag
from resources.tables.parquet.commit_list import CommitList, TableSnapshot
from resources.tables.parquet.table_files import TableFiles

_STAGED_FOLDER = re.compile(r"(.+)-(\d{10})-([0-9a-f]{32})")
_STRANDLINE_FILE = re.compile(r"strandline-\d{10}-[0-9a-f]{32}-\d{5}\.parquet")
_PENDING = "_pending"


@dataclass(frozen=True)
class StagedFolder:
    """A folder for one attempt to write a number.

    Attributes:
        name: name of the folder, with app id and number.
    """

    name: str

    @classmethod
    def of(cls, tag: Tag) -> StagedFolder:
        """Return a new folder for a tag."""
        return cls(f"{tag.app_id}-{tag.number:010d}-{uuid4().hex}")

    def final_name(self, index: int) -> str:
        """Return the unique name that one of its files gets in the table."""
        _, number, attempt = self.name.rsplit("-", 2)
        return f"strandline-{number}-{attempt}-{index:05d}.parquet"


def is_strandline_file(path: str) -> bool:
    """Return whether a file has a name that only Strandline gives."""
    return _STRANDLINE_FILE.fullmatch(path.rpartition("/")[2]) is not None


@dataclass(frozen=True)
class CommitStaging:
    """The staged folders of a table.

    Attributes:
        files: files of the table.
    """

    files: TableFiles

    @property
    def place(self) -> Place:
        """Place of the folders."""
        return self.files.hidden

    def place_of(self, folder: StagedFolder) -> Place:
        """Return the place of a folder."""
        return self.place.child(folder.name)

    def begin(self, folder: StagedFolder) -> None:
        """Create the folder of a commit that only removes files, so that its moves count as pending."""
        with self.files.raising_target_errors():
            if self.place.local is not None:
                (self.place.local / folder.name).mkdir(parents=True, exist_ok=True)
            self.place.store.put(f"{folder.name}/{_PENDING}", b"")

    def keys(self, commit: CommitList) -> frozenset[str] | None:
        """Return the keys of a commit's files that are still staged; None if all have been moved."""
        if not commit.staged:
            return None
        with self.files.raising_target_errors():
            keys = frozenset(self.files.keys(self.files.hidden_key(commit.staged)))
        return keys or None

    def drop(self, folder: str) -> None:
        """Remove a staged folder; do nothing if the store refuses, since a later run tries again."""
        with suppress(StrandlineError):
            remove_folder(self.place.child(folder))

    def drop_leftovers(self, snapshot: TableSnapshot) -> None:
        """Remove staged folders of numbers that the table already holds.

        Their writers can no longer commit.
        """
        for name in self._folders():
            match = _STAGED_FOLDER.fullmatch(name)
            if match and int(match[2]) <= snapshot.tags.get(match[1], 0):
                self.drop(name)

    def _folders(self) -> list[str]:
        with self.files.raising_target_errors():
            if self.place.local is not None:
                folder = self.place.local
                return [path.name for path in folder.iterdir()] if folder.is_dir() else []
            prefixes = self.place.store.list_with_delimiter()["common_prefixes"]
            return [folder.rstrip("/").rpartition("/")[2] for folder in prefixes]
