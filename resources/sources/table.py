"""Rows of a table of the lake, at one version of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

from partitions.column.predicates import ColumnRange
from partitions.column.source import SourceObservation
from partitions.errors import BadPart
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
from resources.sources.table_versions import TableVersions
from resources.tables.contract.commits import Version
from resources.tables.contract.table import Table
from resources.tables.unreadable import UNREADABLE_VERSION, unreadable_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_MOST_PARTS = 16
"""Units whose ranges differ are read apart from each other, up to so many."""


class TableRows(PinsColumns):
    """Reads a table, whoever writes it."""

    _source: TableSource

    def __init__(
        self,
        table: Table,
        source: TableSource,
        zone: tzinfo,
        schema_mode: SchemaMode = "strict",
        *,
        may_merge: bool = True,
    ) -> None:
        """Use a table; nothing is opened yet.

        Args:
            table: of the lake.
            source: what the definition says of it.
            zone: the definition's; times and dates without a zone are of it.
            schema_mode: what becomes of the pinned columns if there are others.
            may_merge: whether the definition can take new columns, by ``schema_mode: merge``.
        """
        self._table, self._source, self._zone, self._mode = table, source, zone, schema_mode
        self._may_merge = may_merge
        self._bound: Version | None = None

    def at(self, version: Version) -> TableRows:
        """Return the rows as they are at a version, whatever is the newest."""
        bound = copy(self)
        bound._bound = version
        return bound

    def version(self) -> Version:
        """The one that it is read at: the newest, unless it was bound to another. Starts no Spark.

        Raises:
            SourceError: if there is no table, or its log cannot be listed.
        """
        return self._table.contents.newest_version() if self._bound is None else self._bound

    def listed(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """The different rows, sorted by the columns in their order."""
        yield from self._table.contents.distinct_rows(columns)

    def read(self, spark: SparkSession, extents: Sequence[Extent], pinned: str) -> DataFrame:
        """Exactly the rows of these extents, with the pinned columns in their order.

        Args:
            spark: a session.
            extents: of one slice; none of them is no row.
            pinned: what :meth:`pin` gave.

        Raises:
            ConfigurationError: if nothing tells a row's window or unit, or a unit's value cannot be one of its column.
            SourceError: if there is no table.
        """
        schema, at = pinned_struct(pinned), self.version()
        union: DataFrame | None = None
        earlier: list[str] = []
        for part in _parts(extents):
            source = self._source
            asked = table_rows(
                part, schema, window=source.window_column, units=source.unit_columns, zone=self._zone
            )
            condition = predicate_sql(asked, SPARK)
            # Two units may be one value of the column: what an earlier part holds is not read again.
            apart = [f"NOT coalesce({clause}, false)" for clause in earlier]
            rows = self._table.contents.read(spark, at, asked).where(" AND ".join([f"({condition})", *apart]))
            union = rows if union is None else union.unionAll(rows)
            earlier.append(f"({condition})")
        return strict(self._no_rows(spark, at) if union is None else union, schema)

    def held(self) -> Mapping[str, ValueType]:
        """What the columns of the newest version hold, of those that can be compared; nothing without a table."""
        described = self._table.contents.schema()
        fields = json.loads(described[1])["fields"] if described else ()
        found = {each["name"]: kind_of(each["type"]) for each in fields if isinstance(each["type"], str)}
        return {name: kind for name, kind in found.items() if kind}

    def observe(self, columns: Sequence[str], now: datetime) -> SourceObservation:
        """Look at the newest version. Its clock is the run's; what statistics say of the highest value is too rough."""
        described = self._table.contents.schema()
        if described is None:
            self._table.contents.newest_version()  # which says that there is none
            raise AssertionError
        version, schema = described
        types = {field["name"]: field["type"] for field in json.loads(schema)["fields"]}
        named = {
            name: types[name] for name in columns if isinstance(types.get(name), str)
        }  # a nested type is an object
        held = {name: kind_of(type_name) for name, type_name in named.items()}
        known = {name: kind for name, kind in held.items() if kind}
        source = json.dumps(
            {"tables": {self._source.label: self._table.identity()}}
            | ({"version": version} if isinstance(version, int) else {})
        )
        return SourceObservation(now, known, {}, version=version, columns=tuple(types), source=source)

    def cuts(self, range_: ColumnRange, rows: int, most: int) -> Sequence[Any]:
        """From the statistics of its files."""
        files = self._table.contents.file_maxima(self.version(), range_.column)
        inside = sorted((value, count) for value, count in files if range_.holds_inside(value))
        cuts: list[Any] = []
        passed = 0
        for value, count in inside:
            passed += count
            if passed >= rows and (not cuts or cuts[-1] != value):
                cuts.append(value)
                passed = 0
        return cuts[:most]

    def holds_any(self, rows: Predicate) -> bool:
        """Ask for one row, without Spark."""
        return self._table.contents.holds_any(self.version(), rows)

    def highest(self, column: str, rows: Predicate) -> Any:
        """Ask for it, without Spark."""
        return self._table.contents.highest_values([column], self.version(), rows)[column]

    def read_rows(self, spark: SparkSession, parts: Sequence[Predicate], pinned: str) -> DataFrame:
        """Read the parts at once: Spark cuts the files among its tasks by itself."""
        asked = any_of(parts) if parts else NOTHING
        rows = self._table.contents.read(spark, self.version(), asked).where(predicate_sql(asked, SPARK))
        return strict(rows, pinned_struct(pinned))

    @property
    def versions(self) -> TableVersions:
        """The rows by the version that appends them, for streams."""
        return TableVersions(self, self._table, self._source)

    def find_unreadable(self, spark: SparkSession, error: Exception) -> BadPart | None:
        """Try to read the version."""
        why = unreadable_version(spark, self._table, self.version(), error)
        part = f"table {self._source.label}"
        return BadPart(f"{part}: {why}", part=part, why=why, code=UNREADABLE_VERSION) if why else None

    def _columns(self, spark: SparkSession) -> StructType:
        return plain(self._no_rows(spark, self.version()).schema)

    def _no_rows(self, spark: SparkSession, version: Version) -> DataFrame:
        return self._table.contents.read(spark, version, NOTHING).where(predicate_sql(NOTHING, SPARK))


def _parts(extents: Sequence[Extent]) -> list[list[Extent]]:
    """Units that are read over the same ranges, apart from others: of one condition for all of them Delta cannot tell whose files it needs.

    A file of a unit that is not asked for must not be opened: it may be the one that cannot be read.
    """
    parts = [[Extent(*span, clause.units) for span in clause.ranges] for clause in merge_extents(extents)]
    return parts if len(parts) <= _MOST_PARTS else [list(extents)]
