"""A side that Spark reads: a table of the lake, or a source that is read as a whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.predicate import NOTHING, HasValue, Predicate
from partitions.reconcile.cells import Cell
from partitions.reconcile.families import type_in_table
from partitions.sources.database_types import ColumnType
from resources.dialects.spark import SPARK
from resources.reconcile.canonical.spark import SPARK_TEXTS
from resources.reconcile.expressions import (
    BUCKET,
    CELL,
    CHECKSUM,
    KEY_HASH,
    RANGE,
    ROWS,
    Expressions,
    HashedColumns,
    cell_text,
)
from resources.reconcile.side import CellsOf
from resources.spark.frames import streamed_tables
from resources.sql import quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_HALF = 30
"""Bits of the lower half of a checksum. Sums of halves stay below the largest long up to 2**33 rows."""
_LISTED = 1_000
"""Most cells that a condition lists; more are joined."""


@dataclass(frozen=True)
class SparkSide:
    """The rows that Spark reads.

    Attributes:
        read: returns a frame that holds all rows of a predicate, and may hold others.
    """

    read: Callable[[Predicate], DataFrame]

    def columns(self) -> Mapping[str, ColumnType | None]:
        """Return the types of the columns."""
        fields = json.loads(self.read(NOTHING).schema.json())["fields"]
        return {field["name"]: type_in_table(field["type"]) for field in fields}

    def lowest(self, column: str) -> Any:
        """Return the lowest value; a scan, unless statistics tell it."""
        from pyspark.sql import functions as F

        rows = self.read(HasValue(column)).agg(F.min(quoted(column)).alias("lowest"))
        return rows.toArrow()["lowest"][0].as_py()

    def cells(self, columns: HashedColumns, digits: int, within: CellsOf | None = None) -> Sequence[Cell]:
        """Return the sums with one query."""
        from pyspark.sql import functions as F

        expressions = Expressions(SPARK, SPARK_TEXTS, columns)
        hashed = self._hashed(columns.ranges.rows, expressions, expressions.of_cells(digits))
        if within is not None:
            hashed = _in_cells(hashed, expressions, BUCKET, within)
        sums = [F.count(F.lit(1)).alias(ROWS)]
        if columns.compared:
            checksum = F.col(CHECKSUM)
            sums += [
                F.sum(F.shiftright(checksum, _HALF)).alias("high"),
                F.sum(checksum.bitwiseAND(F.lit(2**_HALF - 1))).alias("low"),
            ]
        cells = hashed.groupBy(BUCKET, RANGE).agg(*sums).toArrow()
        cells = cells.sort_by([(BUCKET, "ascending"), (RANGE, "ascending")])
        values = zip(*(column.to_pylist() for column in cells.columns), strict=True)
        return [
            Cell(bucket, number, count, (halves[0] << _HALF) + halves[1] if halves else 0)
            for bucket, number, count, *halves in values
        ]

    def rows(self, columns: HashedColumns, within: CellsOf) -> Iterator[pa.Table]:
        """Yield the rows of one query as Spark sends them."""
        expressions = Expressions(SPARK, SPARK_TEXTS, columns)
        hashed = self._hashed(columns.rows_to_fetch, expressions, expressions.of_rows())
        rows = _in_cells(hashed, expressions, KEY_HASH, within)
        # An orderBy reads all rows twice: first it samples them for the bounds of its partitions.
        yield from streamed_tables(rows.repartition(1).sortWithinPartitions(KEY_HASH))

    def _hashed(
        self, rows: Predicate, expressions: Expressions, named: Sequence[tuple[str, str]]
    ) -> DataFrame:
        read = self.read(rows).where(expressions.condition(rows))
        return read.selectExpr(*[f"{expression} AS {quoted(name)}" for expression, name in named])


def _in_cells(hashed: DataFrame, expressions: Expressions, hash_column: str, within: CellsOf) -> DataFrame:
    """Return the rows of some cells."""
    from pyspark.sql import functions as F

    name = F.expr(expressions.cell_name(quoted(hash_column), within.digits))
    texts = [cell_text(cell) for cell in within.cells]
    if len(texts) <= _LISTED:
        return hashed.where(name.isin(texts))
    cells = hashed.sparkSession.createDataFrame([(text,) for text in texts], f"{CELL} string")
    return hashed.join(F.broadcast(cells), name == F.col(CELL), "left_semi")
