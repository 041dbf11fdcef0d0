"""Maintain an Iceberg table with Iceberg's procedures (docs/how-to/maintenance.md).

Small files are joined; old snapshots and unreferenced files are deleted. Tags and branches keep their
snapshots: that of each dataflow's newest entry, and the base of a running load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from partitions.errors import TargetError
from resources.connections.places import Place
from resources.spark.process import error_line, missing_iceberg
from resources.sql import literal, quoted
from resources.tables.contract.commits import Version
from resources.tables.contract.maintenance import (
    CanOptimize,
    MaintenanceResult,
    PurgeResult,
    TableMaintenance,
)
from resources.tables.iceberg.catalog import Catalog
from resources.tables.iceberg.metadata import Metadata
from resources.tables.removal import files_below

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RETENTION = "history.expire.max-snapshot-age-ms"
_SEVEN_DAYS = timedelta(days=7)
_A_DAY = timedelta(days=1)
"""Iceberg deletes no younger unreferenced file, because a writer may be about to commit it."""

_AHEAD = timedelta(minutes=1)
"""Time by which the clock of another writer, which dates its snapshots, may be ahead."""

_REWRITE_OPTIONS = {
    # Join two small files; by default Iceberg waits for five.
    "min-input-files": "2",
    # Join delete files, which slow every reader down and which not every engine reads.
    "delete-file-threshold": "1",
    "remove-dangling-deletes": "true",
}
"""Options of ``rewrite_data_files``."""


@dataclass(frozen=True)
class IcebergMaintenance(TableMaintenance, CanOptimize):
    """Maintenance of one Iceberg table.

    Attributes:
        catalog: catalog of the table.
        place: place of its files.
    """

    catalog: Catalog
    place: Place

    def optimize(self, session: Callable[[], SparkSession], cluster_by: Sequence[str]) -> MaintenanceResult:
        """Join small data files and apply their delete files; sort rows by Z-order of ``cluster_by``."""
        metadata = self.catalog.newest()
        if metadata is None or metadata.current is None:
            return MaintenanceResult()
        options = ", ".join(f"{literal(name)}, {literal(value)}" for name, value in _REWRITE_OPTIONS.items())
        arguments = f"options => map({options})"
        if cluster_by:
            order = literal(f"zorder({', '.join(map(quoted, cluster_by))})")
            arguments += f", strategy => 'sort', sort_order => {order}"
        (counts,) = self._call(session(), "rewrite_data_files", arguments, "optimized")
        return MaintenanceResult(
            added=int(counts["added_data_files_count"]),
            removed=int(counts["rewritten_data_files_count"]),
        )

    @override
    def retention(self) -> timedelta:
        """Return how long snapshots stay."""
        metadata = self.catalog.newest()
        return _SEVEN_DAYS if metadata is None else snapshot_retention(metadata)

    def vacuum(self, session: Callable[[], SparkSession]) -> MaintenanceResult:
        """Expire snapshots older than the table's retention, and delete unreferenced files."""
        metadata = self.catalog.newest()
        if metadata is None or metadata.current is None:
            return MaintenanceResult()
        spark, oldest = session(), datetime.now(UTC) - snapshot_retention(metadata)
        older = f"older_than => TIMESTAMP '{oldest:%Y-%m-%d %H:%M:%S}Z'"
        files_before = files_below(self.place)
        self._call(spark, "expire_snapshots", older, "vacuumed")
        self._call(spark, "remove_orphan_files", older, "vacuumed")
        # Iceberg also counts files that were gone already.
        return MaintenanceResult(deleted=len(files_before - files_below(self.place)))

    @override
    def purge(self, session: Callable[[], SparkSession], since: Version, *, is_shared: bool) -> PurgeResult:
        """Expire all snapshots but the newest and those of tags and branches, which the result lists."""
        metadata = self.catalog.newest()
        if metadata is None or metadata.current is None:
            return PurgeResult()
        if metadata.current.count("total-delete-files"):  # the rows are still in their files
            self.optimize(session, ())
        files_before = files_below(self.place)
        now = datetime.now(UTC) + _AHEAD
        older = f"older_than => TIMESTAMP '{now:%Y-%m-%d %H:%M:%S}Z', retain_last => 1"
        self._call(session(), "expire_snapshots", older, "purged")
        deleted_files = files_before - files_below(self.place)
        return PurgeResult(len(deleted_files), self._kept_snapshots())

    def _kept_snapshots(self) -> list[str]:
        """Return the older snapshots that tags and branches keep, for people."""
        metadata = self.catalog.newest()
        if metadata is None or metadata.current is None:
            return []
        return [
            f"snapshot {ref.get('snapshot-id')}, which {ref.get('type', 'tag')} {name} keeps"
            for name, ref in sorted(metadata.refs.items())
            if ref.get("snapshot-id") != metadata.current.id
        ]

    def _call(self, session: SparkSession, procedure: str, arguments: str, participle: str) -> list[Any]:
        self.catalog.name(session)
        table = literal(self.catalog.short_name)
        try:
            return session.sql(
                f"CALL {self.catalog.procedure(procedure)}(table => {table}, {arguments})"
            ).collect()
        except Exception as error:
            reason = missing_iceberg(error) or error_line(error).rstrip(" .;")
            raise TargetError(
                f"table {self.place} cannot be {participle}: {reason}. No row was changed"
            ) from error


def snapshot_retention(metadata: Metadata) -> timedelta:
    """Return how long unreferenced snapshots stay: Iceberg's own property, and never less than a day."""
    max_age = metadata.properties.get(_RETENTION)
    return max(_A_DAY, timedelta(milliseconds=int(max_age)) if max_age else _SEVEN_DAYS)
