"""The contract of table maintenance: joined files, deleted files, corrected statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from partitions.plan import pluralize
from resources.tables.contract.commits import Version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class MaintenanceResult:
    """The counts of one maintenance of a table; `strandline maintain --json` shows the fields by name.

    Attributes:
        added: data files that were written.
        removed: data files that the newest version no longer has.
        deleted: files that were deleted from the store.
        statistics: files whose inexact statistics were replaced by exact ones.
        rows: rows that have expired.
    """

    added: int = 0
    removed: int = 0
    deleted: int = 0
    statistics: int = 0
    rows: int = 0

    def counts(self) -> dict[str, int]:
        """Return the counts that are not 0, by their description."""
        counts = {
            "files added": self.added,
            "files removed": self.removed,
            "files deleted": self.deleted,
            "files with exact statistics again": self.statistics,
            "rows expired": self.rows,
        }
        return {name: count for name, count in counts.items() if count}

    def __str__(self) -> str:
        """Return the counts as a phrase."""
        counts = [
            f"{pluralize(count, noun.removesuffix('s'))} {rest}"
            for name, count in self.counts().items()
            for noun, _, rest in [name.partition(" ")]
        ]
        return ", ".join(counts) or "nothing to do"


class PurgeResult(NamedTuple):
    """The result of a purge.

    Attributes:
        deleted: number of files that were deleted from the store.
        remains: what still holds rows or values of older versions, for people.
    """

    deleted: int = 0
    remains: Sequence[str] = ()


class TableMaintenance(Protocol):
    """Maintenance of one table.

    It changes no row and no tag, and :meth:`Table.head` still finds the recorded commit. The caller holds
    the dataflow; other writers may commit meanwhile.
    """

    def retention(self) -> timedelta:
        """Return how long :meth:`vacuum` keeps files that the newest version no longer needs.

        Raises:
            TargetError: the table cannot be read.
        """
        ...

    def vacuum(self, session: Callable[[], SparkSession]) -> MaintenanceResult:
        """Delete files that only versions older than the table's retention need.

        Unreferenced files of that age are deleted, too.

        Args:
            session: returns a session, if one is needed.

        Raises:
            TargetError: the vacuum failed; the next one deletes the remaining files.
        """
        ...

    def purge(self, session: Callable[[], SparkSession], since: Version, *, is_shared: bool) -> PurgeResult:
        """Delete every file that the newest version does not need, whatever its age.

        The caller makes sure that no one reads an older version or writes to the table.

        Args:
            session: returns a session, if one is needed.
            since: version that the dataflow's newest entry records; the table's log keeps all from there on.
            is_shared: whether other dataflows load the table, whose states may name older versions.

        Raises:
            TargetError: it failed; the next purge deletes the remaining files.
        """
        ...


@runtime_checkable
class CanOptimize(Protocol):
    """Maintenance of a format that joins small files."""

    def optimize(self, session: Callable[[], SparkSession], cluster_by: Sequence[str]) -> MaintenanceResult:
        """Join small files into larger ones. Older versions stay readable.

        Args:
            session: returns a session, if one is needed.
            cluster_by: columns that group rows into files; empty: rows keep their order.

        Raises:
            TargetError: it failed; the table holds either none or all of its changes.
        """
        ...


class WrongStatistics(NamedTuple):
    """Files with wrong bounds in a table's log.

    Attributes:
        files: paths of the files whose bounds leave rows out.
        can_be_written: whether maintenance can replace the bounds by exact ones.
    """

    files: Sequence[str]
    can_be_written: bool


@runtime_checkable
class TellsWrongStatistics(Protocol):
    """Maintenance of a format whose writers may keep inexact bounds, so that readers skip files they need."""

    def wrong_statistics(self) -> WrongStatistics:
        """Compare the newest version's statistics with the files and return the files with wrong bounds.

        Raises:
            TargetError: the log cannot be read.
            SourceError: a file cannot be read.
        """
        ...
