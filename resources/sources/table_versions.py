"""Rows of a lake table by the version that appends them, as streams read them.

A stream reads each row once, so a version that changes rows stops it, or is skipped (``source.on_change:
skip``). See docs/reference/streams.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.errors import BadPart, NeedsDecision, SourceError
from partitions.sources import TableSource
from resources.sources.schema import pinned_struct, strict
from resources.sources.source import HasVersions
from resources.tables.contract.commit_log import (
    VERSION,
    LoggedCommit,
    LoggedCommits,
    ReadPosition,
    TableCommits,
    TellsCommits,
)
from resources.tables.contract.scratch import ScratchFolder
from resources.tables.contract.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class TableVersions:
    """The versions of a table, each with the rows that it appends."""

    def __init__(
        self, rows: HasVersions, table: Table, source: TableSource, scratch: ScratchFolder | None
    ) -> None:
        """Configure the source; nothing is opened yet.

        Args:
            rows: the rows of the table, as other kinds of watermark read them.
            table: a table of the lake.
            source: gives the first version (``from``) and the rule for versions that change rows
            (``on_change``).
            scratch: folder of the run's staged files; None if no rows are read.
        """
        self._rows, self._table, self._source, self._scratch = rows, table, source, scratch

    def commits(
        self, since: ReadPosition | None, until: ReadPosition | None = None, table: str | None = None
    ) -> LoggedCommits:
        """Return the commits after ``since`` up to and including ``until``, as appends.

        None means from the first version, or to the newest; ``table`` is the id of the table that was read
        up to ``since``, if known. A commit whose rows are passed over has no files.

        Raises:
            SourceError: code ``source_changed``: a version changes rows.
            NeedsDecision: as :meth:`TableCommits.since`.
        """
        return self._only_appends(self._log.since(since, until, table=table))

    def first_commits(self) -> tuple[LoggedCommits, ReadPosition | None]:
        """Return the commits that a new stream reads first, and the position before them, or None.

        Raises:
            NeedsDecision: code ``versions_gone``: the table's log no longer has the first version.
        """
        first_version = self._source.from_
        if first_version in (None, "earliest"):
            return self.commits(None), None
        logged = self._log.since(None)
        earlier = [
            commit
            for commit in logged.commits
            if not isinstance(first_version, int) or commit.version < first_version
        ]
        remaining = logged.commits[len(earlier) :]
        if remaining and remaining[0].holds_all_files and first_version != 0:
            raise NeedsDecision(
                f"table {self._source.label}: expected version {first_version} (source.from) in its log, found only "
                f"version {remaining[0].version} and later, which hold all older rows. Set source.from to a "
                "later version, or to earliest or latest",
                code="versions_gone",
            )
        before = earlier[-1].read_position if earlier else None
        return self._only_appends(logged._replace(commits=remaining)), before

    def _only_appends(self, logged: LoggedCommits) -> LoggedCommits:
        """Return commits, those that change rows without files; raise if such a commit must not be skipped.

        A commit by which Strandline deleted rows for good never stops a stream.
        """
        if any(commit.rolls_back for commit in logged.commits):
            raise NeedsDecision(
                f"table {self._source.label}: expected versions that follow the last one read, found that the table "
                "was rolled back to an earlier one",
                code="source_replaced",
            )
        changing = next(
            (commit for commit in logged.commits if commit.changes and not commit.deletes_for_good), None
        )
        if changing is not None and self._source.on_change != "skip":
            raise SourceError(
                f"table {self._source.label}: expected versions that only append rows, since a stream reads each once; "
                f"{changing.changes}. Nothing of that version was read. Let the stream read a table that only "
                "grows, or skip such versions with source.on_change: skip",
                code="source_changed",
            )
        commits = (
            commit._replace(files=0, bytes=0, rows=0) if commit.changes else commit
            for commit in logged.commits
        )
        return logged._replace(commits=tuple(commits))

    def read(self, spark: SparkSession, commits: Sequence[LoggedCommit], pinned: str) -> DataFrame:
        """Return the rows that commits append: the pinned columns, and ``VERSION``."""
        from pyspark.sql.types import LongType, StructField, StructType

        assert self._scratch is not None
        rows = self._log.appended_rows(spark, commits, self._scratch)
        with_version = StructType([*pinned_struct(pinned).fields, StructField(VERSION, LongType())])
        return strict(rows, with_version)

    def find_unreadable(
        self, spark: SparkSession, position: ReadPosition, error: Exception
    ) -> BadPart | None:
        """Return the version at a position as a bad part if reading it fails; else None."""
        return self._rows.at(self._log.version_of(position)).find_unreadable(spark, error)

    @property
    def _log(self) -> TableCommits:
        return commits_of(self._table)


def commits_of(table: Table) -> TableCommits:
    """Return the commits of a table: every format lists them."""
    assert isinstance(table, TellsCommits)
    return table.commits
