"""Give rows the columns of a table: add missing ones as NULL and widen types, inside structs too."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from partitions.errors import RowsRefused, SchemaError
from partitions.evolution import Evolution, SchemaMode, evolve_schema
from partitions.loads import Load, Scd2, helper_columns
from partitions.schema_merging import with_rescued
from partitions.schema_types import Schema
from resources.sql import quoted
from resources.tables.rows.history_columns import history_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType


def evolve_columns(existing: Schema, incoming: Schema, mode: SchemaMode, table: object) -> Evolution:
    """Return the change of a table's columns that rows with other columns need.

    In mode rescue a table only gains ``_rescued_data``.

    Args:
        existing: columns of the table.
        incoming: columns of the rows.
        mode: merge or rescue.
        table: table, as messages show it.

    Raises:
        RowsRefused: the mode does not accept the rows' columns.
    """
    try:
        return evolve_schema(
            existing, with_rescued(existing, incoming) if mode == "rescue" else incoming, "merge"
        )
    except SchemaError as error:
        raise RowsRefused(f"table {table}: {error.message}") from error


def written_columns(rows: StructType, load: Load) -> StructType:
    """Return the columns that a load writes, without those that only steer it.

    SCD2 adds start and end of a version, with the type of the effective column.
    """
    steering = helper_columns(load)
    if steering:
        rows = type(rows)([field for field in rows.fields if field.name not in steering])
    if not isinstance(load, Scd2):
        return rows
    (time,) = (field.dataType for field in rows.fields if field.name.lower() == load.effective.lower())
    times = load.names.of_versions[:2]
    return reduce(lambda all_, name: all_.add(name, time), times, type(rows)(list(rows.fields)))


def fit_to_table(rows: DataFrame, table: StructType, load: Load) -> DataFrame:
    """Return rows with the columns of their table but those that the load adds, and those that steer it."""
    steering = [field for field in rows.schema.fields if field.name in helper_columns(load)]
    own_names = [field.name for field in rows.schema.fields if field not in steering]
    added = history_columns(own_names, load, table.names) if isinstance(load, Scd2) else ()
    own_fields = [field for field in table.fields if field.name not in added]
    return with_columns_of(rows, type(table)([*own_fields, *steering]))


def with_columns_of(rows: DataFrame, schema: StructType) -> DataFrame:
    """Return rows with the columns of a schema, in its order.

    Columns that the schema lacks are dropped, so widen the schema first.
    """
    from pyspark.sql import functions as F

    row_fields = {field.name.casefold(): field for field in rows.schema.fields}
    columns = []
    for field in schema.fields:
        row_field = row_fields.get(field.name.casefold())
        value = (
            F.lit(None)
            if row_field is None
            else as_type(F.col(quoted(row_field.name)), row_field.dataType, field.dataType)
        )
        columns.append((value.cast(field.dataType) if row_field is None else value).alias(field.name))
    return rows.select(*columns)


def with_types_of(rows: DataFrame, schema: Schema) -> DataFrame:
    """Cast the columns of rows to the wider types that a schema has for the same names."""
    from pyspark.sql.types import StructType

    target_schema = StructType.fromJson(dict(schema))
    row_types = {field.name.casefold(): field.dataType for field in rows.schema.fields}
    shared_fields = [field for field in target_schema.fields if field.name.casefold() in row_types]
    if all(row_types[field.name.casefold()] == field.dataType for field in shared_fields):
        return rows
    return with_columns_of(rows, StructType(shared_fields))


def as_type(value: Column, from_type: DataType, to_type: DataType) -> Column:
    """Cast a column to a wider type, inside structs, arrays and maps too."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if from_type == to_type:
        return value
    if isinstance(from_type, StructType) and isinstance(to_type, StructType):
        inner_fields = {field.name.casefold(): field for field in from_type.fields}
        fields = []
        for field in to_type.fields:
            source_field = inner_fields.get(field.name.casefold())
            inner = (
                F.lit(None).cast(field.dataType)
                if source_field is None
                else as_type(value.getField(source_field.name), source_field.dataType, field.dataType)
            )
            fields.append(inner.alias(field.name))
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(from_type, ArrayType) and isinstance(to_type, ArrayType):
        elements = (from_type.elementType, to_type.elementType)
        return F.transform(value, lambda element: as_type(element, *elements))
    if isinstance(from_type, MapType) and isinstance(to_type, MapType):
        values = (from_type.valueType, to_type.valueType)
        return F.transform_values(value, lambda _, entry_value: as_type(entry_value, *values))
    return value.cast(to_type)
