"""Epochs over the versions of a table that only grows (docs/reference/streams.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import BadPart, NeedsDecision
from partitions.sources import TableSource
from partitions.stream.inputs import VersionChunk, Versions, cut_versions, input_before_start
from partitions.stream.slices import EpochSlice
from partitions.stream.state import StreamState
from resources.kinds.stream.epochs import Epochs, Waiting
from resources.sources.table import TableRows
from resources.tables.contract.commit_log import LoggedCommit, ReadPosition
from resources.tables.unreadable import lacks_file
from resources.watermarks.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class EpochsOfVersions(Epochs):
    """A source of table versions: each version is a chunk.

    Attributes:
        dataflow: the definition.
        table: the table's rows.
    """

    dataflow: Dataflow
    table: TableRows

    @property
    def warnings(self) -> Sequence[str]:
        """No warnings: the plan has them all."""
        return ()

    @override
    def waiting(self, entry: Entry | None, state: StreamState, now: datetime) -> Waiting:
        """Return the versions above the state, from the table's log, cut into epochs.

        Raises:
            NeedsDecision: the log no longer lists all unread versions, or the table was replaced.
            SourceError: the table is missing, or a version changes rows.
        """
        position = state.position
        since = ReadPosition(position["version"], position.get("id")) if "version" in position else None
        try:
            versions = self.table.versions
            if since is None:
                logged, before = versions.first_commits()
            else:
                logged, before = versions.commits(since, table=position["table"]), since
        except NeedsDecision as error:
            raise self._source_error(error.message, error.code) from error
        if since is None and before is not None and self._begins_at_latest:
            return Waiting((input_before_start(logged.table, before),))
        if since is not None and (logged.table != position["table"] or logged.newest < since.version):
            raise self._source_error(
                f"expected table {self.dataflow.source.label}, of which versions up to {since.version} were "
                "read, found another table of that name, or an older version of it",
                "source_replaced",
            )
        chunks = [
            VersionChunk(commit.version, commit.files, commit.bytes, commit.id, commit.holds_all_files)
            for commit in logged.commits
        ]
        skip_warnings = [
            f"{commit.changes}; it is skipped (source.on_change: skip)"
            for commit in logged.commits
            if commit.changes and not commit.deletes_for_good
        ]
        inputs = cut_versions(self.dataflow.stream.checkpoint, logged.table, chunks, before)
        return Waiting(inputs, warnings=skip_warnings)

    @property
    def _begins_at_latest(self) -> bool:
        source = self.dataflow.source
        return isinstance(source, TableSource) and source.from_ == "latest"

    def covers(self, state: StreamState, other: StreamState) -> bool:
        """Return whether the read version does not fall; True for states of different tables."""
        after, before = state.position, other.position
        same_table = after.get("table") == before.get("table")
        return not before or not same_table or after.get("version", -1) >= before.get("version", -1)

    @override
    def pin(self, spark: SparkSession, pending: Sequence[EpochSlice]) -> str | None:
        """Return the table's columns as text."""
        return self.table.pin(spark)

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Raise SchemaError if the table's columns do not match the pinned ones."""
        self.table.check_schema(spark, pinned, self.dataflow.name)

    def check_unchanged(self, epoch_input: Versions) -> None:
        """Accept any input: versions never change."""

    def rows(self, spark: SparkSession, epoch_input: Versions, pinned: str) -> DataFrame:
        """Return the rows that the versions append."""
        return self.table.versions.read(spark, self._chunks_of(epoch_input), pinned)

    @override
    def find_bad_part(
        self, spark: SparkSession, epoch_input: Versions, pinned: str, error: Exception
    ) -> BadPart | None:
        """Return the last version if it cannot be read; else None. An epoch has no other parts.

        Raises:
            NeedsDecision: code ``versions_gone``: the last version can be read, but files that earlier
                versions added are missing.
        """
        bad = self.table.versions.find_unreadable(
            spark, ReadPosition(epoch_input.last, epoch_input.id), error
        )
        if bad is None and lacks_file(error):
            raise self._source_error(
                f"expected the files that versions {epoch_input.first} to {epoch_input.last} of table "
                f"{self.dataflow.source.label} added, found some missing: another job joined and vacuumed "
                "them before the stream read them",
                "versions_gone",
            ) from error
        return bad

    def _chunks_of(self, epoch_input: Versions) -> Sequence[LoggedCommit]:
        """Return the commits of an input; raise NeedsDecision if the log has changed."""
        if not epoch_input.files:  # a stream that starts at the newest version reads no earlier one
            return ()
        since = None if epoch_input.since is None else ReadPosition(epoch_input.since, epoch_input.since_id)
        try:
            until = ReadPosition(epoch_input.last, epoch_input.id)
            commits = self.table.versions.commits(since, until).commits
        except NeedsDecision as error:
            raise self._source_error(error.message, error.code) from error
        files, size = sum(commit.files for commit in commits), sum(commit.bytes for commit in commits)
        last = commits[-1] if commits else None
        # inputs of older versions have no id to compare
        logged_range = None if last is None else (last.version, epoch_input.id and last.id, files, size)
        if logged_range != (epoch_input.last, epoch_input.id, epoch_input.files, epoch_input.bytes):
            raise self._source_error(
                f"expected versions {epoch_input.first} to {epoch_input.last} of table "
                f"{self.dataflow.source.label} as they were planned, found others in its log",
                "versions_gone",
            )
        return commits

    def _source_error(self, message: str, code: str) -> NeedsDecision:
        """Return the error for a table that does not continue where the stream has read to."""
        name = self.dataflow.name
        return NeedsDecision(
            f"dataflow {name}: {message}. Run `state reset --replace` to read what the table holds now",
            code=code,
            choices=(f"strandline state reset {name} --replace --reason TEXT",),
        )
