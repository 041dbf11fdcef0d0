"""Read times in nanoseconds as whole numbers, and convert them to Spark's microseconds.

pandas writes such times into Parquet. Further digits are cut off towards the past, also before 1970, so times keep
their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from partitions.records.conversions import ITEM, KEY, VALUE
from resources.sources.files.field_paths import FieldPath

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

Leaf = Callable[[FieldPath, "DataType"], "DataType"]
"""Maps a leaf type, given its path."""

_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"


def fold_path(path: FieldPath) -> FieldPath:
    """Return a path in lower case, as Spark compares Parquet's columns."""
    return tuple(part.casefold() for part in path)


def as_numbers(schema: StructType, nanoseconds: Mapping[FieldPath, bool]) -> StructType:
    """Return the schema to read a file with: nanoseconds as whole numbers if the column holds times.

    An instant is never read as a local time, since its zone would be unknown. Spark refuses that, and names the
    file.
    """
    from pyspark.sql.types import LongType, TimestampNTZType, TimestampType

    is_instant_by_path = {fold_path(path): instant for path, instant in nanoseconds.items()}

    def number(path: FieldPath, data_type: DataType) -> DataType:
        instant = is_instant_by_path.get(fold_path(path))
        fits = isinstance(data_type, TimestampType) or (
            isinstance(data_type, TimestampNTZType) and not instant
        )
        return LongType() if instant is not None and fits else data_type

    return _map_leaves(schema, number)


def restore_times(schema: StructType, nanoseconds: Mapping[FieldPath, bool]) -> StructType:
    """Return the schema that Spark inferred with nanoseconds as whole numbers, with times in their place."""
    from pyspark.sql.types import LongType, TimestampNTZType, TimestampType

    is_instant_by_path = {fold_path(path): instant for path, instant in nanoseconds.items()}

    def time(path: FieldPath, data_type: DataType) -> DataType:
        instant = is_instant_by_path.get(fold_path(path))
        if instant is None or not isinstance(data_type, LongType):
            return data_type
        return TimestampType() if instant else TimestampNTZType()

    return _map_leaves(schema, time)


def as_times(value: Column, read_type: DataType, column_type: DataType) -> Column:
    """Convert a value that was read with :func:`as_numbers` to the column's type."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, LongType, MapType, StructType, TimestampNTZType, TimestampType

    if read_type == column_type:
        return value
    if isinstance(read_type, StructType) and isinstance(column_type, StructType):
        fields = [
            as_times(value.getField(read_field.name), read_field.dataType, column_field.dataType).alias(
                column_field.name
            )
            for read_field, column_field in zip(read_type.fields, column_type.fields, strict=True)
        ]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(read_type, ArrayType) and isinstance(column_type, ArrayType):
        inner = (read_type.elementType, column_type.elementType)
        return F.transform(value, lambda item: as_times(item, *inner))
    if isinstance(read_type, MapType) and isinstance(column_type, MapType):
        keys, values = (read_type.keyType, column_type.keyType), (read_type.valueType, column_type.valueType)
        changed = F.transform_values(value, lambda _, item: as_times(item, *values))
        return F.transform_keys(changed, lambda key, _: as_times(key, *keys))
    micros = F.call_function("div", value - F.pmod(value, F.lit(1000)), F.lit(1000))
    if isinstance(read_type, LongType) and isinstance(column_type, TimestampType):
        return F.timestamp_micros(micros)
    if isinstance(read_type, LongType) and isinstance(column_type, TimestampNTZType):
        return F.timestamp_add("MICROSECOND", micros, F.expr(_EPOCH))
    raise AssertionError((read_type, column_type))


def _map_leaves(schema: StructType, leaf: Leaf, path: FieldPath = ()) -> StructType:
    from pyspark.sql.types import StructField, StructType

    fields = [
        StructField(
            field.name, _map_type(field.dataType, leaf, (*path, field.name)), field.nullable, field.metadata
        )
        for field in schema.fields
    ]
    return StructType(fields)


def _map_type(data_type: DataType, leaf: Leaf, path: FieldPath) -> DataType:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(data_type, StructType):
        return _map_leaves(data_type, leaf, path)
    if isinstance(data_type, ArrayType):
        return ArrayType(_map_type(data_type.elementType, leaf, (*path, ITEM)), data_type.containsNull)
    if isinstance(data_type, MapType):
        inner = (
            _map_type(data_type.keyType, leaf, (*path, KEY)),
            _map_type(data_type.valueType, leaf, (*path, VALUE)),
        )
        return MapType(*inner, data_type.valueContainsNull)
    return leaf(path, data_type)
