"""The commits of an Iceberg table, from its metadata, and their rows (docs/reference/streams.md).

All snapshots that become visible at once count as one version, such as a commit that was made on a branch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, islice
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from partitions.errors import NeedsDecision, SourceError
from resources.connections.places import Place
from resources.spark.frames import with_columns_as
from resources.tables.contract.changed_file import ChangedFile
from resources.tables.contract.commit_log import (
    CHANGE,
    INSERT,
    VERSION,
    LoggedCommit,
    LoggedCommits,
    ReadPosition,
    SnapshotFile,
    TableCommits,
)
from resources.tables.contract.commits import Version
from resources.tables.contract.scratch import ScratchFolder
from resources.tables.data_files.existing import check_files_exist, check_same_files
from resources.tables.iceberg.catalog import Catalog, key_below
from resources.tables.iceberg.changed_files import (
    IcebergFileRead,
    changed_files,
    columns_of,
    live_rows,
    read_rows,
)
from resources.tables.iceberg.changed_values import described_files
from resources.tables.iceberg.commit import IcebergCommit, group_commits
from resources.tables.iceberg.commit_column import hidden_columns
from resources.tables.iceberg.contents import open_source_metadata
from resources.tables.iceberg.file_sets import FileSets
from resources.tables.iceberg.logged_commit import (
    commit_time,
    counted_commit,
    logged_commit,
    rollback,
    tells_counts,
    unknown_commit,
    whole_table,
)
from resources.tables.iceberg.metadata import Metadata, Snapshot
from resources.tables.rows.net_rows import SIGN, net_rows, with_known_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_EMPTY = ReadPosition(0, "-1")
"""The position of a table that has no snapshot yet."""


@dataclass(frozen=True)
class IcebergCommits(TableCommits):
    """The commits of one Iceberg table.

    Attributes:
        place: place of the table.
        catalog: catalog of the table.
    """

    names_snapshots: ClassVar[bool] = True

    place: Place
    catalog: Catalog

    def since(
        self,
        position: ReadPosition | None,
        until: ReadPosition | None = None,
        *,
        table: str | None = None,  # noqa: ARG002 - the metadata that is read has it
    ) -> LoggedCommits:
        """Return the commits in a range. A version's number is its snapshot's sequence number.

        Raises:
            SourceError: code ``format_version``: snapshots of a table of format version 1 have no numbers; or
                as the contract says.
        """
        metadata = self._metadata()
        newest = int(metadata.raw.get("last-sequence-number") or 0)
        if position is not None and not (position.id or "").isdigit():
            position = None  # the table had no snapshot yet
        if position is not None and newest < position.version:
            return LoggedCommits(metadata.uuid, newest, ())
        grouped = group_commits(_snapshots_above(metadata, position, until))
        is_whole = position is None and bool(grouped) and grouped[0].follows is not None
        whole, sets = int(is_whole), FileSets(metadata)
        commits = [whole_table(commit) for commit in grouped[:whole]]
        commits += [_logged_commit(sets, commit) for commit in grouped[whole:]]
        if (
            position is not None
            and (origin := _rolled_back_to(metadata, position, grouped, until)) is not None
        ):
            commits.insert(0, rollback(position, origin))
        return LoggedCommits(metadata.uuid, newest, _numbered(position, commits))

    def newest(self) -> tuple[str, ReadPosition]:
        """Return the id of the table and the position after its newest snapshot, or before its first one."""
        metadata = self._metadata()
        current = metadata.current
        position = _EMPTY if current is None else ReadPosition(current.sequence, str(current.id))
        return metadata.uuid, position

    def _metadata(self) -> Metadata:
        """Return the table's metadata; raise SourceError, code ``format_version``, for format version 1."""
        metadata = open_source_metadata(self.place, self.catalog)
        if metadata.format_version < 2:
            raise SourceError(
                f"table {metadata.table_location}: expected an Iceberg table of format version 2 or above, whose snapshots have numbers; found"
                " format version 1. Raise it: ALTER TABLE … SET TBLPROPERTIES ('format-version' = '2')",
                code="format_version",
            )
        return metadata

    def version_of(self, position: ReadPosition) -> Version:
        """Return the version id: sequence number and snapshot id."""
        return f"{position.version}-{position.id}"

    def position_of(self, version: Version) -> ReadPosition:
        """Return the position: sequence number and snapshot id."""
        number, _, snapshot = str(version).partition("-")
        return ReadPosition(int(number), snapshot)

    def time_of(self, position: ReadPosition) -> datetime | None:
        """Return when a snapshot was made."""
        snapshot = self._metadata().snapshots.get(int(position.id or 0))
        return None if snapshot is None else commit_time(snapshot)

    def check_files(self, commits: Sequence[LoggedCommit]) -> None:
        """Check that the files of commits still exist."""
        metadata = open_source_metadata(self.place, self.catalog)
        reads = changed_files(FileSets(metadata), commits, inserts_only=False)
        keys = {(read.version, key_below(self.place, read.file.path)) for read in reads}
        check_files_exist(self.place, {(version, quote(key)) for version, key in keys if key is not None})

    def changed_files(self, commits: Sequence[LoggedCommit]) -> Sequence[ChangedFile]:
        """Return the files that hold the rows which commits add and remove, with the deletes that apply."""
        sets = FileSets(open_source_metadata(self.place, self.catalog))
        return described_files(self.place, sets, commits)

    def appended_rows(
        self, spark: SparkSession, commits: Sequence[LoggedCommit], scratch: ScratchFolder
    ) -> DataFrame:
        """Return the rows that commits insert, without Strandline's column."""
        rows = self._changes(spark, commits, scratch, inserts_only=True)
        return with_columns_as(rows.drop(CHANGE), rows, CHANGE)

    def net_changes(
        self, spark: SparkSession, commits: Sequence[LoggedCommit], scratch: ScratchFolder
    ) -> DataFrame:
        """Return the rows that each commit inserts and deletes, without Strandline's column.

        They are the difference of the rows of files that only the snapshot before, or only the one after
        has, with the deletes of each. Iceberg's ``create_changelog_view`` is not used: its scan refuses
        tables with delete files, and it trusts the snapshot ids of manifest entries.
        """
        return self._changes(spark, commits, scratch, inserts_only=False)

    def snapshot_files(self, position: ReadPosition) -> tuple[SnapshotFile, ...]:
        """Return the data files of a snapshot, sorted by path. Equality deletes make rows unknown."""
        if position == _EMPTY:
            return ()
        sets = FileSets(open_source_metadata(self.place, self.catalog))
        return tuple(
            sorted(
                SnapshotFile(file.path, int(file.file["file_size_in_bytes"]), live_rows(file))
                for file in sets.files(int(position.id or 0))
            )
        )

    def read_files(
        self,
        spark: SparkSession,
        position: ReadPosition,
        files: Collection[str],
        scratch: ScratchFolder,
    ) -> DataFrame:
        """Return exactly the rows that some files hold in a snapshot, without Strandline's column."""
        metadata, snapshot = open_source_metadata(self.place, self.catalog), int(position.id or 0)
        sets, paths = FileSets(metadata), set(files)
        reads = [
            IcebergFileRead(position.version, 1, file) for file in sets.files(snapshot) if file.path in paths
        ]
        check_same_files(self.place, {read.file.path for read in reads}, paths)
        hidden = hidden_columns(metadata)
        rows = read_rows(spark, self.place, sets, snapshot, reads, scratch).drop(SIGN, VERSION, *hidden)
        return with_known_columns(rows, columns_of(metadata, snapshot, hidden))

    def _changes(
        self,
        spark: SparkSession,
        commits: Sequence[LoggedCommit],
        scratch: ScratchFolder,
        *,
        inserts_only: bool,
    ) -> DataFrame:
        from pyspark.sql import functions as F

        metadata = open_source_metadata(self.place, self.catalog)
        sets = FileSets(metadata)
        newest = int(commits[-1].id) if commits else metadata.current.id if metadata.current else 0
        reads = changed_files(sets, commits, inserts_only=inserts_only)
        rewriting = {commit.version for commit in commits if commit.kind == "rewrites"}
        rewriting |= {read.version for read in reads if read.sign < 0}
        hidden = hidden_columns(metadata)
        appended = [read for read in reads if read.version not in rewriting]
        changed = [read for read in reads if read.version in rewriting]
        rows = read_rows(spark, self.place, sets, newest, appended, scratch).drop(SIGN, *hidden)
        rows, columns = rows.withColumn(CHANGE, F.lit(INSERT)), columns_of(metadata, newest, hidden)
        if not changed:
            return with_known_columns(rows, columns, VERSION, CHANGE)
        changed_rows = read_rows(spark, self.place, sets, newest, changed, scratch).drop(*hidden)
        net = net_rows(with_known_columns(changed_rows, columns, VERSION, SIGN))
        return with_known_columns(rows.unionByName(net), columns, VERSION, CHANGE) if appended else net


def _logged_commit(sets: FileSets, commit: IcebergCommit) -> LoggedCommit:
    """Return what a commit does to rows: by its summary, or by its files if the summary counts none."""
    if tells_counts(commit):
        return logged_commit(commit)
    if commit.follows is None or commit.follows in sets.metadata.snapshots:
        return counted_commit(commit, *sets.difference(commit.follows, commit.snapshot.id))
    if commit.snapshot.operation == "append" and not commit.parts:
        own = [file for file in sets.files(commit.snapshot.id) if file.sequence == commit.snapshot.sequence]
        return counted_commit(commit, (), own)
    return unknown_commit(commit)


def _numbered(position: ReadPosition | None, commits: Sequence[LoggedCommit]) -> tuple[LoggedCommit, ...]:
    """Return commits with numbers that never fall below the one before.

    A table may be set to a snapshot with a lower number than the one that was read.
    """
    numbers = accumulate(
        (commit.version for commit in commits), max, initial=position.version if position else 0
    )
    return tuple(
        commit._replace(version=number)
        for commit, number in zip(commits, islice(numbers, 1, None), strict=True)
    )


def _snapshots_above(
    metadata: Metadata, position: ReadPosition | None, until: ReadPosition | None
) -> list[Snapshot]:
    """Return the snapshots after a position, newest first; after a rollback those after its target.

    Raises:
        NeedsDecision: they do not follow the snapshot that was read last, or some were expired.
    """
    newest = None if until == _EMPTY else metadata.current
    if until is not None and newest is not None:
        newest = metadata.snapshots.get(int(until.id or 0))
        if newest is None:
            raise _snapshots_gone(metadata, until.id, newest)
    line = list(metadata.lineage(newest)) if newest is not None else []
    if position is None:
        return line
    read_ids = {position.id}
    read = metadata.snapshots.get(int(position.id or 0))
    if read is not None and not any(str(snapshot.id) == position.id for snapshot in line):
        read_ids = {str(snapshot.id) for snapshot in metadata.lineage(read)}  # the table was rolled back
        read_ids |= {str(snapshot.parent) for snapshot in metadata.lineage(read)}
    for index, snapshot in enumerate(line):
        if str(snapshot.id) in read_ids:
            return line[:index]
    oldest = line[-1] if line else None
    if oldest is not None and str(oldest.parent) == position.id:
        return line
    if oldest is None or oldest.parent is None or oldest.sequence <= position.version:
        raise NeedsDecision(
            f"table {metadata.table_location}: expected snapshots that follow snapshot {position.id}, the last one read; found others: the table was"
            " rolled back or recreated, and has grown since",
            code="source_replaced",
        )
    raise _snapshots_gone(metadata, position.id, oldest)


def _rolled_back_to(
    metadata: Metadata,
    position: ReadPosition,
    commits: Sequence[IcebergCommit],
    until: ReadPosition | None,
) -> Snapshot | None:
    """Return the snapshot that the table was rolled back to from a position; None if it was not."""
    if commits:
        origin = metadata.snapshots.get(commits[0].follows or 0)
    else:
        origin = metadata.current if until is None else metadata.snapshots.get(int(until.id or 0))
    return None if origin is None or str(origin.id) == position.id else origin


def _snapshots_gone(metadata: Metadata, id_: str | None, oldest: Snapshot | None) -> NeedsDecision:
    return NeedsDecision(
        f"table {metadata.table_location}: expected its snapshots from {id_} on, found those from {oldest and oldest.id} on: the ones between"
        " were expired before they were read",
        code="versions_gone",
    )
