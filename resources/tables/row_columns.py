"""Rows with the columns of a table: what they lack is NULL, and narrower values are cast up, at any depth of structs."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from partitions.errors import RowsRefused, SchemaError
from partitions.evolution import Evolution, SchemaMode, evolved
from partitions.loads import Load, Scd2
from partitions.schema_merging import with_rescued
from partitions.schema_types import Schema
from partitions.target import HISTORY_COLUMNS
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType


def taken_columns(known: Schema, incoming: Schema, mode: SchemaMode, table: object) -> Evolution:
    """Return what a table's columns become with rows of others; in mode rescue they get ``_rescued_data`` and nothing else.

    Args:
        known: of the table.
        incoming: of the rows.
        mode: merge or rescue.
        table: as it is shown.

    Raises:
        RowsRefused: the mode does not accept them.
    """
    try:
        return evolved(known, with_rescued(known, incoming) if mode == "rescue" else incoming, "merge")
    except SchemaError as error:
        raise RowsRefused(f"table {table}: {error.message}") from error


def with_times(rows: StructType, load: Load) -> StructType:
    """Return columns with those that tell from when to when a version holds, which are as wide as the time that they are taken from; without versions the same."""
    if not isinstance(load, Scd2):
        return rows
    (time,) = (field.dataType for field in rows.fields if field.name.lower() == load.effective.lower())
    return reduce(lambda all_, name: all_.add(name, time), HISTORY_COLUMNS[:2], type(rows)(list(rows.fields)))


def with_columns_of(rows: DataFrame, schema: StructType) -> DataFrame:
    """Return rows with the columns of a schema in its order; those that it lacks are left out, so it must have been widened before."""
    from pyspark.sql import functions as F

    there = {field.name.casefold(): field for field in rows.schema.fields}
    columns = []
    for field in schema.fields:
        own = there.get(field.name.casefold())
        value = F.lit(None) if own is None else as_type(F.col(quoted(own.name)), own.dataType, field.dataType)
        columns.append((value.cast(field.dataType) if own is None else value).alias(field.name))
    return rows.select(*columns)


def with_types_of(rows: DataFrame, schema: Schema) -> DataFrame:
    """Return rows whose columns have the types of a schema's of the same name, which hold all of their values."""
    from pyspark.sql.types import StructType

    wanted = StructType.fromJson(dict(schema))
    own = {field.name.casefold(): field.dataType for field in rows.schema.fields}
    there = [field for field in wanted.fields if field.name.casefold() in own]
    if all(own[field.name.casefold()] == field.dataType for field in there):
        return rows
    return with_columns_of(rows, StructType(there))


def as_type(value: Column, was: DataType, becomes: DataType) -> Column:
    """Return a value in another type that holds all of it."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if was == becomes:
        return value
    if isinstance(was, StructType) and isinstance(becomes, StructType):
        there = {field.name.casefold(): field for field in was.fields}
        fields = []
        for field in becomes.fields:
            own = there.get(field.name.casefold())
            inner = (
                F.lit(None).cast(field.dataType)
                if own is None
                else as_type(value.getField(own.name), own.dataType, field.dataType)
            )
            fields.append(inner.alias(field.name))
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(was, ArrayType) and isinstance(becomes, ArrayType):
        elements = (was.elementType, becomes.elementType)
        return F.transform(value, lambda each: as_type(each, *elements))
    if isinstance(was, MapType) and isinstance(becomes, MapType):
        values = (was.valueType, becomes.valueType)
        return F.transform_values(value, lambda _, each: as_type(each, *values))
    return value.cast(becomes)
