"""Rows of a table of the lake, at one version of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING

from partitions.predicate import NOTHING
from partitions.sources import TableSource
from partitions.window.extent import Extent
from partitions.window.predicates import clauses
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.sources.conditions import table_rows
from resources.sources.schema import PinsColumns, pinned_struct, plain, strict
from resources.tables.table import Table, Version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_MOST_PARTS = 16
"""Units whose ranges differ are read apart from each other, up to so many."""


class TableRows(PinsColumns):
    """Reads a table, whoever writes it."""

    def __init__(self, table: Table, source: TableSource, zone: tzinfo) -> None:
        """Use a table; nothing is opened yet.

        Args:
            table: of the lake.
            source: what the definition says of it.
            zone: the definition's; times and dates without a zone are of it.
        """
        self._table, self._source, self._zone = table, source, zone

    def version(self) -> Version:
        """The newest version. Starts no Spark.

        Raises:
            SourceError: if there is no table, or its log cannot be listed.
        """
        return self._table.newest_version()

    def read(
        self, spark: SparkSession, extents: Sequence[Extent], pinned: str, version: Version | None = None
    ) -> DataFrame:
        """Exactly the rows of these extents, with the pinned columns in their order.

        Args:
            spark: a session.
            extents: of one slice; none of them is no row.
            pinned: what :meth:`pin` gave.
            version: of the table; None is the newest one now.

        Raises:
            ConfigurationError: if nothing tells a row's window or unit, or a unit's value cannot be one of its column.
            SourceError: if there is no table.
        """
        schema, table = pinned_struct(pinned), self._rows(spark, version)
        union: DataFrame | None = None
        earlier: list[str] = []
        for part in _parts(extents):
            source = self._source
            asked = table_rows(
                part, schema, window=source.window_column, units=source.unit_columns, zone=self._zone
            )
            condition = sql(asked, SPARK)
            # Two units may be one value of the column: what an earlier part holds is not read again.
            apart = [f"NOT coalesce({clause}, false)" for clause in earlier]
            rows = table.where(" AND ".join([f"({condition})", *apart]))
            union = rows if union is None else union.unionAll(rows)
            earlier.append(f"({condition})")
        return strict(table.where(sql(NOTHING, SPARK)) if union is None else union, schema)

    def failure(self, error: Exception) -> None:  # noqa: ARG002 - part of what all readers of rows have
        """None: what makes a read of the lake fail is Spark's to tell."""
        return

    def _columns(self, spark: SparkSession) -> StructType:
        return plain(self._rows(spark, None).schema)

    def _rows(self, spark: SparkSession, version: Version | None) -> DataFrame:
        return self._table.read(spark, self.version() if version is None else version)


def _parts(extents: Sequence[Extent]) -> list[list[Extent]]:
    """Units that are read over the same ranges, apart from others: of one condition for all of them Delta cannot tell whose files it needs.

    A file of a unit that is not asked for must not be opened: it may be the one that cannot be read.
    """
    parts = [[Extent(*span, clause.units) for span in clause.ranges] for clause in clauses(extents)]
    return parts if len(parts) <= _MOST_PARTS else [list(extents)]
