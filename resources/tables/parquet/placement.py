"""Where the files of a Parquet table lie: staged before their commit, in their places after it, set aside once a commit has removed them.

Moving is done again by whoever comes next, until it is done; a commit is put only once all earlier ones have been moved, so that only the
newest can be unfinished.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from partitions.errors import TargetError
from resources.connections.places import Place
from resources.listing.removal import remove_folder
from resources.tables.parquet.commit_list import CommitList, Snapshot
from resources.tables.parquet.set_aside import FOLDER, AsideFiles
from resources.tables.parquet.staging import Staging
from resources.tables.parquet.table_files import TableFiles


@dataclass(frozen=True)
class Placement:
    """The places of a table's files.

    Attributes:
        files: of the table.
        staging: those that are not committed, or not moved yet.
        aside: those that commits have removed.
    """

    files: TableFiles
    staging: Staging
    aside: AsideFiles

    @classmethod
    def of(cls, table: Place) -> Placement:
        """Return that of a table; it need not exist."""
        files = TableFiles(table)
        return cls(files, Staging(files), AsideFiles(files))

    def finish(self, commit: CommitList) -> None:
        """Move the files of a commit, those that it removes first: a reader sees no row twice. Done again it does no harm.

        Raises:
            TargetError: a file cannot be moved.
        """
        files = self.files
        staged = self.staging.keys(commit)
        if staged is None:
            return
        self.aside.put(commit.set_aside)
        moves = {files.hidden_key(commit.staged, file.staged): files.key(file.path) for file in commit.added}
        with files.failing():
            files.move({key: goal for key, goal in moves.items() if key in staged})
        self.staging.drop(commit.staged)

    def resolve(self, snapshot: Snapshot, newest: Snapshot) -> dict[str, tuple[str, str]]:
        """Return where the files of a version lie now: by path, the folder below the table's parent and the path in it.

        Args:
            snapshot: the version.
            newest: the newest one.
        """
        files = self.files
        staged = self.staging.keys(newest.newest)
        added = {file.path: file for file in newest.newest.added}
        moving = set(newest.newest.set_aside) if staged is not None else set()
        places: dict[str, tuple[str, str]] = {}
        for path in snapshot.files:
            if staged is not None and path in added and not self._is_placed(path):
                places[path] = (files.hidden_key(newest.newest.staged), added[path].staged)
            elif path in newest.files or (path in moving and self._is_placed(path)):
                places[path] = (files.name, path)
            else:
                places[path] = (files.hidden_key(FOLDER), path)
        return places

    def place_of(self, folder: str) -> Place:
        """Return the place of a folder that :meth:`resolve` tells."""
        return self.files.parent.child(folder)

    def remove(self) -> None:
        """Remove all that is staged or set aside.

        Raises:
            TargetError: some of it is still there.
        """
        hidden = self.files.hidden
        with self.files.failing():
            remove_folder(hidden)
        folder = hidden.local
        if folder is None:
            return
        if folder.exists():
            raise TargetError(
                f"table {self.files.table}: expected to remove {folder}, found files that are still there. Check owner and mode of the folder"
            )
        with suppress(OSError):  # other tables stage beside it
            folder.parent.rmdir()

    def _is_placed(self, path: str) -> bool:
        return self.files.exists(self.files.key(path))
