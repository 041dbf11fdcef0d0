"""The commits of a Parquet table, from its lists, and their rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, ClassVar

from partitions.errors import NeedsDecision, SourceError, TargetError
from resources.tables.contract.changed_file import ChangedFile
from resources.tables.contract.commit_log import (
    CHANGE,
    INSERT,
    VERSION,
    CommitKind,
    LoggedCommit,
    LoggedCommits,
    ReadPosition,
    SnapshotFile,
    TableCommits,
)
from resources.tables.contract.commits import Version
from resources.tables.contract.descriptions import (
    ADDS_ROWS,
    CHANGES_NOTHING,
    CHANGES_ROWS,
    describe_commit,
)
from resources.tables.contract.scratch import ScratchFolder
from resources.tables.data_files.existing import check_same_files, missing_files_error
from resources.tables.parquet.changed_values import described_files
from resources.tables.parquet.columns import spark_schema
from resources.tables.parquet.commit_list import CommitList, TableSnapshot
from resources.tables.parquet.contents import ParquetContents, read_paths
from resources.tables.rows.net_rows import SIGN, net_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class ParquetCommits(TableCommits):
    """The commits of one Parquet table. Only Strandline writes its lists, so their counts are right.

    Attributes:
        contents: contents of the table.
    """

    names_snapshots: ClassVar[bool] = False

    contents: ParquetContents

    def newest(self) -> tuple[str, ReadPosition]:
        """Return the id of the table and the position after its newest commit."""
        newest = self.contents.log.read(int(self.contents.newest_version()))
        return newest.table, ReadPosition(newest.version, newest.owner)

    def time_of(self, position: ReadPosition) -> datetime | None:
        """Return when a commit was made."""
        if self.contents.log.versions(position.version - 1)[:1] != [position.version]:
            return None
        return datetime.fromisoformat(self.contents.log.read(position.version).time)

    def since(
        self,
        position: ReadPosition | None,
        until: ReadPosition | None = None,
        *,
        table: str | None = None,  # noqa: ARG002 - the metadata that is read has it
    ) -> LoggedCommits:
        """Return each commit in a range. Starts no Spark."""
        try:
            return self._since(position, until)
        except TargetError as error:
            raise SourceError(error.message) from error

    def _since(self, position: ReadPosition | None, until: ReadPosition | None) -> LoggedCommits:
        log, newest = self.contents.log, int(self.contents.newest_version())
        table, read_version = log.read(newest).table, position.version if position is not None else 0
        if position is not None and newest < read_version:
            return LoggedCommits(table, newest, ())
        last = newest if until is None else until.version
        versions = [version for version in log.versions(max(0, read_version - 1)) if version <= last]
        lists = log.read_all(versions)
        if position is not None and lists and lists[0].version == read_version:
            self._check(lists.pop(0), position, "source_replaced")
        if until is not None and lists and lists[-1].version == until.version:
            self._check(lists[-1], until, "versions_gone")
        if position is not None and lists and lists[0].version > read_version + 1:
            raise NeedsDecision(
                f"table {log.place}: expected lists that start at version {read_version + 1} or before, found "
                f"that they start at version {lists[0].version}: those between were removed before they were read",
                code="versions_gone",
            )
        commits = [_logged_commit(list_) for list_ in lists]
        if position is None and lists and lists[0].follows is not None:
            commits[0] = _whole_table(lists[0], self._snapshot(lists[0].version))
        return LoggedCommits(table, newest, tuple(commits))

    def version_of(self, position: ReadPosition) -> Version:
        """Return the version number of a position."""
        return position.version

    def position_of(self, version: Version) -> ReadPosition:
        """Return the position after a version, without an id."""
        return ReadPosition(int(version))

    def check_files(self, commits: Sequence[LoggedCommit]) -> None:
        """Check that the files of commits still exist."""
        for version, _, paths in self._reads(commits, inserts_only=False):
            listed = self._snapshot_with(version, paths)
            for path, (folder, path_in_folder) in self.contents.locate_files(listed).items():
                if path in paths and not self.contents.placement.files.exists(f"{folder}/{path_in_folder}"):
                    raise missing_files_error(self.contents.log.place, version, [path])

    def changed_files(self, commits: Sequence[LoggedCommit]) -> Sequence[ChangedFile]:
        """Return the files that hold the rows which commits add and remove, wherever they lie now."""
        return [
            file
            for version, sign, paths in self._reads(commits, inserts_only=False)
            for file in described_files(
                self.contents, self._snapshot_with(version, paths), version, sign, paths
            )
        ]

    def appended_rows(
        self,
        spark: SparkSession,
        commits: Sequence[LoggedCommit],
        scratch: ScratchFolder,  # noqa: ARG002 - no read needs one
    ) -> DataFrame:
        """Return the rows that commits insert."""
        return self._changes(spark, commits, inserts_only=True).drop(CHANGE)

    def net_changes(
        self,
        spark: SparkSession,
        commits: Sequence[LoggedCommit],
        scratch: ScratchFolder,  # noqa: ARG002 - no read needs one
    ) -> DataFrame:
        """Return the rows that each commit inserts and deletes: the difference of its files' rows."""
        return self._changes(spark, commits, inserts_only=False)

    def snapshot_files(self, position: ReadPosition) -> tuple[SnapshotFile, ...]:
        """Return the data files of a version, sorted by path."""
        files = self._snapshot(position.version).files.values()
        return tuple(sorted(SnapshotFile(file.path, file.size, file.rows) for file in files))

    def read_files(
        self,
        spark: SparkSession,
        position: ReadPosition,
        files: Collection[str],
        scratch: ScratchFolder,  # noqa: ARG002 - as above
    ) -> DataFrame:
        """Return exactly the rows that some files hold in a version."""
        snapshot = self._snapshot(position.version)
        check_same_files(self.contents.log.place, snapshot.files, files)
        return read_paths(self.contents, spark, snapshot, files, snapshot.columns_json)

    def _changes(
        self, spark: SparkSession, commits: Sequence[LoggedCommit], *, inserts_only: bool
    ) -> DataFrame:
        from pyspark.sql import functions as F

        newest = commits[-1].version if commits else int(self.contents.newest_version())
        columns = self._snapshot(newest).columns_json
        rewriting = {commit.version for commit in commits if commit.kind == "rewrites"}
        sides: dict[bool, list[DataFrame]] = {True: [], False: []}
        for version, sign, paths in self._reads(commits, inserts_only=inserts_only):
            listed = self._snapshot_with(version, paths)
            rows = read_paths(self.contents, spark, listed, paths, columns)
            tags = {VERSION: F.lit(version).cast("long"), SIGN: F.lit(sign)}
            sides[version in rewriting].append(rows.withColumns(tags))
        changed, appended = (_union(sides[is_changed]) for is_changed in (True, False))
        frames = [] if appended is None else [appended.drop(SIGN).withColumn(CHANGE, F.lit(INSERT))]
        if changed is not None:
            frames.append(net_rows(changed))
        if frames:
            return reduce(lambda above, below: above.unionByName(below), frames)
        no_rows = spark.createDataFrame([], spark_schema(columns))
        return no_rows.withColumns({VERSION: F.lit(0).cast("long"), CHANGE: F.lit(INSERT)})

    def _reads(
        self, commits: Sequence[LoggedCommit], *, inserts_only: bool
    ) -> list[tuple[int, int, frozenset[str]]]:
        """Return version, sign and paths of the files whose rows come or go."""
        reads = []
        for commit in commits:
            if not commit.files or (inserts_only and commit.changes):
                continue
            if commit.holds_all_files:
                reads.append((commit.version, 1, frozenset(self._snapshot(commit.version).files)))
                continue
            list_ = self.contents.log.read(commit.version)
            removed = frozenset(list_.set_aside)
            if commit.kind == "rewrites" and list_.follows is not None:
                reads.append((commit.version, -1, removed & set(self._snapshot(list_.follows).files)))
            reads.append((commit.version, 1, frozenset(file.path for file in list_.added)))
        return [read for read in reads if read[2]]

    def _snapshot_with(self, version: int, paths: Collection[str]) -> TableSnapshot:
        """Return the state after or before a version, which lists files that it adds or removes."""
        snapshot = self._snapshot(version)
        if set(paths) <= set(snapshot.files):
            return snapshot
        return self._snapshot(int(self.contents.log.read(version).follows or 0))

    def _snapshot(self, version: int) -> TableSnapshot:
        try:
            return self.contents.snapshot(version)
        except SourceError as error:
            raise NeedsDecision(error.message, code="versions_gone") from error

    def _check(self, list_: CommitList, position: ReadPosition, code: str) -> None:
        if position.id not in (None, list_.owner):
            raise NeedsDecision(
                f"table {self.contents.log.place}: expected version {position.version} as it was read or planned, commit "
                f"{position.id}; found commit {list_.owner}: the table was recreated, or an older copy replaced it and "
                "has grown since",
                code=code,
            )


def _union(frames: Sequence[DataFrame]) -> DataFrame | None:
    return reduce(lambda above, below: above.unionByName(below), frames) if frames else None


def _logged_commit(list_: CommitList) -> LoggedCommit:
    kind: CommitKind = "appends" if list_.added else "nothing"
    removes = list_.removed is None or list_.removed > 0
    if list_.gives_up or (not removes and not list_.rows):
        kind = "nothing"
    elif removes or list_.copied:
        kind = "rewrites"
    is_empty = kind == "nothing"
    counts = {} if is_empty else {"adds": list_.rows, "deletes": list_.removed}
    otherwise = {"nothing": CHANGES_NOTHING, "appends": ADDS_ROWS, "rewrites": CHANGES_ROWS}[kind]
    files = len(list_.added) + (len(list_.set_aside) if kind == "rewrites" else 0)
    return LoggedCommit(
        list_.version,
        kind,
        0 if is_empty else files,
        0 if is_empty else list_.written_bytes,
        list_.owner,
        describe_commit(f"version {list_.version}", "", "Strandline", counts, otherwise),
        datetime.fromisoformat(list_.time),
        0 if is_empty else list_.rows,
        only_inserts=not removes,
        deletes_for_good=list_.deletes,
    )


def _whole_table(list_: CommitList, snapshot: TableSnapshot) -> LoggedCommit:
    """Return all files of the oldest version as files that it adds."""
    files = snapshot.files.values()
    rows = sum(file.rows for file in files)
    return LoggedCommit(
        list_.version,
        "appends" if files else "nothing",
        len(files),
        sum(file.size for file in files),
        list_.owner,
        describe_commit(f"version {list_.version}", "", "Strandline", {"adds": rows}, CHANGES_NOTHING),
        datetime.fromisoformat(list_.time),
        rows,
        only_inserts=True,
        holds_all_files=True,
    )
