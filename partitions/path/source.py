"""Files as a listing returns them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from partitions.path.order import pair_order
from partitions.path.skipped import SkippedNames


@dataclass(frozen=True)
class SourceFile:
    """One listed file.

    Attributes:
        path: relative to the source's root.
        size: bytes.
        version: changes with the file: the etag, or the modification time in nanoseconds.
        modified: the time of the last modification, epoch milliseconds by the store's clock.
    """

    path: str
    size: int
    version: str
    modified: int

    @property
    def row(self) -> tuple[str, int, str, int]:
        """The file as plain data, for the log's lists; ``SourceFile(*row)`` reads it back."""
        return self.path, self.size, self.version, self.modified


def unseen_file(path: str) -> SourceFile:
    """Return a file of which only the path is known: it has no version, and was modified at 0."""
    return SourceFile(path, 0, "", 0)


def is_unseen(version: str, modified: int) -> bool:
    """Return whether only the path of a file is known: :func:`unseen_file`."""
    return not version and not modified


@dataclass(frozen=True)
class ListedFiles:
    """The result of a listing above a position.

    Attributes:
        files: the files in pair order, without duplicates.
        root_files: whether there are files at the root.
        calls: LIST calls, or opened folders of a local folder.
        skipped: other names above the position that are no files of the source.
    """

    files: tuple[SourceFile, ...]
    root_files: bool = False
    calls: int = 0
    skipped: tuple[SkippedNames, ...] = ()


def in_pair_order(files: Sequence[SourceFile]) -> tuple[SourceFile, ...]:
    """Sort files in watermark order, without duplicates."""
    unique = {file.path: file for file in files}
    return tuple(unique[path] for path in sorted(unique, key=pair_order))
