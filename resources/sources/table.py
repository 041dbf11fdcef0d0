"""Rows of a table of the lake, at one version of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

from partitions.column.predicates import ColumnRange
from partitions.column.source import SourceObservation
from partitions.errors import BadPart, SourceError, TargetError
from partitions.evolution import SchemaMode
from partitions.predicate import NOTHING, Predicate, any_of
from partitions.sources import TableSource
from partitions.unit_values import ValueType
from partitions.window.extent import Extent
from partitions.window.predicates import merge_extents
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.sources.conditions import table_rows
from resources.sources.schema import PinsColumns, kind_of, pinned_struct, plain, strict
from resources.sources.table_versions import TableVersions, commits_of
from resources.tables.contract.commit_log import TableCommits
from resources.tables.contract.commits import Version
from resources.tables.contract.scratch import ScratchFolder
from resources.tables.contract.table import Table
from resources.tables.unreadable import UNREADABLE_VERSION, unreadable_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_MAX_PARTS = 16
"""The most groups of units with different ranges that are read separately."""


class TableRows(PinsColumns):
    """The rows of a table, whoever writes it."""

    _source: TableSource

    def __init__(
        self,
        table: Table,
        source: TableSource,
        zone: tzinfo,
        schema_mode: SchemaMode = "strict",
        *,
        may_merge: bool = True,
        scratch: ScratchFolder | None = None,
    ) -> None:
        """Configure the source; nothing is opened yet.

        Args:
            table: a table of the lake.
            source: the source's definition.
            zone: the definition's zone, used for times and dates without zone.
            schema_mode: what happens if columns differ from the pinned ones.
            may_merge: whether the definition can accept new columns, by ``schema_mode: merge``.
            scratch: folder of the run's staged files; None if no rows are read by version.
        """
        self._table, self._source, self._zone, self._mode = table, source, zone, schema_mode
        self._may_merge, self._scratch = may_merge, scratch
        self._bound_version: Version | None = None

    def at(self, version: Version) -> TableRows:
        """Return the rows at a version, even if a newer one exists."""
        bound_rows = copy(self)
        bound_rows._bound_version = version
        return bound_rows

    def version(self) -> Version:
        """Return the version to read: the newest, unless another was set; without starting Spark.

        Raises:
            SourceError: there is no table, or its log cannot be listed.
        """
        return self._table.contents.newest_version() if self._bound_version is None else self._bound_version

    def listed(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """Yield the distinct rows, sorted by the columns in their order."""
        yield from self._table.contents.distinct_rows(columns)

    def read(self, spark: SparkSession, extents: Sequence[Extent], pinned: str) -> DataFrame:
        """Return exactly the rows of these extents, with the pinned columns in order.

        Args:
            spark: a session.
            extents: the extents of one slice; no extent means no row.
            pinned: the result of :meth:`pin`.

        Raises:
            ConfigurationError: nothing identifies a row's window or unit, or a column cannot hold a unit's
            value.
            SourceError: there is no table.
        """
        schema, at = pinned_struct(pinned), self.version()
        union: DataFrame | None = None
        earlier: list[str] = []
        for part in _parts(extents):
            source = self._source
            predicate = table_rows(
                part, schema, window=source.window_column, units=source.unit_columns, zone=self._zone
            )
            condition = predicate_sql(predicate, SPARK)
            # Two units may be one value of the column: rows of an earlier part are not read again.
            exclusions = [f"NOT coalesce({clause}, false)" for clause in earlier]
            rows = self._table.contents.read(spark, at, predicate).where(
                " AND ".join([f"({condition})", *exclusions])
            )
            union = rows if union is None else union.unionAll(rows)
            earlier.append(f"({condition})")
        return strict(self._no_rows(spark, at) if union is None else union, schema)

    def types_by_name(self) -> Mapping[str, ValueType]:
        """Return the data types of the newest version's comparable columns; empty without a table."""
        described = self._table.contents.schema()
        fields = json.loads(described[1])["fields"] if described else ()
        value_types = {
            field["name"]: kind_of(field["type"]) for field in fields if isinstance(field["type"], str)
        }
        return {name: kind for name, kind in value_types.items() if kind}

    def observe(self, columns: Sequence[str], now: datetime) -> SourceObservation:
        """Return the newest version and its columns' types, with the run's clock.

        Statistics are too rough for the highest values.
        """
        described = self._table.contents.schema()
        if described is None:
            self._table.contents.newest_version()  # raises the error that there is none
            raise AssertionError
        version, schema = described
        types = {field["name"]: field["type"] for field in json.loads(schema)["fields"]}
        scalar_types = {
            name: types[name] for name in columns if isinstance(types.get(name), str)
        }  # a nested type is an object
        types_by_name = {name: kind_of(type_name) for name, type_name in scalar_types.items()}
        value_types = {name: kind for name, kind in types_by_name.items() if kind}
        source = json.dumps(
            {"tables": {self._source.label: self._table.identity()}}
            | ({"version": version} if isinstance(version, int) else {})
        )
        return SourceObservation(now, value_types, {}, version=version, columns=tuple(types), source=source)

    def cuts(self, range_: ColumnRange, rows: int, max_cuts: int) -> Sequence[Any]:
        """Return cuts from the statistics of the table's files."""
        files = self._table.contents.file_maxima(self.version(), range_.column)
        inside = sorted((value, count) for value, count in files if range_.holds_inside(value))
        cuts: list[Any] = []
        row_count = 0
        for value, count in inside:
            row_count += count
            if row_count >= rows and (not cuts or cuts[-1] != value):
                cuts.append(value)
                row_count = 0
        return cuts[:max_cuts]

    def holds_any(self, rows: Predicate) -> bool:
        """Return whether such a row exists, without Spark."""
        return self._table.contents.holds_any(self.version(), rows)

    def highest(self, column: str, rows: Predicate) -> Any:
        """Return the highest value of a column, without Spark."""
        return self._table.contents.highest_values([column], self.version(), rows)[column]

    def read_rows(self, spark: SparkSession, parts: Sequence[Predicate], pinned: str) -> DataFrame:
        """Return the rows of all parts in one read: Spark splits the files among its tasks."""
        predicate = any_of(parts) if parts else NOTHING
        rows = self._table.contents.read(spark, self.version(), predicate).where(
            predicate_sql(predicate, SPARK)
        )
        return strict(rows, pinned_struct(pinned))

    @property
    def scratch(self) -> ScratchFolder:
        """The folder of the run's staged files."""
        assert self._scratch is not None
        return self._scratch

    @property
    def commits(self) -> TableCommits:
        """The table's commits."""
        return commits_of(self._table)

    def no_rows(self, spark: SparkSession, pinned: str) -> DataFrame:
        """Return no rows, with the pinned columns in order."""
        return strict(self._no_rows(spark, self.version()), pinned_struct(pinned))

    @property
    def versions(self) -> TableVersions:
        """The rows by the version that appends them, for streams."""
        return TableVersions(self, self._table, self._source, self._scratch)

    def find_unreadable(self, spark: SparkSession, error: Exception) -> BadPart | None:
        """Return the version as a bad part if reading it fails; else None."""
        why = unreadable_version(spark, self._table, self.version(), error)
        part = f"table {self._source.label}"
        return BadPart(f"{part}: {why}", part=part, why=why, code=UNREADABLE_VERSION) if why else None

    def _columns(self, spark: SparkSession) -> StructType:
        """Return the columns of the version to read: from the log if it is the newest, else from Spark."""
        from pyspark.sql.types import StructType

        try:
            described = self._table.contents.schema()
        except TargetError as error:
            raise SourceError(error.message) from error
        if described is None or self._bound_version not in (None, described[0]):
            return plain(self._no_rows(spark, self.version()).schema)
        return plain(StructType.fromJson(json.loads(described[1])))

    def _no_rows(self, spark: SparkSession, version: Version) -> DataFrame:
        return self._table.contents.read(spark, version, NOTHING).where(predicate_sql(NOTHING, SPARK))


def _parts(extents: Sequence[Extent]) -> list[list[Extent]]:
    """Group units that are read over the same ranges; each group is read separately.

    With one condition for all groups Delta could not tell which files it needs. It must not open a file of
    other units, which may be unreadable.
    """
    parts = [[Extent(*span, clause.units) for span in clause.ranges] for clause in merge_extents(extents)]
    return parts if len(parts) <= _MAX_PARTS else [list(extents)]
