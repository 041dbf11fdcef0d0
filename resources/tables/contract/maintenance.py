"""What maintenance asks of a table: joined files, removed files, wrong statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from partitions.plan import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Cared:
    """What a table's care has done.

    Attributes:
        added: data files that were written.
        removed: data files that are part of the newest version no more.
        deleted: files that were there before, and that it has deleted.
        statistics: files whose statistics left rows out, and were written again.
    """

    added: int = 0
    removed: int = 0
    deleted: int = 0
    statistics: int = 0

    def counts(self) -> dict[str, int]:
        """Those that are not 0."""
        counts = {
            "files added": self.added,
            "files removed": self.removed,
            "files deleted": self.deleted,
            "files with exact statistics again": self.statistics,
        }
        return {name: count for name, count in counts.items() if count}

    def __str__(self) -> str:
        """In words."""
        counts = [
            f"{counted(count, 'file')} {name.removeprefix('files ')}" for name, count in self.counts().items()
        ]
        return ", ".join(counts) or "nothing to do"


class Maintenance(Protocol):
    """Care of one table. No row and no tag changes, and :meth:`Table.head` keeps what was recorded before.

    Who calls it holds the dataflow; other writers may commit meanwhile.
    """

    def vacuum(self, session: Callable[[], SparkSession]) -> Cared:
        """Delete files that only versions older than the table's retention need, and files that no commit knows and that are as old.

        Args:
            session: gives one, if it is needed.

        Raises:
            TargetError: it failed; the next one deletes the rest.
        """
        ...


@runtime_checkable
class CanOptimize(Protocol):
    """Care of a format that joins small files."""

    def optimize(self, session: Callable[[], SparkSession], cluster_by: Sequence[str]) -> Cared:
        """Join small files into larger ones. Older versions stay readable.

        Args:
            session: gives one, if it is needed.
            cluster_by: columns by which rows are put together in the files that are written; none: rows stay in their order.

        Raises:
            TargetError: it failed; nothing, or all of it, is in the table.
        """
        ...


class WrongStatistics(NamedTuple):
    """What the log of a table tells wrong of its files.

    Attributes:
        files: paths of the files of which it has bounds that leave rows out.
        can_be_written: whether care of the table writes exact ones in their place.
    """

    files: Sequence[str]
    can_be_written: bool


@runtime_checkable
class TellsWrongStatistics(Protocol):
    """Care of a format whose writers may keep bounds that are not exact, so that readers skip files that they need."""

    def wrong_statistics(self) -> WrongStatistics:
        """Compare the log of the newest version with the files.

        Raises:
            TargetError: the log cannot be read.
            SourceError: a file cannot be read.
        """
        ...
