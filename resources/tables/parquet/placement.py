"""Where the files of a Parquet table lie: staged before a commit, in the table after it.

Files that a commit removed lie beside the table.

Every later run repeats an unfinished move. A commit is written only once all earlier ones are moved, so
only the newest can be unfinished.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from partitions.errors import TargetError
from resources.connections.places import Place
from resources.listing.removal import remove_folder
from resources.tables.parquet.commit_list import CommitList, TableSnapshot
from resources.tables.parquet.set_aside import FOLDER, RemovedFiles
from resources.tables.parquet.staging import CommitStaging
from resources.tables.parquet.table_files import TableFiles


@dataclass(frozen=True)
class Placement:
    """The places of a table's files.

    Attributes:
        files: files of the table.
        staging: files that are not committed or not moved yet.
        removed_files: files that commits have removed.
    """

    files: TableFiles
    staging: CommitStaging
    removed_files: RemovedFiles

    @classmethod
    def of(cls, table: Place) -> Placement:
        """Return the placement of a table; it need not exist."""
        files = TableFiles(table)
        return cls(files, CommitStaging(files), RemovedFiles(files))

    def finish(self, commit: CommitList) -> None:
        """Move the files of a commit, removed ones first, so that a reader sees no row twice.

        Can safely be repeated.

        Raises:
            TargetError: a file cannot be moved.
        """
        files = self.files
        staged = self.staging.keys(commit)
        if staged is None:
            return
        self.removed_files.set_aside(commit.set_aside)
        moves = {files.hidden_key(commit.staged, file.staged): files.key(file.path) for file in commit.added}
        with files.raising_target_errors():
            files.move({key: target for key, target in moves.items() if key in staged})
        self.staging.drop(commit.staged)

    def resolve(self, snapshot: TableSnapshot, newest: TableSnapshot) -> dict[str, tuple[str, str]]:
        """Return where the files of a version lie now.

        The result maps each path to a folder below the table's parent and a path in it.

        Args:
            snapshot: version to locate.
            newest: newest version.
        """
        files = self.files
        staged = self.staging.keys(newest.newest)
        added_files = {file.path: file for file in newest.newest.added}
        leaving_paths = set(newest.newest.set_aside) if staged is not None else set()
        places: dict[str, tuple[str, str]] = {}
        for path in snapshot.files:
            if staged is not None and path in added_files and not self._is_placed(path):
                places[path] = (files.hidden_key(newest.newest.staged), added_files[path].staged)
            elif path in newest.files or (path in leaving_paths and self._is_placed(path)):
                places[path] = (files.name, path)
            else:
                places[path] = (files.hidden_key(FOLDER), path)
        return places

    def place_of(self, folder: str) -> Place:
        """Return the place of a folder that :meth:`resolve` returned."""
        return self.files.parent.child(folder)

    def remove(self) -> None:
        """Delete all staged and removed files.

        Raises:
            TargetError: some files are still there.
        """
        hidden = self.files.hidden
        with self.files.raising_target_errors():
            remove_folder(hidden)
        folder = hidden.local
        if folder is None:
            return
        if folder.exists():
            raise TargetError(
                f"table {self.files.table}: expected to remove {folder}, found files that remain. Check owner and mode of the folder"
            )
        with suppress(OSError):  # other tables may stage beside it
            folder.parent.rmdir()

    def _is_placed(self, path: str) -> bool:
        return self.files.exists(self.files.key(path))
