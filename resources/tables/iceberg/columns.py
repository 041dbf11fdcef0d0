"""Match the columns of rows with their Iceberg table by name, and add the column of the commit.

Values are never converted, except that integers of 8 and 16 bits become 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from partitions.errors import RowsRefused
from partitions.predicate import EVERYTHING, Predicate
from partitions.target import COMMIT_COLUMN, ICEBERG_COLUMNS
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.spark.frames import with_typed_columns
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

OUTSIDE = "rows_outside"
"""Error code for rows outside the rows that their load replaces."""

_OUTSIDE = "strandline: a row is not among those that its load replaces"
_SMALL_INTEGERS = ("tinyint", "smallint")


def check_reserved(rows: DataFrame) -> None:
    """Raise if rows have a column with a name that Strandline or Iceberg reserves.

    Raises:
        RowsRefused: they have one.
    """
    reserved_name = next(
        (name for name in rows.columns if name.lower() in (COMMIT_COLUMN, *ICEBERG_COLUMNS)), None
    )
    if reserved_name is not None:
        raise RowsRefused(
            f"column {reserved_name}: expected no column of this name, which Iceberg tables reserve for a row's commit, file or position."
            " Rename it in sql"
        )


def check_types(rows: StructType, table: StructType, table_name: str) -> None:
    """Raise if the table lacks a column of the rows, or has another type for it.

    Args:
        rows: columns of the slice.
        table: columns of the table.
        table_name: name of the table, for people.

    Raises:
        RowsRefused: a column does not fit.
    """
    types_by_name = {field.name.lower(): stored_type(field.dataType).simpleString() for field in table}
    for field in rows:
        data_type, expected_type = (
            stored_type(field.dataType).simpleString(),
            types_by_name.get(field.name.lower()),
        )
        if data_type != expected_type:
            names = ", ".join(name for name in table.names if name != COMMIT_COLUMN)
            expected_text = f"type {expected_type}" if expected_type else f"one of its columns ({names})"
            raise RowsRefused(
                f"table {table_name}: expected {expected_text}, found column {field.name} of type {data_type}"
            )


def stored_type(data_type: DataType) -> DataType:
    """Return the type of a column in an Iceberg table.

    Integers of 8 and 16 bits become 32 bits; texts lose their length limit.
    """
    from pyspark.sql import types as T

    match data_type:
        case T.ByteType() | T.ShortType():
            return T.IntegerType()
        case T.CharType() | T.VarcharType():
            return T.StringType()
        case T.ArrayType():
            return T.ArrayType(stored_type(data_type.elementType), True)
        case T.MapType():
            return T.MapType(stored_type(data_type.keyType), stored_type(data_type.valueType), True)
        case T.StructType():
            return T.StructType(
                [T.StructField(field.name, stored_type(field.dataType)) for field in data_type]
            )
    return data_type


def commit_column(value: str, where: Predicate = EVERYTHING) -> Column:
    """Return the column of a commit; reading it fails for a row outside the predicate.

    See :func:`is_outside_error`.
    """
    from pyspark.sql import functions as F

    commit = F.lit(value)
    if where != EVERYTHING:
        is_inside = F.coalesce(F.expr(predicate_sql(where, SPARK)), F.lit(False))
        commit = F.when(is_inside, commit).otherwise(F.raise_error(F.lit(_OUTSIDE)).cast("string"))
    return commit


def with_commit_column(rows: DataFrame, value: str) -> DataFrame:
    """Return rows with the column of their commit."""
    from pyspark.sql.types import StringType

    return with_typed_columns(rows, {COMMIT_COLUMN: (commit_column(value), StringType())})


def is_outside_error(error: Exception) -> bool:
    """Return whether a write failed at a row outside the rows that its load replaces."""
    return f"[USER_RAISED_EXCEPTION] {_OUTSIDE}" in str(
        error
    )  # the query that Spark quotes has the words without the prefix


def in_table_order(rows: DataFrame, table: StructType, commit: Column) -> DataFrame:
    """Return the rows with all columns of the table, the commit's among them; missing ones are NULL."""
    from pyspark.sql import functions as F

    row_fields = {field.name.lower(): field for field in rows.schema}
    columns: list[Any] = []
    for field in table:
        row_field = row_fields.get(field.name.lower())
        if field.name == COMMIT_COLUMN:
            columns.append(commit.alias(COMMIT_COLUMN))
        elif row_field is None:
            columns.append(F.lit(None).cast(field.dataType).alias(field.name))
        else:
            column = F.col(quoted(row_field.name))
            is_small_integer = row_field.dataType.simpleString() in _SMALL_INTEGERS
            columns.append((column.cast(field.dataType) if is_small_integer else column).alias(field.name))
    return rows.select(*columns)


def sql_type(data_type: DataType) -> str:
    """Return a type in the syntax of ``ALTER TABLE``, with quoted field names."""
    from pyspark.sql import types as T

    match stored_type(data_type):
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
    """Return a column's path in the syntax of ``ALTER TABLE``."""
    return ".".join(map(quoted, path))
