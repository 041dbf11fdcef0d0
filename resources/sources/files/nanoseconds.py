"""Times with nanoseconds, as pandas writes them into Parquet: read as whole numbers and made microseconds, which is what Spark's times have.

What lies beyond the microsecond is cut off towards the past, also before 1970, so times keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from partitions.records.conversions import ITEM, KEY, VALUE
from resources.sources.files.footers import FieldPath

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

Leaf = Callable[[FieldPath, "DataType"], "DataType"]
"""What becomes of a type without fields, by where it is."""

_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"


def folded(path: FieldPath) -> FieldPath:
    """Without upper case, which tells no columns of Parquet apart."""
    return tuple(part.casefold() for part in path)


def as_numbers(schema: StructType, nanoseconds: Mapping[FieldPath, bool]) -> StructType:
    """The schema to read a file with: its times with nanoseconds as whole numbers, if the schema wants times of this kind.

    An instant is never read as a local time: whose would it be? Spark refuses that, and names the file.
    """
    from pyspark.sql.types import LongType, TimestampNTZType, TimestampType

    known = {folded(path): instant for path, instant in nanoseconds.items()}

    def number(path: FieldPath, kind: DataType) -> DataType:
        instant = known.get(folded(path))
        fits = isinstance(kind, TimestampType) or (isinstance(kind, TimestampNTZType) and not instant)
        return LongType() if instant is not None and fits else kind

    return _mapped(schema, number)


def as_inferred(schema: StructType, nanoseconds: Mapping[FieldPath, bool]) -> StructType:
    """The schema that Spark infers if it takes nanoseconds for whole numbers, with times in their place."""
    from pyspark.sql.types import LongType, TimestampNTZType, TimestampType

    known = {folded(path): instant for path, instant in nanoseconds.items()}

    def time(path: FieldPath, kind: DataType) -> DataType:
        instant = known.get(folded(path))
        if instant is None or not isinstance(kind, LongType):
            return kind
        return TimestampType() if instant else TimestampNTZType()

    return _mapped(schema, time)


def as_times(value: Column, read: DataType, wanted: DataType) -> Column:
    """A value that was read as :func:`as_numbers` says, in the type that is wanted."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, LongType, MapType, StructType, TimestampNTZType, TimestampType

    if read == wanted:
        return value
    if isinstance(read, StructType) and isinstance(wanted, StructType):
        fields = [
            as_times(value.getField(was.name), was.dataType, becomes.dataType).alias(becomes.name)
            for was, becomes in zip(read.fields, wanted.fields, strict=True)
        ]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(read, ArrayType) and isinstance(wanted, ArrayType):
        inner = (read.elementType, wanted.elementType)
        return F.transform(value, lambda item: as_times(item, *inner))
    if isinstance(read, MapType) and isinstance(wanted, MapType):
        keys, values = (read.keyType, wanted.keyType), (read.valueType, wanted.valueType)
        changed = F.transform_values(value, lambda _, item: as_times(item, *values))
        return F.transform_keys(changed, lambda key, _: as_times(key, *keys))
    micros = F.call_function("div", value - F.pmod(value, F.lit(1000)), F.lit(1000))
    if isinstance(read, LongType) and isinstance(wanted, TimestampType):
        return F.timestamp_micros(micros)
    if isinstance(read, LongType) and isinstance(wanted, TimestampNTZType):
        return F.timestamp_add("MICROSECOND", micros, F.expr(_EPOCH))
    raise AssertionError((read, wanted))


def _mapped(schema: StructType, leaf: Leaf, above: FieldPath = ()) -> StructType:
    from pyspark.sql.types import StructField, StructType

    fields = [
        StructField(
            field.name, _type(field.dataType, leaf, (*above, field.name)), field.nullable, field.metadata
        )
        for field in schema.fields
    ]
    return StructType(fields)


def _type(kind: DataType, leaf: Leaf, path: FieldPath) -> DataType:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        return _mapped(kind, leaf, path)
    if isinstance(kind, ArrayType):
        return ArrayType(_type(kind.elementType, leaf, (*path, ITEM)), kind.containsNull)
    if isinstance(kind, MapType):
        inner = _type(kind.keyType, leaf, (*path, KEY)), _type(kind.valueType, leaf, (*path, VALUE))
        return MapType(*inner, kind.valueContainsNull)
    return leaf(path, kind)
