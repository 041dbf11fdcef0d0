"""Deleting files of a Parquet table that only versions older than its retention need (docs/how-to/maintenance.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from typing_extensions import override

from resources.tables.contract.maintenance import MaintenanceResult, TableMaintenance
from resources.tables.parquet.log import CommitLog
from resources.tables.parquet.placement import Placement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RETENTION = timedelta(days=7)


@dataclass(frozen=True)
class ParquetMaintenance(TableMaintenance):
    """Care of one Parquet table.

    Attributes:
        log: of the table.
        placement: of its files.
        now: when it is done.
    """

    log: CommitLog
    placement: Placement
    now: datetime

    @override
    def vacuum(self, session: Callable[[], SparkSession]) -> MaintenanceResult:
        """Delete files that were set aside, and that no version of the last days has.

        Raises:
            TargetError: lists or files cannot be read; the next one deletes the rest.
        """
        log, versions = self.log, self.log.versions()
        if not versions:
            return MaintenanceResult()
        since = self.now - RETENTION
        oldest = _oldest_kept(versions, lambda version: datetime.fromisoformat(log.read(version).time), since)
        before = log.snapshot(oldest)
        later = log.read_all([version for version in versions if version > oldest])
        needed = {
            *(before.files if before else ()),
            *(file.path for commit in later for file in commit.added),
        }
        unneeded = [path for path in self.placement.aside.paths() if path not in needed]
        self.placement.aside.delete(unneeded)
        return MaintenanceResult(deleted=len(unneeded))


def _oldest_kept(versions: Sequence[int], time_of: Callable[[int], datetime], since: datetime) -> int:
    """The version that the table had at a time; the first one if it is younger. Times of lists ascend, as far as writers' clocks agree."""
    low, high = 0, len(versions) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if time_of(versions[middle]) <= since:
            low = middle
        else:
            high = middle - 1
    return versions[low]
