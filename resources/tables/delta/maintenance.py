"""Care of a Delta table: small files are joined, and files that no version within the table's retention needs are deleted (docs/maintenance.md).

deltalake does both without Spark, and commits conditionally on S3; a table that asks more of a writer is left to Delta's own commands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from partitions.errors import TargetError
from partitions.loads import Append
from resources.spark.process import said
from resources.sql import quoted
from resources.tables.contract.maintenance import (
    CanOptimize,
    MaintenanceResult,
    TableMaintenance,
    TellsWrongStatistics,
    WrongStatistics,
)
from resources.tables.delta.inexact_statistics import (
    can_write,
    has_cut_bounds,
    mend_wrong,
    must_be_joined_by_spark,
    write_exact,
    wrong_files,
)
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.own_limits import demand_of, may_remove, takes_place

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class DeltaMaintenance(TableMaintenance, CanOptimize, TellsWrongStatistics):
    """Care of one Delta table.

    Attributes:
        log: of the table.
    """

    log: DeltaLog

    def optimize(self, session: Callable[[], SparkSession], cluster_by: Sequence[str]) -> MaintenanceResult:
        """Join small files, in one commit that changes no row; of a table that is to be clustered after one that says by which columns.

        Raises:
            TargetError: it failed; the table is as it was, or as after it.
        """
        log = self.log
        table = log.table()
        if table is None:
            return MaintenanceResult()
        before = _paths(table)
        done = _joined(log, table, session, cluster_by)
        return replace(done, statistics=_mended(log, before if done.added else None))

    def vacuum(self, session: Callable[[], SparkSession]) -> MaintenanceResult:
        """Delete files that no version within the table's retention needs, and files that no version knows and that are older.

        Raises:
            TargetError: it failed; the next one deletes the rest.
        """
        log = self.log
        table = log.table()
        if table is None:
            return MaintenanceResult()
        if _is_ours(log, table):
            before = log.beside()
            _failing(log, "vacuumed", lambda: table.vacuum(dry_run=False, full=True))
        else:
            spark, before = session(), log.beside()
            _failing(
                log, "vacuumed", lambda: spark.sql(f"VACUUM delta.{quoted(log.place.spark_url)}").collect()
            )
        # Delta does not tell how many it deletes, and deltalake names files that went long ago, too; others may write meanwhile.
        deleted = len(before - log.beside())
        return MaintenanceResult(deleted=deleted, statistics=mend_wrong(log))

    def wrong_statistics(self) -> WrongStatistics:
        """Compare bounds of decimals with the files' footers. Starts no Spark."""
        table = self.log.table()
        if table is None:
            return WrongStatistics((), can_be_written=True)
        return WrongStatistics(wrong_files(self.log, table), can_write(self.log, table))


def _joined(
    log: DeltaLog, table: DeltaTable, session: Callable[[], SparkSession], cluster_by: Sequence[str]
) -> MaintenanceResult:
    if cluster_by:
        _cluster(log, session(), cluster_by)
    elif _is_ours(log, table) and not must_be_joined_by_spark(table):
        metrics: dict[str, Any] = _failing(log, "optimized", table.optimize.compact)
        done = MaintenanceResult(added=int(metrics["numFilesAdded"]), removed=int(metrics["numFilesRemoved"]))
        if done.removed:
            table.update_incremental()
            _failing(log, "optimized", table.create_checkpoint)
        return done
    rows = _failing(
        log, "optimized", lambda: session().sql(f"OPTIMIZE delta.{quoted(log.place.spark_url)}").collect()
    )
    told = rows[0]["metrics"]
    return MaintenanceResult(added=int(told["numFilesAdded"]), removed=int(told["numFilesRemoved"]))


def _mended(log: DeltaLog, before: Sequence[str] | None) -> int:
    """Write exact statistics where they leave rows out, and of the files that were just joined; return of how many files others had wrong ones.

    Who joins files cuts the bounds of times to milliseconds, and some readers then skip the rows of a file's last one.

    Args:
        log: of the table.
        before: paths of the files that were there before some were joined; None: none were.
    """
    table = log.table() if before is not None else None
    if before is not None and table is not None and has_cut_bounds(table) and can_write(log, table):
        write_exact(log, sorted(set(_paths(table)) - set(before)))
    return mend_wrong(log)


def _paths(table: DeltaTable) -> list[str]:
    paths: Any = table.get_add_actions().column("path").to_pylist()
    return list(paths)


def _cluster(log: DeltaLog, spark: SparkSession, columns: Sequence[str]) -> None:
    """Have the table's files clustered by these columns, if they are not yet. It changes no file."""
    name = f"delta.{quoted(log.place.spark_url)}"
    (detail,) = _failing(log, "clustered", lambda: spark.sql(f"DESCRIBE DETAIL {name}").collect())
    if detail["partitionColumns"]:
        raise TargetError(
            f"table {log.place}: expected a table without partitions, which target.cluster_by needs, found one that is partitioned by"
            f" {', '.join(detail['partitionColumns'])}. Take the key out, or load the table again: `state reset --replace`"
        )
    if [each.lower() for each in detail["clusteringColumns"]] != [each.lower() for each in columns]:
        by = ", ".join(map(quoted, columns))
        _failing(log, "clustered", lambda: spark.sql(f"ALTER TABLE {name} CLUSTER BY ({by})").collect())


def _is_ours(log: DeltaLog, table: DeltaTable) -> bool:
    """Whether deltalake does it: not if it writes the path of a file with other letters than the table's log has, since the file would stay there."""
    if not takes_place(log.place) or demand_of(table, Append()) is not None:
        return False
    return all(map(may_remove, _paths(table)))


def _failing(log: DeltaLog, done: str, act: Callable[[], Any]) -> Any:
    try:
        return act()
    except Exception as error:
        raise TargetError(
            f"table {log.place} cannot be {done}: {said(error).rstrip(' .;')}. No row was changed"
        ) from error
