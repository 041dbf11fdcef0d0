"""Maintain a Delta table: join small files, delete files beyond the retention.

See docs/how-to/maintenance.md.

deltalake does both without Spark, and commits conditionally on S3. A table that needs more of a writer is
left to Delta's own commands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from partitions.errors import TargetError
from partitions.loads import Append
from resources.spark.process import error_line
from resources.spark.settings import temporary_settings
from resources.sql import quoted
from resources.tables.contract.commits import Version
from resources.tables.contract.maintenance import (
    CanOptimize,
    MaintenanceResult,
    PurgeResult,
    TableMaintenance,
    TellsWrongStatistics,
    WrongStatistics,
)
from resources.tables.delta.inexact_statistics import (
    can_write_statistics,
    correct_statistics,
    files_with_wrong_bounds,
    has_cut_bounds,
    needs_spark_to_join,
    write_exact_statistics,
)
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.own_limits import can_remove, is_supported_location, unmet_demand

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import SparkSession


_RETENTION = "delta.deletedFileRetentionDuration"
_SEVEN_DAYS = timedelta(days=7)
_INTERVAL_PART = re.compile(r"(\d+)\s+(week|day|hour|minute|second)s?", re.IGNORECASE)


@dataclass(frozen=True)
class DeltaMaintenance(TableMaintenance, CanOptimize, TellsWrongStatistics):
    """Maintenance of one Delta table.

    Attributes:
        log: log of the table.
    """

    log: DeltaLog

    def optimize(self, session: Callable[[], SparkSession], cluster_by: Sequence[str]) -> MaintenanceResult:
        """Join small files in one commit that changes no row, and correct inexact statistics.

        If there are clustering columns, a commit before the join sets them. Statistics get commits of
        their own.

        Raises:
            TargetError: a commit failed; the ones before it stay. The table's partitions do not allow
                clustering.
            SourceError: a file cannot be read for its statistics.
        """
        log = self.log
        table = log.table()
        if table is None:
            return MaintenanceResult()
        paths_before = _paths(table)
        result = _join_files(log, table, session, cluster_by)
        return replace(
            result,
            statistics=_correct_after_join(log, paths_before if result.added else None),
        )

    @override
    def retention(self) -> timedelta:
        """Return Delta's own property; no time at all if its text is an unusual one."""
        table = self.log.table()
        text = "" if table is None else table.metadata().configuration.get(_RETENTION, "")
        return interval_of(text) if text else _SEVEN_DAYS

    def vacuum(self, session: Callable[[], SparkSession]) -> MaintenanceResult:
        """Delete files that no version within the table's retention needs, and unreferenced older files.

        Correct inexact statistics, too.

        Raises:
            TargetError: it failed; the next vacuum deletes the remaining files.
            SourceError: a file cannot be read for its statistics.
        """
        log = self.log
        table = log.table()
        if table is None:
            return MaintenanceResult()
        if _can_deltalake_maintain(log, table):
            paths_before = log.files_outside_log()
            _run_or_fail(log, "vacuumed", lambda: table.vacuum(dry_run=False, full=True))
        else:
            spark, paths_before = session(), log.files_outside_log()
            _run_or_fail(
                log, "vacuumed", lambda: spark.sql(f"VACUUM delta.{quoted(log.place.spark_url)}").collect()
            )
        # Delta does not report how many files it deletes, and deltalake also names files that were deleted long ago.
        deleted_count = len(paths_before - log.files_outside_log())
        return MaintenanceResult(deleted=deleted_count, statistics=correct_statistics(log))

    def purge(self, session: Callable[[], SparkSession], since: Version, *, is_shared: bool) -> PurgeResult:
        """Delete all files outside of the newest version, and the log before ``since`` if it may go.

        The log of a shared table stays, since the states of other dataflows name its versions. So does the
        log of a table that only Spark can maintain.
        """
        log = self.log
        table = log.table()
        if table is None:
            return PurgeResult()
        paths_before, is_plain = log.files_outside_log(), _can_deltalake_maintain(log, table)
        if is_plain:
            vacuum = partial(
                table.vacuum, retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True
            )
            _run_or_fail(log, "purged", vacuum)
        else:
            _run_or_fail(log, "purged", lambda: _purge_with_spark(log, session()))
        deleted = len(paths_before - log.files_outside_log())
        if is_plain and not is_shared:
            return PurgeResult(
                deleted + _run_or_fail(log, "purged", lambda: _forget_versions(log, int(since)))
            )
        return PurgeResult(deleted, ("the lowest and highest values of columns in the table's log",))

    def wrong_statistics(self) -> WrongStatistics:
        """Return the files whose bounds leave rows out, according to their footers. Starts no Spark."""
        table = self.log.table()
        if table is None:
            return WrongStatistics((), can_be_written=True)
        return WrongStatistics(
            files_with_wrong_bounds(self.log, table), can_write_statistics(self.log, table)
        )


def interval_of(text: str) -> timedelta:
    """Return an interval of Delta's properties, such as ``interval 1 week`` or ``interval 36 hours``.

    What it does not know counts as nothing: then files are kept for longer than they need to be.
    """
    parts = {f"{unit.lower()}s": int(count) for count, unit in _INTERVAL_PART.findall(text)}
    return timedelta(**parts)


def _purge_with_spark(log: DeltaLog, spark: SparkSession) -> None:
    name = f"delta.{quoted(log.place.spark_url)}"
    table = log.table()
    if table is not None and "deletionVectors" in (table.protocol().reader_features or ()):
        spark.sql(f"REORG TABLE {name} APPLY (PURGE)").collect()
    with temporary_settings(spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        spark.sql(f"VACUUM {name} RETAIN 0 HOURS").collect()


def _forget_versions(log: DeltaLog, since: int) -> int:
    """Write a checkpoint, then delete the log of all versions before one; return the number of files."""
    table = log.table()
    if table is None:
        return 0
    table.create_checkpoint()
    return log.delete_before(since)


def _join_files(
    log: DeltaLog, table: DeltaTable, session: Callable[[], SparkSession], cluster_by: Sequence[str]
) -> MaintenanceResult:
    if cluster_by:
        _cluster(log, session(), cluster_by)
    elif _can_deltalake_maintain(log, table) and not needs_spark_to_join(table):
        metrics: dict[str, Any] = _run_or_fail(log, "optimized", table.optimize.compact)
        result = MaintenanceResult(
            added=int(metrics["numFilesAdded"]), removed=int(metrics["numFilesRemoved"])
        )
        if result.removed:
            table.update_incremental()
            _run_or_fail(log, "optimized", table.create_checkpoint)
        return result
    rows = _run_or_fail(
        log, "optimized", lambda: session().sql(f"OPTIMIZE delta.{quoted(log.place.spark_url)}").collect()
    )
    metrics = rows[0]["metrics"]
    return MaintenanceResult(added=int(metrics["numFilesAdded"]), removed=int(metrics["numFilesRemoved"]))


def _correct_after_join(log: DeltaLog, paths_before: Sequence[str] | None) -> int:
    """Write exact statistics of joined files and of files with wrong bounds; count only the latter.

    Joining files cuts the bounds of times to milliseconds, and some readers then skip the rows of the last
    one.

    Args:
        log: log of the table.
        paths_before: paths of the files before some were joined; None: none were.

    Returns:
        The number of files with wrong bounds, joined files apart.
    """
    table = log.table() if paths_before is not None else None
    if (
        paths_before is not None
        and table is not None
        and has_cut_bounds(table)
        and can_write_statistics(log, table)
    ):
        write_exact_statistics(log, sorted(set(_paths(table)) - set(paths_before)))
    return correct_statistics(log)


def _paths(table: DeltaTable) -> list[str]:
    paths: Any = table.get_add_actions().column("path").to_pylist()
    return list(paths)


def _cluster(log: DeltaLog, spark: SparkSession, columns: Sequence[str]) -> None:
    """Set the table's clustering columns unless they are set; raise TargetError for a partitioned table."""
    name = f"delta.{quoted(log.place.spark_url)}"
    (detail,) = _run_or_fail(log, "clustered", lambda: spark.sql(f"DESCRIBE DETAIL {name}").collect())
    if detail["partitionColumns"]:
        raise TargetError(
            f"table {log.place}: expected a table without partitions, as target.cluster_by needs, found "
            f"one partitioned by {', '.join(detail['partitionColumns'])}. Remove target.cluster_by, or "
            "reload the table: `state reset --replace`"
        )
    if [column.lower() for column in detail["clusteringColumns"]] != [column.lower() for column in columns]:
        column_list = ", ".join(map(quoted, columns))
        _run_or_fail(
            log, "clustered", lambda: spark.sql(f"ALTER TABLE {name} CLUSTER BY ({column_list})").collect()
        )


def _can_deltalake_maintain(log: DeltaLog, table: DeltaTable) -> bool:
    """Return whether deltalake can maintain the table: it spells every path as the log does.

    A path that it spells otherwise would not be removed from the log.
    """
    if not is_supported_location(log.place) or unmet_demand(table, Append()) is not None:
        return False
    return all(map(can_remove, _paths(table)))


def _run_or_fail(log: DeltaLog, participle: str, operation: Callable[[], Any]) -> Any:
    try:
        return operation()
    except Exception as error:
        raise TargetError(
            f"table {log.place} cannot be {participle}: {error_line(error).rstrip(' .;')}. No row was changed"
        ) from error
