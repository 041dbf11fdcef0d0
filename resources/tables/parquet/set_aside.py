"""Files that a commit of a Parquet table has removed: set aside beside the table, where older versions find them, until they are deleted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import uuid4

from resources.tables.parquet.staging import is_own
from resources.tables.parquet.table_files import TableFiles

FOLDER = "removed"


@dataclass(frozen=True)
class AsideFiles:
    """The files of a table that were set aside.

    Attributes:
        files: of the table.
    """

    files: TableFiles

    def put(self, paths: Iterable[str]) -> None:
        """Move files of the table out of it; one that is not there was moved before."""
        with self.files.failing():
            self.files.move({self.files.key(path): self._key(path) for path in paths})

    def paths(self) -> list[str]:
        """Return the paths of those that are Strandline's."""
        folder = self.files.hidden_key(FOLDER)
        with self.files.failing():
            return [key.removeprefix(f"{folder}/") for key in self.files.keys(folder) if is_own(key)]

    def delete(self, paths: Iterable[str]) -> None:
        """Delete some; one that is gone already was deleted before."""
        with self.files.failing():
            self.files.delete([self.files.hidden_key(FOLDER, path) for path in paths])

    def _key(self, path: str) -> str:
        """Where a file goes. Names that others give may come again, for another file; no version of the table has these."""
        return self.files.hidden_key(FOLDER, *(() if is_own(path) else (uuid4().hex,)), path)
