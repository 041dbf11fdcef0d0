"""What a listing knows of files: each as it was listed, and all that it found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from partitions.path.order import pair_order
from partitions.path.skipped import Skipped


@dataclass(frozen=True)
class SourceFile:
    """One file as it was listed.

    Attributes:
        path: relative to the source's root.
        size: bytes.
        version: what changes when the file does: the etag, or the modification time in nanoseconds.
        modified: when it was last modified, epoch milliseconds by the store's clock.
    """

    path: str
    size: int
    version: str
    modified: int

    @property
    def row(self) -> tuple[str, int, str, int]:
        """As plain data, for the log's lists; ``SourceFile(*row)`` reads it back."""
        return self.path, self.size, self.version, self.modified


@dataclass(frozen=True)
class ListedFiles:
    """What a listing found above a position.

    Attributes:
        files: in pair order, each once.
        root_files: whether files were seen at the root.
        calls: LIST calls, or folders opened on a local folder.
        skipped: what else lies above the position and holds something, but is no file of the source.
    """

    files: tuple[SourceFile, ...]
    root_files: bool = False
    calls: int = 0
    skipped: tuple[Skipped, ...] = ()


def in_pair_order(files: Sequence[SourceFile]) -> tuple[SourceFile, ...]:
    """Sort files as the watermark orders them, each path once."""
    unique = {file.path: file for file in files}
    return tuple(unique[path] for path in sorted(unique, key=pair_order))
