"""The commits of a Delta table, from its log, and their rows (docs/reference/streams.md)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from partitions.errors import NeedsDecision, SourceError, TargetError
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
from resources.tables.delta.changed_files import DeltaFileRead, changed_files, columns_at, read_rows
from resources.tables.delta.changed_values import described_files
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.log_state import read_state
from resources.tables.delta.logged_commit import FILE_ACTIONS, logged_commit, row_count, whole_table
from resources.tables.delta.rows import missing_table_error
from resources.tables.rows.net_rows import SIGN, net_rows, with_known_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class DeltaCommits(TableCommits):
    """The commits of one Delta table.

    Attributes:
        log: log of the table.
    """

    names_snapshots: ClassVar[bool] = False

    log: DeltaLog

    def newest(self) -> tuple[str, ReadPosition]:
        """Return the id of the table and the position after its newest commit."""
        try:
            version = self.log.newest_version()
            if version is None:
                raise missing_table_error(self.log.place)
            table = read_state(self.log, version).table_id
            return table, ReadPosition(version, self.log.read(version).id)
        except TargetError as error:
            raise SourceError(error.message) from error

    def since(
        self,
        position: ReadPosition | None,
        until: ReadPosition | None = None,
        *,
        table: str | None = None,
    ) -> LoggedCommits:
        """Return each commit in a range. Starts no Spark."""
        try:
            return self._since(position, until, table)
        except TargetError as error:
            raise SourceError(error.message) from error

    def _since(
        self, position: ReadPosition | None, until: ReadPosition | None, table: str | None
    ) -> LoggedCommits:
        log = self.log
        read_version = position.version if position is not None else None
        # start at the version that was read last, to check that it is still the same
        versions = log.versions(None if read_version is None else read_version - 1) or log.versions(None)
        if not versions:
            raise missing_table_error(log.place)
        newest = versions[-1]
        if read_version is not None and newest < read_version:
            return LoggedCommits(read_state(log, newest).table_id, newest, ())
        known_id = None
        if position is not None and versions[0] == read_version:
            _check_position(log, position, "source_replaced")
            # A commit of this identity belongs to the table that was read: its metadata need not be read.
            known_id = table if position.id else None
        if until is not None and versions[0] <= until.version <= newest:
            _check_position(log, until, "versions_gone")
        versions = [
            version
            for version in versions
            if version != read_version and (until is None or version <= until.version)
        ]
        if versions and read_version is not None and versions[0] > read_version + 1:
            raise NeedsDecision(
                f"table {log.place}: expected a log that starts at version {read_version + 1} or before, found one that starts at version {versions[0]}: the versions between were"
                " cleaned before they were read",
                code="versions_gone",
            )
        read = [log.read_with(version, *FILE_ACTIONS) for version in versions]
        commits = [logged_commit(commit, list(actions)) for commit, actions in read]
        if commits and read_version is None and versions[0] > 0:
            files = read_state(log, versions[0], with_files=True).files
            commits[0] = whole_table(read[0][0], files)
        table_id = next((commit.table_id for commit, _ in reversed(read) if commit.table_id), known_id)
        return LoggedCommits(table_id or read_state(log, newest).table_id, newest, tuple(commits))

    def _commit(self, version: int) -> LoggedCommit:
        commit, actions = self.log.read_with(version, *FILE_ACTIONS)
        return logged_commit(commit, list(actions))

    def version_of(self, position: ReadPosition) -> Version:
        """Return the version number of a position."""
        return position.version

    def position_of(self, version: Version) -> ReadPosition:
        """Return the position after a version, without an id."""
        return ReadPosition(int(version))

    def time_of(self, position: ReadPosition) -> datetime | None:
        """Return when a commit was made."""
        if self.log.versions(position.version - 1)[:1] != [position.version]:
            return None
        return self._commit(position.version).time

    def check_files(self, commits: Sequence[LoggedCommit]) -> None:
        """Check that the files of commits still exist."""
        reads = changed_files(self.log, commits, inserts_only=False)
        check_files_exist(self.log.place, {(read.version, str(read.file["path"])) for read in reads})

    def changed_files(self, commits: Sequence[LoggedCommit]) -> Sequence[ChangedFile]:
        """Return the files that hold the rows which commits add and remove, or those of their feeds."""
        return described_files(self.log, commits)

    def appended_rows(
        self, spark: SparkSession, commits: Sequence[LoggedCommit], scratch: ScratchFolder
    ) -> DataFrame:
        """Return the rows that commits insert, from their files if Spark can read these without Delta."""
        rows = self._changes(spark, commits, scratch, inserts_only=True)
        return with_columns_as(rows.drop(CHANGE), rows, CHANGE)

    def net_changes(
        self, spark: SparkSession, commits: Sequence[LoggedCommit], scratch: ScratchFolder
    ) -> DataFrame:
        """Return the rows that each commit inserts and deletes.

        They are the difference of the rows of removed and of added files, with the deletion vectors of
        before and after. If a commit wrote a change data feed, they are the difference of its rows.
        """
        return self._changes(spark, commits, scratch, inserts_only=False)

    def _changes(
        self,
        spark: SparkSession,
        commits: Sequence[LoggedCommit],
        scratch: ScratchFolder,
        *,
        inserts_only: bool,
    ) -> DataFrame:
        from pyspark.sql import functions as F

        log, newest = self.log, commits[-1].version if commits else self.log.newest_version()
        if newest is None:
            raise missing_table_error(log.place)
        columns, reads = columns_at(log, newest), changed_files(log, commits, inserts_only=inserts_only)
        rewriting = {commit.version for commit in commits if commit.kind == "rewrites"}
        appended = [read for read in reads if read.version not in rewriting]
        changed = [read for read in reads if read.version in rewriting]
        rows = read_rows(log, spark, appended, columns, scratch).drop(SIGN).withColumn(CHANGE, F.lit(INSERT))
        if not changed:
            return with_known_columns(rows, columns, VERSION, CHANGE)
        net = net_rows(read_rows(log, spark, changed, columns, scratch))
        return with_known_columns(rows.unionByName(net), columns, VERSION, CHANGE) if appended else net

    def snapshot_files(self, position: ReadPosition) -> tuple[SnapshotFile, ...]:
        """Return the data files of a version, sorted by path."""
        files = (
            SnapshotFile(str(add["path"]), int(add.get("size") or 0), row_count(add))
            for add in read_state(self.log, position.version, with_files=True).files
        )
        return tuple(sorted(files))

    def read_files(
        self,
        spark: SparkSession,
        position: ReadPosition,
        files: Collection[str],
        scratch: ScratchFolder,
    ) -> DataFrame:
        """Return exactly the rows that some files hold in a version."""
        state, paths = read_state(self.log, position.version, with_files=True), set(files)
        reads = [
            DeltaFileRead(position.version, 1, add, state) for add in state.files if add["path"] in paths
        ]
        check_same_files(self.log.place, {str(read.file["path"]) for read in reads}, paths)
        columns = columns_at(self.log, position.version)
        rows = read_rows(self.log, spark, reads, columns, scratch).drop(SIGN, VERSION)
        return with_known_columns(rows, columns)


def _check_position(log: DeltaLog, position: ReadPosition, code: str) -> None:
    commit_id = log.read(position.version).id
    if position.id not in (None, commit_id):
        raise NeedsDecision(
            f"table {log.place}: expected version {position.version} as it was read or planned, commit {position.id}; found commit {commit_id}: the table was"
            " recreated, or an older copy replaced it and has grown since",
            code=code,
        )
