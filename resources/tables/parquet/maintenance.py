"""Delete files that only versions beyond a Parquet table's retention need.

See docs/how-to/maintenance.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from typing_extensions import override

from resources.tables.contract.commits import Version
from resources.tables.contract.maintenance import MaintenanceResult, PurgeResult, TableMaintenance
from resources.tables.parquet.log import CommitLog
from resources.tables.parquet.placement import Placement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RETENTION = timedelta(days=7)


@dataclass(frozen=True)
class ParquetMaintenance(TableMaintenance):
    """Maintenance of one Parquet table.

    Attributes:
        log: log of the table.
        placement: placement of its files.
        now: time of the maintenance.
    """

    log: CommitLog
    placement: Placement
    now: datetime

    @override
    def retention(self) -> timedelta:
        """Return seven days."""
        return RETENTION

    @override
    def vacuum(self, session: Callable[[], SparkSession]) -> MaintenanceResult:
        """Delete removed files that no version within the retention has.

        Raises:
            TargetError: lists or files cannot be read; the next vacuum deletes the remaining files.
        """
        log, versions = self.log, self.log.versions()
        if not versions:
            return MaintenanceResult()
        since = self.now - RETENTION
        oldest = _version_at(versions, lambda version: datetime.fromisoformat(log.read(version).time), since)
        oldest_snapshot = log.snapshot(oldest)
        later_commits = log.read_all([version for version in versions if version > oldest])
        needed_paths = {
            *(oldest_snapshot.files if oldest_snapshot else ()),
            *(file.path for commit in later_commits for file in commit.added),
        }
        unneeded_paths = [path for path in self.placement.removed_files.paths() if path not in needed_paths]
        self.placement.removed_files.delete(unneeded_paths)
        return MaintenanceResult(deleted=len(unneeded_paths))

    @override
    def purge(self, session: Callable[[], SparkSession], since: Version, *, is_shared: bool) -> PurgeResult:
        """Delete all files that commits have removed from the table.

        Raises:
            TargetError: lists or files cannot be read; the next purge deletes the remaining files.
        """
        snapshot = self.log.snapshot()
        if snapshot is None:
            return PurgeResult()
        self.placement.finish(snapshot.newest)
        paths = [path for path in self.placement.removed_files.paths() if path not in snapshot.files]
        self.placement.removed_files.delete(paths)
        return PurgeResult(len(paths), ("the lowest and highest values of columns in older lists of files",))


def _version_at(versions: Sequence[int], time_of: Callable[[int], datetime], since: datetime) -> int:
    """Return the version that the table had at a time; the first one if it is younger.

    Times of lists ascend as far as the writers' clocks agree.
    """
    low, high = 0, len(versions) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if time_of(versions[middle]) <= since:
            low = middle
        else:
            high = middle - 1
    return versions[low]
