"""What each snapshot of an Iceberg table appends, from its metadata; and the rows (docs/reference/streams.md).

What readers see at once is one chunk: a commit that was made on a branch is all of its snapshots. Compaction, and a fence, append nothing.
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
from resources.tables.iceberg.commit import Commit, changes_rows, commits_of
from resources.tables.iceberg.contents import readable
from resources.tables.iceberg.metadata import Metadata, Snapshot
from resources.tables.iceberg.rows import hides_commit_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CHANGE, _ORDINAL, _SNAPSHOT = "_change_type", "_change_ordinal", "_commit_snapshot_id"
"""Columns of Iceberg's table of changes."""


@dataclass(frozen=True)
class IcebergAppends(TableAppends):
    """The appends of one Iceberg table.

    Attributes:
        place: of the table.
        catalog: of the table.
    """

    place: Place
    catalog: Catalog

    def since(self, mark: ReadPosition | None, until: int | None = None) -> AppendedVersions:
        """Return what the snapshots that follow each other append. A version's number is the snapshot's."""
        metadata = readable(self.place, self.catalog)
        if metadata.format_version < 2:
            raise SourceError(
                f"table {metadata.table_location}: expected an Iceberg table of format version 2 or above, whose snapshots are numbered; found"
                " format version 1. Raise it: ALTER TABLE … SET TBLPROPERTIES ('format-version' = '2')",
                code="format_version",
            )
        commits = commits_of(_above(metadata, mark))
        appended = [_appended(commit) for commit in commits]
        if appended and mark is None and commits[0].follows is not None:
            appended[0] = _whole(commits[0].snapshot)
        appended = [version for version in appended if until is None or version.version <= until]
        newest = metadata.current.sequence if metadata.current else 0
        return AppendedVersions(str(metadata.raw.get("table-uuid")), newest, tuple(appended))

    def version_of(self, mark: ReadPosition) -> Version:
        """Return the snapshot's number and id."""
        return f"{mark.version}-{mark.id}"

    def position_of(self, version: Version) -> ReadPosition:
        """Return the snapshot's number and id."""
        number, _, snapshot = str(version).partition("-")
        return ReadPosition(int(number), snapshot)

    def rows(self, spark: SparkSession, appended: Sequence[VersionAppends]) -> DataFrame:
        """Return the rows of these versions, without Strandline's column.

        Iceberg's table of changes reads the files that each snapshot has added, and says which snapshot that was.
        """
        from pyspark.sql import functions as F

        metadata = readable(self.place, self.catalog)
        name, frames = self.catalog.name(spark), list["DataFrame"]()
        for whole in (version for version in appended if version.holds_all_files and version.files):
            rows = spark.read.option("versionAsOf", whole.id).table(name)
            frames.append(rows.withColumn(VERSION, F.lit(whole.version).cast("long")))
        for run in _runs(metadata, appended):
            reader = spark.read.option("end-snapshot-id", run[-1].id)
            before = _before(metadata, run[0])
            reader = reader if before is None else reader.option("start-snapshot-id", str(before))
            if _has_delete_files(metadata, run[0]):
                frames.append(reader.table(name).withColumn(VERSION, F.lit(run[0].version).cast("long")))
                continue
            # Iceberg gives values of other columns if Spark reads some of these three and not all, and fails if it asks for rows by their values: so
            # all of them are in one expression, which is never NULL.
            added = F.when((F.col(_CHANGE) == "INSERT") & (F.col(_ORDINAL) >= 0), F.col(_SNAPSHOT))
            snapshot = F.coalesce(added, F.lit(0).cast("long"))
            changes = reader.table(f"{name}.changes").withColumn(_SNAPSHOT, snapshot)
            part_versions = [
                (part.id, version.version) for version in run for part in _parts(metadata, version)
            ]
            versions = F.broadcast(spark.createDataFrame(part_versions, f"{_SNAPSHOT} long, {VERSION} long"))
            frames.append(changes.join(versions, _SNAPSHOT).drop(_CHANGE, _ORDINAL, _SNAPSHOT))
        if not frames:
            frames.append(spark.read.table(name).limit(0).withColumn(VERSION, F.lit(0).cast("long")))
        rows = reduce(lambda above, below: above.unionByName(below, allowMissingColumns=True), frames)
        return rows.drop(COMMIT_COLUMN) if hides_commit_column(metadata) else rows


def _runs(metadata: Metadata, appended: Sequence[VersionAppends]) -> list[list[VersionAppends]]:
    """What is read at once: versions between which none changes rows. Beside files of deletes Iceberg tells no changes: such versions are read alone.

    Raises:
        SourceError: such a version was not made by an append, so that Iceberg does not tell what it has added.
    """
    runs: list[list[VersionAppends]] = [[]]
    for each in appended:
        if each.changes is not None:
            runs.append([])
        elif each.files and not each.holds_all_files and _has_delete_files(metadata, each):
            odd = [part for part in _parts(metadata, each) if part.operation not in ("append", "replace")]
            if odd:
                raise SourceError(
                    f"table {metadata.table_location}: expected snapshot {odd[0].id}, which comes after deletes that are files of their own, to be an"
                    f" append, found {odd[0].operation}: Iceberg does not tell its rows. Rewrite the deletes (rewrite_data_files with delete-file-threshold 1),"
                    " then reset the state with --replace",
                    code="source_changed",
                )
            runs += [[each], []]
        elif each.files and not each.holds_all_files:
            runs[-1].append(each)
    return [run for run in runs if run]


def _has_delete_files(metadata: Metadata, appended: VersionAppends) -> bool:
    return bool(_commit(metadata, appended).snapshot.count("total-delete-files"))


def _above(metadata: Metadata, since: ReadPosition | None) -> Iterator[Snapshot]:
    """Yield the snapshots above a mark, newest first.

    Raises:
        NeedsDecision: what readers see was not made of the snapshot that was read last, or the ones between are not told.
    """
    oldest: Snapshot | None = None
    for snapshot in metadata.lineage():
        if since is not None and str(snapshot.id) == since.id:
            return
        oldest = snapshot
        yield snapshot
    if since is None or (oldest is not None and str(oldest.parent) == since.id):
        return
    rolled_back = oldest is None or oldest.parent is None or oldest.sequence <= since.version
    if rolled_back or int(since.id or 0) in metadata.snapshots:
        raise NeedsDecision(
            f"table {metadata.table_location}: expected snapshots that follow snapshot {since.id}, up to which it was read; found others: it was"
            " rolled back or made anew, and has grown since",
            code="source_replaced",
        )
    raise NeedsDecision(
        f"table {metadata.table_location}: expected its snapshots from {since.id} on, found them from {oldest and oldest.id} on: the ones between"
        " were expired before they were read",
        code="versions_gone",
    )


def _appended(commit: Commit) -> VersionAppends:
    """What a commit adds. One that takes away what it has added itself, such as a fence, adds nothing."""
    snapshot = commit.snapshot
    id_, parts = str(snapshot.id), [part for part in (*commit.parts, snapshot) if part.operation != "replace"]
    if commit.fences:
        return VersionAppends(snapshot.sequence, 0, 0, id_)
    changes = None
    if any(map(changes_rows, parts)):
        changes = f"snapshot {id_} ({snapshot.operation}) removes or changes rows"
    files = sum(part.count("added-data-files") for part in parts)
    return VersionAppends(
        snapshot.sequence, files, sum(part.count("added-files-size") for part in parts), id_, changes
    )


def _whole(snapshot: Snapshot) -> VersionAppends:
    """All files of a snapshot, the oldest that the table still has."""
    files, size = snapshot.count("total-data-files"), snapshot.count("total-files-size")
    return VersionAppends(snapshot.sequence, files, size, str(snapshot.id), holds_all_files=True)


def _commit(metadata: Metadata, appended: VersionAppends) -> Commit:
    return next(commit for commit in commits_of(metadata.lineage()) if str(commit.snapshot.id) == appended.id)


def _before(metadata: Metadata, appended: VersionAppends) -> int | None:
    """The snapshot before a commit; None: it is the first."""
    return _commit(metadata, appended).follows


def _parts(metadata: Metadata, appended: VersionAppends) -> tuple[Snapshot, ...]:
    commit = _commit(metadata, appended)
    return (*commit.parts, commit.snapshot)
