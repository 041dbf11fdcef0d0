"""A table as a source: its commits, and the rows that each of them adds, changes and removes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from partitions.log_position import LogPosition
from resources.tables.contract.changed_file import ChangedFile
from resources.tables.contract.commits import Version
from resources.tables.contract.scratch import ScratchFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


VERSION = "_strandline_version"
"""Column with the version that added, changed or removed a row."""
CHANGE = "_strandline_change"
"""Column with what a version did to a row: ``INSERT`` or ``DELETE``."""
INSERT, DELETE = "insert", "delete"

CommitKind = Literal["appends", "nothing", "rewrites"]
"""``appends`` only adds files; ``nothing`` changes no row; ``rewrites`` removes or rewrites files."""


class SnapshotFile(NamedTuple):
    """A data file of a version.

    Attributes:
        path: path as the table's log has it.
        bytes: size.
        rows: number of rows; None if the log does not say.
    """

    path: str
    bytes: int
    rows: int | None


class ReadPosition(NamedTuple):
    """The last version of a table that was read.

    Attributes:
        version: version number.
        id: identity of that version, which another version of the same number lacks; None if it was not
            recorded.
    """

    version: int
    id: str | None = None

    @classmethod
    def of(cls, position: LogPosition) -> ReadPosition:
        """Return the position that a state has, without its table."""
        return cls(position.version, position.id)


class LoggedCommit(NamedTuple):
    """One commit, as the table's log alone tells it.

    Attributes:
        version: version number.
        kind: what the commit does to rows.
        files: number of files to read for its rows; 0 if it changes no row.
        bytes: size of these files.
        id: identity of the version, which another version of the same number lacks.
        description: what the commit does, for people.
        time: when it was made; None if the log does not say.
        rows: rows that it adds; None if the log does not say.
        before: position of the state that the commit changes; None: the version before it by number, or an
            empty table.
        rolls_back: whether it is a rollback, which has no commit of its own: the table is again as it was
            at an earlier commit. Its version is that of the position before it.
        only_inserts: whether the log proves that no row is changed or removed.
        deletes_for_good: whether Strandline deleted rows, by ``delete`` or a retention. Streams pass over
            such commits.
        holds_all_files: whether the files are the table's whole content, because the log no longer lists
            older versions.
    """

    version: int
    kind: CommitKind
    files: int
    bytes: int
    id: str
    description: str
    time: datetime | None = None
    rows: int | None = None
    before: ReadPosition | None = None
    rolls_back: bool = False
    only_inserts: bool = False
    deletes_for_good: bool = False
    holds_all_files: bool = False

    @property
    def read_position(self) -> ReadPosition:
        """Position after this commit, from which the next read goes on."""
        return ReadPosition(self.version, self.id)

    @property
    def changes(self) -> str | None:
        """How the commit changes or removes rows, for people; None if the log proves that it does not."""
        return self.description if self.kind == "rewrites" and not self.only_inserts else None


class LoggedCommits(NamedTuple):
    """Consecutive commits.

    Attributes:
        table: id of the table, which another table at the same place lacks.
        newest: newest version of the table.
        commits: commits, oldest first.
    """

    table: str
    newest: int
    commits: tuple[LoggedCommit, ...]

    def other_table(self, position: LogPosition) -> str | None:
        """Return in words which other table has this log; None if it goes on behind the position."""
        if self.table != position.table:
            return "another table of that name"
        return "an older version of it" if self.newest < position.version else None


class TableCommits(Protocol):
    """The commits of one table.

    Attributes:
        names_snapshots: whether the identity of a commit is the id of a snapshot.
    """

    names_snapshots: ClassVar[bool]

    def newest(self) -> tuple[str, ReadPosition]:
        """Return the id of the table and the position after its newest commit, or before its first one.

        Starts no Spark.

        Raises:
            SourceError: there is no table, or its log cannot be read.
        """
        ...

    def since(
        self,
        position: ReadPosition | None,
        until: ReadPosition | None = None,
        *,
        table: str | None = None,
    ) -> LoggedCommits:
        """Return each commit in a range. Starts no Spark; the cost grows with the commits in the range.

        Their order is that of the list. Version numbers rise, except after a rollback.

        Args:
            position: position before the range; None: from the first commit.
            until: position after the last commit; None: the newest. The range stays the same, whatever
                is committed later.
            table: id of the table that was read up to the position, so that it need not be read if the
                position's commit is the same; None: unknown.

        Raises:
            NeedsDecision: code ``versions_gone``: the log no longer lists all of them, or has another
                version at ``until``; code ``source_replaced``: the version that was read last is no longer
                one of the table.
            SourceError: there is no table, or its log cannot be read.
        """
        ...

    def version_of(self, position: ReadPosition) -> Version:
        """Return the version that :meth:`TableContents.read` reads up to a position."""
        ...

    def position_of(self, version: Version) -> ReadPosition:
        """Return the read position after a version.

        The inverse of :meth:`version_of`, as far as versions record it.
        """
        ...

    def time_of(self, position: ReadPosition) -> datetime | None:
        """Return when a commit was made; None if its log does not say, or no longer has it."""
        ...

    def check_files(self, commits: Sequence[LoggedCommit]) -> None:
        """Check that the files of commits still exist. Starts no Spark; the cost grows with these files.

        Raises:
            NeedsDecision: code ``versions_gone``: a file was cleaned before it was read.
        """
        ...

    def changed_files(self, commits: Sequence[LoggedCommit]) -> Sequence[ChangedFile]:
        """Return the files that hold the rows which commits add and remove. Starts no Spark.

        Files that a commit only joins or clusters are left out.

        Raises:
            NeedsDecision: code ``versions_gone``: the version before a commit was cleaned from the log.
        """
        ...

    def appended_rows(
        self, spark: SparkSession, commits: Sequence[LoggedCommit], scratch: ScratchFolder
    ) -> DataFrame:
        """Return the rows that commits insert, each with its version in the column ``VERSION``.

        Args:
            spark: session.
            commits: consecutive commits. Those that may change or remove rows count as empty.
            scratch: folder for files that the read needs.
        """
        ...

    def net_changes(
        self, spark: SparkSession, commits: Sequence[LoggedCommit], scratch: ScratchFolder
    ) -> DataFrame:
        """Return the rows that each commit inserts and deletes, as a multiset, in the newest columns.

        A row that a commit only copies, or deletes and inserts again, is no change. The rows have the
        columns of the last commit, ``CHANGE`` and ``VERSION``.

        Args:
            spark: session.
            commits: consecutive commits of any kind.
            scratch: folder for files that the read needs.

        Raises:
            NeedsDecision: code ``versions_gone``: the version before a commit was cleaned from the log.
        """
        ...

    def snapshot_files(self, position: ReadPosition) -> tuple[SnapshotFile, ...]:
        """Return the data files of a version, sorted by path. Starts no Spark.

        Raises:
            NeedsDecision: code ``versions_gone``: the log no longer has the version.
        """
        ...

    def read_files(
        self,
        spark: SparkSession,
        position: ReadPosition,
        files: Collection[str],
        scratch: ScratchFolder,
    ) -> DataFrame:
        """Return exactly the rows that some files hold in a version, with that version's columns.

        Args:
            spark: session.
            position: position of the version.
            files: paths of the files, as :meth:`snapshot_files` has them.
            scratch: folder for files that the read needs.
        """
        ...


@runtime_checkable
class TellsCommits(Protocol):
    """A format whose log records the rows that each version adds, changes and removes."""

    @property
    def commits(self) -> TableCommits:
        """Commits of the table."""
        ...


def log_position(commits: TableCommits, table: str, position: ReadPosition) -> LogPosition:
    """Return a position of a table as states have it."""
    return LogPosition(table, position.version, position.id, commits.names_snapshots)
