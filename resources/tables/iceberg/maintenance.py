"""Care of an Iceberg table, by Iceberg's own procedures: small files are joined, old snapshots and files that nobody knows are deleted.

Tags and branches keep their snapshots, so that of each dataflow's newest entry stays, and what a load is made on (docs/how-to/maintenance.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from partitions.errors import TargetError
from resources.connections.places import Place
from resources.spark.process import error_line, missing_iceberg
from resources.sql import literal, quoted
from resources.tables.contract.maintenance import CanOptimize, MaintenanceResult, TableMaintenance
from resources.tables.iceberg.catalog import Catalog
from resources.tables.iceberg.metadata import Metadata
from resources.tables.removal import files_below

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RETENTION = "history.expire.max-snapshot-age-ms"
_SEVEN_DAYS = timedelta(days=7)
_A_DAY = timedelta(days=1)
"""Iceberg deletes no younger file that it does not know: a writer may be about to commit it."""

_JOINED = {
    # Two small files are joined: by default Iceberg waits for five.
    "min-input-files": "2",
    # So are files with deletes of their own, which cost each reader time, and which not every engine reads.
    "delete-file-threshold": "1",
    "remove-dangling-deletes": "true",
}
"""What becomes one file."""


@dataclass(frozen=True)
class IcebergMaintenance(TableMaintenance, CanOptimize):
    """Care of one Iceberg table.

    Attributes:
        catalog: of the table.
        place: of its files.
    """

    catalog: Catalog
    place: Place

    def optimize(self, session: Callable[[], SparkSession], cluster_by: Sequence[str]) -> MaintenanceResult:
        """Join small files, and files of deletes with those that they are about. Rows are sorted by all columns alike (Z-order)."""
        metadata = self.catalog.newest()
        if metadata is None or metadata.current is None:
            return MaintenanceResult()
        options = ", ".join(f"{literal(name)}, {literal(value)}" for name, value in _JOINED.items())
        arguments = f"options => map({options})"
        if cluster_by:
            order = literal(f"zorder({', '.join(map(quoted, cluster_by))})")
            arguments += f", strategy => 'sort', sort_order => {order}"
        (told,) = self._call(session(), "rewrite_data_files", arguments, "optimized")
        return MaintenanceResult(
            added=int(told["added_data_files_count"]), removed=int(told["rewritten_data_files_count"])
        )

    def vacuum(self, session: Callable[[], SparkSession]) -> MaintenanceResult:
        """Expire snapshots older than the table's retention, and delete files that none has."""
        metadata = self.catalog.newest()
        if metadata is None or metadata.current is None:
            return MaintenanceResult()
        spark, before = session(), datetime.now(UTC) - retention(metadata)
        older = f"older_than => TIMESTAMP '{before:%Y-%m-%d %H:%M:%S}Z'"
        there = files_below(self.place)
        self._call(spark, "expire_snapshots", older, "vacuumed")
        self._call(spark, "remove_orphan_files", older, "vacuumed")
        # Iceberg counts what it wanted to delete, also what was gone.
        return MaintenanceResult(deleted=len(there - files_below(self.place)))

    def _call(self, session: SparkSession, procedure: str, arguments: str, done: str) -> list[Any]:
        self.catalog.name(session)
        table = literal(self.catalog.short_name)
        try:
            return session.sql(
                f"CALL {self.catalog.procedure(procedure)}(table => {table}, {arguments})"
            ).collect()
        except Exception as error:
            why = missing_iceberg(error) or error_line(error).rstrip(" .;")
            raise TargetError(f"table {self.place} cannot be {done}: {why}. No row was changed") from error


def retention(metadata: Metadata) -> timedelta:
    """Return for how long snapshots stay that nothing names: Iceberg's own property, and never less than a day."""
    given = metadata.properties.get(_RETENTION)
    return max(_A_DAY, timedelta(milliseconds=int(given)) if given else _SEVEN_DAYS)
