"""The rows that each snapshot of an Iceberg table appends, from its metadata.

See docs/reference/streams.md.

All snapshots that become visible at once count as one version, such as a commit that was made on a branch.
Compaction and fences append nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from partitions.errors import NeedsDecision, SourceError
from partitions.target import COMMIT_COLUMN
from resources.connections.places import Place
from resources.tables.contract.appends import (
    VERSION,
    AppendedVersions,
    ReadPosition,
    TableAppends,
    VersionAppends,
)
from resources.tables.contract.commits import Version
from resources.tables.iceberg.catalog import Catalog
from resources.tables.iceberg.commit import IcebergCommit, changes_rows, group_commits
from resources.tables.iceberg.contents import open_source_metadata
from resources.tables.iceberg.metadata import Metadata, Snapshot
from resources.tables.iceberg.rows import hides_commit_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CHANGE, _ORDINAL, _SNAPSHOT = "_change_type", "_change_ordinal", "_commit_snapshot_id"
"""Columns of Iceberg's changes table."""


@dataclass(frozen=True)
class IcebergAppends(TableAppends):
    """The appends of one Iceberg table.

    Attributes:
        place: place of the table.
        catalog: catalog of the table.
    """

    place: Place
    catalog: Catalog

    def since(self, position: ReadPosition | None, until: int | None = None) -> AppendedVersions:
        """Return the appends of the snapshots in a range.

        A version's number is the snapshot's sequence number.

        Raises:
            SourceError: code ``format_version``: snapshots of a table of format version 1 have no numbers; or
                as the contract says.
        """
        metadata = open_source_metadata(self.place, self.catalog)
        if metadata.format_version < 2:
            raise SourceError(
                f"table {metadata.table_location}: expected an Iceberg table of format version 2 or above, whose snapshots have numbers; found"
                " format version 1. Raise it: ALTER TABLE … SET TBLPROPERTIES ('format-version' = '2')",
                code="format_version",
            )
        commits = group_commits(_snapshots_above(metadata, position))
        appended = [_version_appends(commit) for commit in commits]
        if appended and position is None and commits[0].follows is not None:
            appended[0] = _all_files_of(commits[0].snapshot)
        appended = [version for version in appended if until is None or version.version <= until]
        newest = metadata.current.sequence if metadata.current else 0
        return AppendedVersions(str(metadata.raw.get("table-uuid")), newest, tuple(appended))

    def version_of(self, position: ReadPosition) -> Version:
        """Return the version id: sequence number and snapshot id."""
        return f"{position.version}-{position.id}"

    def position_of(self, version: Version) -> ReadPosition:
        """Return the position: sequence number and snapshot id."""
        number, _, snapshot = str(version).partition("-")
        return ReadPosition(int(number), snapshot)

    def rows(self, spark: SparkSession, appended: Sequence[VersionAppends]) -> DataFrame:
        """Return the rows that versions append, without Strandline's column.

        Iceberg's changes table reads the files that each snapshot added, and names that snapshot.
        """
        from pyspark.sql import functions as F

        metadata = open_source_metadata(self.place, self.catalog)
        name, frames = self.catalog.name(spark), list["DataFrame"]()
        for version in (version for version in appended if version.holds_all_files and version.files):
            rows = spark.read.option("versionAsOf", version.id).table(name)
            frames.append(rows.withColumn(VERSION, F.lit(version.version).cast("long")))
        for run in _readable_runs(metadata, appended):
            reader = spark.read.option("end-snapshot-id", run[-1].id)
            start = _parent_of(metadata, run[0])
            reader = reader if start is None else reader.option("start-snapshot-id", str(start))
            if _has_delete_files(metadata, run[0]):
                frames.append(reader.table(name).withColumn(VERSION, F.lit(run[0].version).cast("long")))
                continue
            # Iceberg returns values of other columns if Spark reads only some of these three, and fails if Spark filters by them. So one expression,
            # which is never NULL, contains all of them.
            snapshot_id = F.when((F.col(_CHANGE) == "INSERT") & (F.col(_ORDINAL) >= 0), F.col(_SNAPSHOT))
            snapshot = F.coalesce(snapshot_id, F.lit(0).cast("long"))
            changes = reader.table(f"{name}.changes").withColumn(_SNAPSHOT, snapshot)
            part_versions = [
                (part.id, version.version) for version in run for part in _snapshots_of(metadata, version)
            ]
            versions = F.broadcast(spark.createDataFrame(part_versions, f"{_SNAPSHOT} long, {VERSION} long"))
            frames.append(changes.join(versions, _SNAPSHOT).drop(_CHANGE, _ORDINAL, _SNAPSHOT))
        if not frames:
            frames.append(spark.read.table(name).limit(0).withColumn(VERSION, F.lit(0).cast("long")))
        rows = reduce(lambda above, below: above.unionByName(below, allowMissingColumns=True), frames)
        return rows.drop(COMMIT_COLUMN) if hides_commit_column(metadata) else rows


def _readable_runs(metadata: Metadata, appended: Sequence[VersionAppends]) -> list[list[VersionAppends]]:
    """Group versions into runs that one read covers: versions between which no rows change.

    Iceberg lists no changes if there are delete files, so such versions are read alone.

    Raises:
        SourceError: such a version was no append, so Iceberg does not list the rows that it added.
    """
    runs: list[list[VersionAppends]] = [[]]
    for version in appended:
        if version.changes is not None or _deletes(_commit(metadata, version)):
            runs.append([])
        elif version.files and not version.holds_all_files and _has_delete_files(metadata, version):
            not_appended = [
                part
                for part in _snapshots_of(metadata, version)
                if part.operation not in ("append", "replace")
            ]
            if not_appended:
                raise SourceError(
                    f"table {metadata.table_location}: expected snapshot {not_appended[0].id}, which "
                    f"follows delete files, to be an append, found {not_appended[0].operation}: Iceberg "
                    "does not list its rows. Rewrite the deletes (rewrite_data_files with "
                    "delete-file-threshold 1), then run `state reset --replace`",
                    code="source_changed",
                )
            runs += [[version], []]
        elif version.files and not version.holds_all_files:
            runs[-1].append(version)
    return [run for run in runs if run]


def _deletes(commit: IcebergCommit) -> bool:
    return bool(commit.strandline_metadata.get("deletes"))


def _has_delete_files(metadata: Metadata, version: VersionAppends) -> bool:
    return bool(_commit(metadata, version).snapshot.count("total-delete-files"))


def _snapshots_above(metadata: Metadata, position: ReadPosition | None) -> Iterator[Snapshot]:
    """Yield the visible snapshots after a position, newest first.

    Raises:
        NeedsDecision: they do not follow the snapshot that was read last, or some were expired.
    """
    oldest: Snapshot | None = None
    for snapshot in metadata.lineage():
        if position is not None and str(snapshot.id) == position.id:
            return
        oldest = snapshot
        yield snapshot
    if position is None or (oldest is not None and str(oldest.parent) == position.id):
        return
    rolled_back = oldest is None or oldest.parent is None or oldest.sequence <= position.version
    if rolled_back or int(position.id or 0) in metadata.snapshots:
        raise NeedsDecision(
            f"table {metadata.table_location}: expected snapshots that follow snapshot {position.id}, the last one read; found others: the table was"
            " rolled back or recreated, and has grown since",
            code="source_replaced",
        )
    raise NeedsDecision(
        f"table {metadata.table_location}: expected its snapshots from {position.id} on, found those from {oldest and oldest.id} on: the ones between"
        " were expired before they were read",
        code="versions_gone",
    )


def _version_appends(commit: IcebergCommit) -> VersionAppends:
    """Return the appends of a commit.

    A commit that removes its own files, such as a fence, appends nothing.
    """
    snapshot = commit.snapshot
    id_, parts = str(snapshot.id), [part for part in (*commit.parts, snapshot) if part.operation != "replace"]
    if commit.is_fence or _deletes(commit):  # what a delete adds are copies of rows that stay
        return VersionAppends(snapshot.sequence, 0, 0, id_)
    changes = None
    if any(map(changes_rows, parts)):
        changes = f"snapshot {id_} ({snapshot.operation}) removes or changes rows"
    files = sum(part.count("added-data-files") for part in parts)
    return VersionAppends(
        snapshot.sequence, files, sum(part.count("added-files-size") for part in parts), id_, changes
    )


def _all_files_of(snapshot: Snapshot) -> VersionAppends:
    """Return all files of the oldest remaining snapshot as appends."""
    files, size = snapshot.count("total-data-files"), snapshot.count("total-files-size")
    return VersionAppends(snapshot.sequence, files, size, str(snapshot.id), holds_all_files=True)


def _commit(metadata: Metadata, version: VersionAppends) -> IcebergCommit:
    return next(
        commit for commit in group_commits(metadata.lineage()) if str(commit.snapshot.id) == version.id
    )


def _parent_of(metadata: Metadata, version: VersionAppends) -> int | None:
    """Return the id of the snapshot before a commit; None if it is the first."""
    return _commit(metadata, version).follows


def _snapshots_of(metadata: Metadata, version: VersionAppends) -> tuple[Snapshot, ...]:
    commit = _commit(metadata, version)
    return (*commit.parts, commit.snapshot)
