"""Files that commits removed from a Parquet table, kept beside it for older versions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import uuid4

from resources.tables.parquet.staging import is_strandline_file
from resources.tables.parquet.table_files import TableFiles

FOLDER = "removed"


@dataclass(frozen=True)
class RemovedFiles:
    """The removed files of a table.

    Attributes:
        files: files of the table.
    """

    files: TableFiles

    def set_aside(self, paths: Iterable[str]) -> None:
        """Move files out of the table; a missing one was moved before."""
        with self.files.raising_target_errors():
            self.files.move({self.files.key(path): self._key(path) for path in paths})

    def paths(self) -> list[str]:
        """Return the paths of the removed files that are Strandline's."""
        folder = self.files.hidden_key(FOLDER)
        with self.files.raising_target_errors():
            return [
                key.removeprefix(f"{folder}/") for key in self.files.keys(folder) if is_strandline_file(key)
            ]

    def delete(self, paths: Iterable[str]) -> None:
        """Delete removed files; a missing one was deleted before."""
        with self.files.raising_target_errors():
            self.files.delete([self.files.hidden_key(FOLDER, path) for path in paths])

    def _key(self, path: str) -> str:
        """Return the target key of a file.

        Other writers' names may occur again for other files, so they get a random folder; no version of
        the table has them.
        """
        return self.files.hidden_key(FOLDER, *(() if is_strandline_file(path) else (uuid4().hex,)), path)
