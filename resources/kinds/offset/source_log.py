"""The log of the table that a dataflow reads: what stands behind a position, and its rows.

See docs/reference/offsets.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import BadPart, ConfigurationError, NeedsDecision
from partitions.log_position import LogPosition
from partitions.offset.changes import CHANGE_COLUMNS, change_treatment
from partitions.offset.commits import Commit, LogTail, SnapshotFiles
from partitions.offset.slices import CommitRange, OffsetSlice, SnapshotRange
from partitions.offset.state import OffsetState
from partitions.predicate import EVERYTHING
from partitions.sources import TableSource
from partitions.sources.table import FromTime, OnChange
from resources.kinds.offset.change_rows import carries_changes, reads_changes, with_change_columns
from resources.kinds.offset.log_errors import begins_with_snapshot, log_error, several_rows_error, start_gone
from resources.kinds.offset.single_rows import has_several_rows
from resources.sources.schema import pinned_struct, strict
from resources.sources.table import TableRows
from resources.spark.frames import read_once
from resources.tables.contract.commit_log import (
    VERSION,
    LoggedCommit,
    LoggedCommits,
    ReadPosition,
    TableCommits,
    log_position,
)
from resources.tables.unreadable import lacks_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class SourceLog:
    """The log of one dataflow's source table.

    Attributes:
        dataflow: the definition.
        rows: the table's rows at a version.
    """

    dataflow: Dataflow
    rows: TableRows
    _logged_ranges: dict[CommitRange, tuple[LoggedCommit, ...]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """The commits of the last slice."""

    @property
    def source(self) -> TableSource:
        """The definition of the source."""
        assert isinstance(self.dataflow.source, TableSource)
        return self.dataflow.source

    @property
    def label(self) -> str:
        """The name of the table, ``<layer>/<name>``."""
        return self.source.label

    @property
    def treatment(self) -> OnChange:
        """What becomes of commits that change or remove rows."""
        return change_treatment(self.source, self.dataflow.target)

    @property
    def begins_with_snapshot(self) -> bool:
        """Whether a dataflow without a state begins with the rows that the table has now."""
        return begins_with_snapshot(self.source)

    @property
    def commits(self) -> TableCommits:
        """The table's commits."""
        return self.rows.commits

    def tail(self, state: OffsetState) -> LogTail:
        """Return what the log has behind a state. Starts no Spark.

        Raises:
            NeedsDecision: code ``versions_gone`` or ``source_replaced``.
            SourceError: the table is missing, or its log cannot be read.
        """
        if state.position is None:
            return self._first_tail()
        with self._explaining(state.position, in_first_read=state.snapshot is not None):
            snapshot = self._rest_of_snapshot(state)
            logged = self.commits.since(ReadPosition.of(state.position), table=state.position.table)
        self._check_same_table(state.position, logged, in_first_read=state.snapshot is not None)
        newest = _newest_of(self.commits, logged) or state.position
        return LogTail(newest, None, self._commits_of(logged), snapshot)

    def _first_tail(self) -> LogTail:
        """Return where a dataflow without a state begins, and what stands behind it.

        Raises:
            NeedsDecision: code ``versions_gone``: the log no longer has the start.
        """
        start = self.source.from_
        if start is None or start == "snapshot":
            return self._whole_at(self._newest_position())
        if start == "latest":
            position = self._newest_position()
            return LogTail(position, position)
        logged = self.commits.since(None)
        commits = self._commits_of(logged)
        newest = _newest_of(self.commits, logged)
        if start == "earliest":
            return self._from_first(newest, commits)
        before = [number for number, commit in enumerate(commits) if _is_at_or_before(commit, start)]
        if not before or (isinstance(start, int) and commits[-1].position.version < start):
            raise start_gone(self.dataflow, self.source, commits)
        last = before[-1]
        return LogTail(newest, commits[last].position, tuple(commits[last + 1 :]))

    def _from_first(self, newest: LogPosition | None, commits: Sequence[Commit]) -> LogTail:
        """Return the tail of the whole log; its first commit is a first read if older ones are gone."""
        if not commits or not commits[0].is_whole:
            return LogTail(newest, None, tuple(commits))
        return LogTail(newest, None, tuple(commits[1:]), self._files_at(commits[0].position))

    def _whole_at(self, newest: LogPosition) -> LogTail:
        files = self._files_at(newest)
        # An empty table has no first read: its position is recorded, so that no later row is missed.
        return LogTail(newest, None, (), files) if files.sizes else LogTail(newest, newest)

    def _files_at(self, position: LogPosition) -> SnapshotFiles:
        files = self.commits.snapshot_files(ReadPosition.of(position))
        time = self.commits.time_of(ReadPosition.of(position))
        return SnapshotFiles(position, tuple(file.bytes for file in files), time)

    def _rest_of_snapshot(self, state: OffsetState) -> SnapshotFiles | None:
        """Return the files of a first read that is not done.

        Raises:
            NeedsDecision: code ``versions_gone``: the version has other files than when it was begun.
        """
        if state.snapshot is None or state.position is None:
            return None
        files = self._files_at(state.position)
        if len(files.sizes) != state.snapshot.files:
            raise NeedsDecision(
                f"expected {state.snapshot.files:,} files in {state.position.words}, of which {state.snapshot.files_done:,} are read, found"
                f" {len(files.sizes):,}",
                code="source_replaced",
            )
        return files

    def read(self, spark: SparkSession, slice_: OffsetSlice | None, pinned: str) -> DataFrame:
        """Return the rows of a slice with the pinned columns, and those of changes; without a slice, none.

        Raises:
            NeedsDecision: code ``versions_gone``: the log is no longer as it was planned; code
                ``source_keys_not_unique``: several rows of the table have a key that a commit changes.
        """
        from pyspark.sql import functions as F

        if slice_ is None or slice_.reads_nothing:
            rows = self.rows.no_rows(spark, pinned)
            return _with_changes(
                self.dataflow, rows.withColumn(VERSION, F.lit(0).cast("long")), pinned, {}, {}
            )
        part = slice_.input
        with self._explaining(_read_before(part), in_first_read=isinstance(part, SnapshotRange)):
            rows, times = self._rows_of(spark, part)
        rows = _with_changes(self.dataflow, rows, pinned, times, slice_.numbers)
        if not isinstance(part, CommitRange) or not self._checks_keys(part, rows.columns):
            return rows
        rows = read_once(rows)
        last = self.commits.version_of(ReadPosition.of(part.read_until))
        table = self.rows.at(last).read_rows(spark, [EVERYTHING], pinned)
        if has_several_rows(rows, table, self.dataflow.target.merge_keys):
            raise several_rows_error(self.dataflow, part.words)
        return rows

    def _checks_keys(self, part: CommitRange, columns: Sequence[str]) -> bool:
        """Return whether the table can show that it has one row of each key that a slice changes.

        It cannot if a step may make the keys, if a commit of the slice is passed over, or if files of its last
        version are gone.
        """
        is_whole = not any(commit.is_passed_over for commit in part.all_commits)
        if self.treatment != "apply" or self.dataflow.has_step or not is_whole:
            return False
        names = {name.casefold() for name in columns}
        has_keys = {key.casefold() for key in self.dataflow.target.merge_keys} <= names
        changes = any(commit.files and commit.changes for commit in part.all_commits)
        return changes and has_keys and self._has_all_files(part)

    def _has_all_files(self, part: CommitRange) -> bool:
        """Return whether the whole table can be read as it is after a slice."""
        if self._newest_position() == part.read_until:
            return True
        last = self._logged(part)[-1]._replace(files=1, holds_all_files=True)
        try:
            self.commits.check_files([last])
        except NeedsDecision:
            return False
        return True

    def _rows_of(
        self, spark: SparkSession, part: SnapshotRange | CommitRange
    ) -> tuple[DataFrame, Mapping[int, datetime | None]]:
        """Return the rows of a slice with the number of their commit, and the time of each commit."""
        from pyspark.sql import functions as F

        if isinstance(part, SnapshotRange):
            position = ReadPosition.of(part.position)
            files = [file.path for file in self.commits.snapshot_files(position)[part.start : part.end]]
            rows = self.commits.read_files(spark, position, files, self.rows.scratch)
            return rows.withColumn(VERSION, F.lit(position.version).cast("long")), {
                position.version: part.time
            }
        commits = self._logged(part)
        read = self.commits.net_changes if reads_changes(self.dataflow) else self.commits.appended_rows
        return read(spark, commits, self.rows.scratch), {
            commit.version: commit.time for commit in commits if commit.files
        }

    def _logged(self, part: CommitRange) -> tuple[LoggedCommit, ...]:
        """Return the commits of a slice, as the log has them; those that are passed over have no files.

        The log is read once for a slice.
        """
        if part not in self._logged_ranges:
            logged = _read_log(self.commits, self.label, part)
            self._logged_ranges.clear()
            self._logged_ranges[part] = logged
        return self._logged_ranges[part]

    def check_files(self, part: SnapshotRange | CommitRange) -> None:
        """Check that the files of a slice's commits still exist. Starts no Spark.

        Raises:
            NeedsDecision: code ``versions_gone``.
        """
        if not isinstance(part, CommitRange) or not part.files:
            return
        with self._explaining(part.since, in_first_read=False):
            self.commits.check_files([commit for commit in self._logged(part) if commit.files])

    def find_unreadable(self, spark: SparkSession, slice_: OffsetSlice, error: Exception) -> BadPart | None:
        """Return the last version of a slice if it cannot be read; else None.

        Raises:
            NeedsDecision: code ``versions_gone``: that version can be read, but files of earlier ones are
                missing.
        """
        last = slice_.input.last
        bad = self.rows.at(self.commits.version_of(ReadPosition.of(last))).find_unreadable(spark, error)
        if bad is None and lacks_file(error):
            part = slice_.input
            with self._explaining(_read_before(part), in_first_read=isinstance(part, SnapshotRange)):
                raise NeedsDecision(
                    f"expected the files of {part.words} of table {self.label}, found some missing: they were"
                    " joined or deleted, and vacuumed, before they were read",
                    code="versions_gone",
                ) from error
        return bad

    def commits_behind(self, position: ReadPosition | None) -> tuple[str, tuple[Commit, ...]]:
        """Return the id of the table, and every commit behind a position; None: all that the log has.

        Starts no Spark.

        Raises:
            NeedsDecision: the log does not have the position.
            SourceError: the table is missing, or its log cannot be read.
        """
        logged = self.commits.since(position)
        return logged.table, self._commits_of(logged)

    def position_of(self, version: int) -> LogPosition:
        """Return the position after a version that an operator names.

        Raises:
            ConfigurationError: the table has no such version in its log.
        """
        logged = self.commits.since(None)
        commits = [commit for commit in logged.commits if commit.version == version]
        if not commits:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: expected a version that the log of table {self.label} has, found {version}"
            )
        return self.position_at(logged.table, commits[0].read_position)

    def _newest_position(self) -> LogPosition:
        return self.position_at(*self.commits.newest())

    def position_at(self, table: str, position: ReadPosition) -> LogPosition:
        """Return a position of the table as the state has it."""
        return log_position(self.commits, table, position)

    def _commits_of(self, logged: LoggedCommits) -> tuple[Commit, ...]:
        return tuple(
            Commit(
                self.position_at(logged.table, commit.read_position),
                commit.files,
                commit.bytes,
                commit.rows,
                commit.changes,
                is_whole=commit.holds_all_files,
                time=commit.time,
            )
            for commit in logged.commits
        )

    def _check_same_table(self, position: LogPosition, logged: LoggedCommits, *, in_first_read: bool) -> None:
        if (other := logged.other_table(position)) is None:
            return
        raise log_error(
            self.dataflow,
            f"expected table {self.label}, of which everything up to {position.words} was read, found {other}",
            "source_replaced",
            in_first_read=in_first_read,
        )

    @contextmanager
    def _explaining(self, position: LogPosition | None, *, in_first_read: bool) -> Iterator[None]:
        """Raise an error of the log again, with the commands that help.

        Args:
            position: the position up to which the log is read; None: nothing is read.
            in_first_read: whether the first read is not done.
        """
        try:
            yield
        except NeedsDecision as error:
            reach = "nothing is read yet" if position is None else f"read up to {position.words}"
            message = f"{error.message} ({reach})"
            is_begun = in_first_read or position is not None
            raise log_error(
                self.dataflow, message, error.code, in_first_read=in_first_read, is_begun=is_begun
            ) from error


def _read_before(part: SnapshotRange | CommitRange) -> LogPosition | None:
    """Return the position up to which the log is read before a slice."""
    return part.since if isinstance(part, CommitRange) else part.position if part.start else None


def _is_at_or_before(commit: Commit, start: int | FromTime) -> bool:
    if isinstance(start, FromTime):
        return commit.time is not None and commit.time <= start.time
    return commit.position.version <= start


def _with_changes(
    dataflow: Dataflow,
    rows: DataFrame,
    pinned: str,
    times: Mapping[int, datetime | None],
    numbers: Mapping[int, int],
) -> DataFrame:
    """Return the pinned columns, and those of changes if the load needs them."""
    from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

    fields = list(pinned_struct(pinned).fields)
    if not carries_changes(dataflow):
        return strict(rows, StructType(fields))
    types = (StringType(), LongType(), TimestampType())
    changes = [StructField(name, type_) for name, type_ in zip(CHANGE_COLUMNS, types, strict=True)]
    names = [*rows.columns, *CHANGE_COLUMNS]
    return strict(with_change_columns(rows, times, numbers), StructType([*fields, *changes]), names)


def _read_log(commits: TableCommits, label: str, part: CommitRange) -> tuple[LoggedCommit, ...]:
    """Read the commits of a slice from the log.

    Raises:
        NeedsDecision: code ``versions_gone``: they are not as they were planned.
    """
    since = None if part.since is None else ReadPosition.of(part.since)
    logged = commits.since(since, ReadPosition.of(part.read_until), table=part.last.table).commits
    by_position = {commit.read_position: commit for commit in logged}
    with_rows = [commit for commit in part.all_commits if commit.files]
    for commit in with_rows:
        now = by_position.get(ReadPosition.of(commit.position))
        if now is None or (now.files, now.bytes) != (commit.files, commit.bytes):
            raise NeedsDecision(
                f"expected {commit.position.words} of table {label} as it was planned, found another one in its log",
                code="versions_gone",
            )
    read = {ReadPosition.of(commit.position) for commit in with_rows}
    return tuple(commit if commit.read_position in read else commit._replace(files=0) for commit in logged)


def _newest_of(commits: TableCommits, logged: LoggedCommits) -> LogPosition | None:
    newest = logged.commits[-1].read_position if logged.commits else None
    return None if newest is None else log_position(commits, logged.table, newest)
