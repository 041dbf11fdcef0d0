"""Rows of a lake table by the version that appends them, as streams read them.

A stream reads each row once, so a version that changes rows stops it, or is skipped (``source.on_change:
skip``). See docs/reference/streams.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.errors import BadPart, ConfigurationError, NeedsDecision, SourceError
from partitions.sources import TableSource
from resources.sources.schema import pinned_struct, strict
from resources.sources.source import HasVersions
from resources.tables.contract.appends import (
    VERSION,
    AppendedVersions,
    ReadPosition,
    TableAppends,
    TellsAppends,
    VersionAppends,
)
from resources.tables.contract.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class TableVersions:
    """The versions of a table, each with the rows that it appends."""

    def __init__(self, rows: HasVersions, table: Table, source: TableSource) -> None:
        """Configure the source; nothing is opened yet.

        Args:
            rows: the rows of the table, as other kinds of watermark read them.
            table: a table of the lake.
            source: gives the first version (``from``) and the rule for versions that change rows
            (``on_change``).
        """
        self._rows, self._table, self._source = rows, table, source

    def appends(self, since: ReadPosition | None, until: int | None = None) -> AppendedVersions:
        """Return what each version appends, after ``since`` up to and including ``until``.

        None means from the first version, or to the newest.

        Raises:
            ConfigurationError: the table's format does not reveal it.
            SourceError: code ``source_changed``: a version changes rows.
        """
        return self._without_changes(self._log.since(since, until))

    def first_appends(self) -> tuple[AppendedVersions, ReadPosition | None]:
        """Return what a new stream's first versions append, and the position before them, or None.

        Raises:
            NeedsDecision: code ``versions_gone``: the table's log no longer has the first version.
        """
        first_version = self._source.from_
        if first_version == "earliest":
            return self.appends(None), None
        appends = self._log.since(None)
        earlier_versions = [
            version
            for version in appends.versions
            if first_version == "latest" or version.version < first_version
        ]
        remaining_versions = appends.versions[len(earlier_versions) :]
        if remaining_versions and remaining_versions[0].holds_all_files and first_version != 0:
            raise NeedsDecision(
                f"table {self._source.label}: expected version {first_version} (source.from) in its log, found only "
                f"version {remaining_versions[0].version} and later, which hold all older rows. Set source.from to a "
                "later version, or to earliest or latest",
                code="versions_gone",
            )
        return self._without_changes(appends._replace(versions=remaining_versions)), earlier_versions[
            -1
        ].read_position if earlier_versions else None

    def _without_changes(self, appends: AppendedVersions) -> AppendedVersions:
        """Return appends without versions that change rows; raise SourceError if they must not be skipped.

        A skipped version counts as empty.
        """
        if self._source.on_change == "skip":
            versions = (
                version._replace(files=0, bytes=0, listed_files=()) if version.changes else version
                for version in appends.versions
            )
            return appends._replace(versions=tuple(versions))
        changing_version = next((version for version in appends.versions if version.changes), None)
        if changing_version is not None:
            raise SourceError(
                f"table {self._source.label}: expected versions that only append rows, since a stream reads each once; "
                f"{changing_version.changes}. Nothing of that version was read. Let the stream read a table that only "
                "grows, or skip such versions with source.on_change: skip",
                code="source_changed",
            )
        return appends

    def read(self, spark: SparkSession, versions: Sequence[VersionAppends], pinned: str) -> DataFrame:
        """Return the rows that versions append: the pinned columns, and ``VERSION``."""
        from pyspark.sql.types import LongType, StructField, StructType

        rows = self._log.rows(spark, versions)
        with_version = StructType([*pinned_struct(pinned).fields, StructField(VERSION, LongType())])
        return strict(rows, with_version)

    def find_unreadable(
        self, spark: SparkSession, position: ReadPosition, error: Exception
    ) -> BadPart | None:
        """Return the version at a position as a bad part if reading it fails; else None."""
        return self._rows.at(self._log.version_of(position)).find_unreadable(spark, error)

    @property
    def _log(self) -> TableAppends:
        if isinstance(self._table, TellsAppends):
            return self._table.appends
        raise ConfigurationError(
            f"table {self._source.label}: expected a Delta or Iceberg table, whose log lists the rows that each "
            "version appends, found another format"
        )
