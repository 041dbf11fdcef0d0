"""The columns of rows and of their Iceberg table: matched by name, never converted, and one more that says which commit wrote a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from partitions.errors import RowsRefused
from partitions.predicate import EVERYTHING, Predicate
from partitions.target import COMMIT_COLUMN, ICEBERG_COLUMNS
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.spark.frames import with_typed_columns
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

OUTSIDE = "rows_outside"
"""Code of the error for rows that are not among those that their load replaces."""

_OUTSIDE = "strandline: a row is not among those that its load replaces"
_SMALL = ("tinyint", "smallint")


def check_reserved(rows: DataFrame) -> None:
    """Raise if rows have a column of a name that Strandline's column or one of Iceberg's own has.

    Raises:
        RowsRefused: they have.
    """
    reserved = next(
        (name for name in rows.columns if name.lower() in (COMMIT_COLUMN, *ICEBERG_COLUMNS)), None
    )
    if reserved is not None:
        raise RowsRefused(
            f"column {reserved}: expected no column of this name, which Iceberg tables have for the commit that wrote a row, or for its file and place."
            " Rename it in sql"
        )


def check_types(rows: StructType, table: StructType, shown: str) -> None:
    """Raise if a column is not one of the table's, or has another type.

    Args:
        rows: columns of the slice.
        table: its columns.
        shown: its name, for people.

    Raises:
        RowsRefused: a column does not fit.
    """
    there = {field.name.lower(): as_stored(field.dataType).simpleString() for field in table}
    for field in rows:
        kind, expected = as_stored(field.dataType).simpleString(), there.get(field.name.lower())
        if kind != expected:
            names = ", ".join(name for name in table.names if name != COMMIT_COLUMN)
            wanted = f"type {expected}" if expected else f"one of its columns ({names})"
            raise RowsRefused(f"table {shown}: expected {wanted}, found column {field.name} of type {kind}")


def as_stored(kind: DataType) -> DataType:
    """Return the type that a column has in an Iceberg table: whole numbers of 8 and 16 bits have 32, and all texts are of any length."""
    from pyspark.sql import types as T

    match kind:
        case T.ByteType() | T.ShortType():
            return T.IntegerType()
        case T.CharType() | T.VarcharType():
            return T.StringType()
        case T.ArrayType():
            return T.ArrayType(as_stored(kind.elementType), True)
        case T.MapType():
            return T.MapType(as_stored(kind.keyType), as_stored(kind.valueType), True)
        case T.StructType():
            return T.StructType([T.StructField(field.name, as_stored(field.dataType)) for field in kind])
    return kind


def commit_of(value: str, where: Predicate = EVERYTHING) -> Column:
    """Return the column of a commit. Reading a row that is not among those of a predicate fails; see :func:`is_outside`."""
    from pyspark.sql import functions as F

    commit = F.lit(value)
    if where != EVERYTHING:
        inside = F.coalesce(F.expr(sql(where, SPARK)), F.lit(False))
        commit = F.when(inside, commit).otherwise(F.raise_error(F.lit(_OUTSIDE)).cast("string"))
    return commit


def with_commit(rows: DataFrame, value: str) -> DataFrame:
    """Return rows with the column of their commit."""
    from pyspark.sql.types import StringType

    return with_typed_columns(rows, {COMMIT_COLUMN: (commit_of(value), StringType())})


def is_outside(error: Exception) -> bool:
    """Return whether a write failed at a row that is not among those that its load replaces."""
    return f"[USER_RAISED_EXCEPTION] {_OUTSIDE}" in str(error)  # a query that Spark shows has the words, too


def in_order_of(rows: DataFrame, table: StructType, commit: Column) -> DataFrame:
    """Return the rows with all columns of the table, and that of their commit among them; one that they lack is NULL."""
    from pyspark.sql import functions as F

    given = {field.name.lower(): field for field in rows.schema}
    columns: list[Any] = []
    for field in table:
        own = given.get(field.name.lower())
        if field.name == COMMIT_COLUMN:
            columns.append(commit.alias(COMMIT_COLUMN))
        elif own is None:
            columns.append(F.lit(None).cast(field.dataType).alias(field.name))
        else:
            column = F.col(quoted(own.name))
            small = own.dataType.simpleString() in _SMALL
            columns.append((column.cast(field.dataType) if small else column).alias(field.name))
    return rows.select(*columns)


def sql_type(kind: DataType) -> str:
    """Return a type as ``ALTER TABLE`` takes it, with quoted names of fields."""
    from pyspark.sql import types as T

    match as_stored(kind):
        case T.ArrayType() as stored:
            return f"array<{sql_type(stored.elementType)}>"
        case T.MapType() as stored:
            return f"map<{sql_type(stored.keyType)}, {sql_type(stored.valueType)}>"
        case T.StructType() as stored:
            fields = (f"{quoted(field.name)}: {sql_type(field.dataType)}" for field in stored)
            return f"struct<{', '.join(fields)}>"
        case stored:
            return stored.simpleString()


def dotted(path: Sequence[str]) -> str:
    """Return the path of a column as ``ALTER TABLE`` takes it."""
    return ".".join(map(quoted, path))
