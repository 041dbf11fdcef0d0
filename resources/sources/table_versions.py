"""Rows of a table of the lake by the version that appends them, as streams read them (docs/reference/streams.md).

A stream reads each row once, so a version that changes rows stops it, or is passed over (``source.on_change: skip``).
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
        """Use a table; nothing is opened yet.

        Args:
            rows: of the table, as other kinds of watermark read them.
            table: of the lake.
            source: says where to begin (``from``) and what becomes of versions that change rows (``on_change``).
        """
        self._rows, self._table, self._source = rows, table, source

    def appends(self, since: ReadPosition | None, until: int | None = None) -> AppendedVersions:
        """Return what each version appends, from the one after ``since`` to ``until``, inclusive; None: from the first, to the newest.

        Raises:
            ConfigurationError: the table's format does not tell it.
            SourceError: code ``source_changed``: a version changes rows.
        """
        return self._without_changes(self._log.since(since, until))

    def first_appends(self) -> tuple[AppendedVersions, ReadPosition | None]:
        """Return what the versions append that a stream begins with, and the version before them; None: there is none.

        Raises:
            NeedsDecision: code ``versions_gone``: the table's log does not tell the version that it shall begin with.
        """
        begin = self._source.from_
        if begin == "earliest":
            return self.appends(None), None
        appends = self._log.since(None)
        before = [version for version in appends.versions if begin == "latest" or version.version < begin]
        rest = appends.versions[len(before) :]
        if rest and rest[0].holds_all_files and begin != 0:
            raise NeedsDecision(
                f"table {self._source.label}: expected version {begin} (source.from) in its log, found it from version {rest[0].version} on, with all"
                " rows of before in it. Name a later version, or earliest or latest",
                code="versions_gone",
            )
        return self._without_changes(appends._replace(versions=rest)), before[
            -1
        ].read_position if before else None

    def _without_changes(self, appends: AppendedVersions) -> AppendedVersions:
        """Return what versions append; one that changes rows is passed over as if it were empty, or raises SourceError."""
        if self._source.on_change == "skip":
            versions = (
                version._replace(files=0, bytes=0, listed_files=()) if version.changes else version
                for version in appends.versions
            )
            return appends._replace(versions=tuple(versions))
        changed = next((version for version in appends.versions if version.changes), None)
        if changed is not None:
            raise SourceError(
                f"table {self._source.label}: expected versions that only append rows, since a stream reads each once; {changed.changes}."
                " Nothing of it was read. Have the stream read a table that only grows, or pass such versions over with source.on_change: skip",
                code="source_changed",
            )
        return appends

    def read(self, spark: SparkSession, versions: Sequence[VersionAppends], pinned: str) -> DataFrame:
        """Return the rows that versions append: the pinned columns, and ``VERSION``."""
        from pyspark.sql.types import LongType, StructField, StructType

        rows = self._log.rows(spark, versions)
        with_version = StructType([*pinned_struct(pinned).fields, StructField(VERSION, LongType())])
        return strict(rows, with_version)

    def find_unreadable(self, spark: SparkSession, mark: ReadPosition, error: Exception) -> BadPart | None:
        """Try to read the table as it was at a mark; return what cannot be read."""
        return self._rows.at(self._log.version_of(mark)).find_unreadable(spark, error)

    @property
    def _log(self) -> TableAppends:
        if isinstance(self._table, TellsAppends):
            return self._table.appends
        raise ConfigurationError(
            f"table {self._source.label}: expected a Delta or Iceberg table, whose log tells what each version appends, found another format"
        )
