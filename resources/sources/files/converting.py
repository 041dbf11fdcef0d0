"""Convert values from a file's own types to the columns' types.

:mod:`partitions.records.conversions` has the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from partitions.records.conversions import (
    NANOSECONDS,
    TIME_OF_DAY_UNITS,
    UUID,
    VARIANT,
    VOID,
    WIDE_RANGE_TYPES,
    conversion,
)
from partitions.records.forms import INTEGER_BITS, WHOLE_BITS, Type
from resources.sources.files.nanoseconds import as_times
from resources.sql import all_of

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructField, StructType

OWN_TYPE = "own_type"
"""The metadata key of a column for the file's own type, if it is not the table's."""


def with_own_types(data: StructType, own: Mapping[str, Type]) -> StructType:
    """Return the columns to read a file with, in its own types where these differ from the pinned ones.

    Columns without a value are left out.

    Args:
        data: the pinned columns that stand in files.
        own: the types of the file's columns, by case-folded name; columns of unknown types are missing.
    """
    from pyspark.sql.types import StructField, StructType

    fields: list[StructField] = []
    for field in data.fields:
        file_type = own.get(field.name.casefold())
        if file_type is None or conversion(file_type, field.dataType.jsonValue()) in ("same", None):
            fields.append(field)
        elif file_type != VOID:
            fields.append(
                StructField(field.name, _read_type(file_type, field.dataType), True, {OWN_TYPE: file_type})
            )
    return StructType(fields)


def convert_value(value: Column, own: Type, column: DataType) -> Column:
    """Convert a value of a file's own type to the column's type.

    The conversion must be exact (:func:`survives_conversion`).
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if own == VOID:
        return F.lit(None).cast(column)
    if isinstance(own, str):
        if own in NANOSECONDS and column.jsonValue() == NANOSECONDS[own]:
            return as_times(value, spark_type(own), column)
        if own == UUID:
            return _uuid_text(value) if column.jsonValue() == "string" else value
        if own == VARIANT:
            return F.to_json(value)
        return (
            _time_of_day(value, TIME_OF_DAY_UNITS[own])
            if own in TIME_OF_DAY_UNITS
            else value.try_cast(column)
        )
    if isinstance(column, StructType):
        types = {field["name"].casefold(): field["type"] for field in own["fields"]}
        fields = [
            (
                F.lit(None).cast(field.dataType)
                if types.get(field.name.casefold(), VOID) == VOID
                else convert_value(value.getField(field.name), types[field.name.casefold()], field.dataType)
            ).alias(field.name)
            for field in column.fields
        ]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(column, ArrayType):
        return F.transform(value, lambda item: convert_value(item, own["elementType"], column.elementType))
    assert isinstance(column, MapType)
    return F.transform_values(value, lambda _, item: convert_value(item, own["valueType"], column.valueType))


def survives_conversion(value: Column, own: Type, column: DataType) -> Column:
    """Return whether a value is unchanged after a conversion to the column's type and back."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if conversion(own, column.jsonValue()) != "checked":
        return F.lit(True)
    if isinstance(own, str) and own in WIDE_RANGE_TYPES:
        return F.coalesce(lies_within_years(value, WIDE_RANGE_TYPES[own]), F.lit(True))
    if own == "binary":
        return value.isNull() | F.is_valid_utf8(value.cast("string"))
    if isinstance(own, str):
        converted_value = value.try_cast(column)
        is_same = converted_value.try_cast(spark_type(own)) == value
        if own in INTEGER_BITS and column.jsonValue() in WHOLE_BITS:
            # A float rounds the type's largest number up to one beyond it; the cast back clips that to the largest again.
            is_same &= converted_value < F.lit(float(2 ** (INTEGER_BITS[own] - 1)))
        return value.isNull() | F.coalesce(is_same, F.lit(False))
    if isinstance(column, StructType):
        types = {field["name"].casefold(): field["type"] for field in own["fields"]}
        inner = [
            survives_conversion(value.getField(field.name), types[field.name.casefold()], field.dataType)
            for field in column.fields
            if types.get(field.name.casefold(), VOID) != VOID
        ]
        return value.isNull() | all_of(inner)
    items = value
    if isinstance(column, MapType):
        items = F.map_values(value)
    inner_own = own["elementType"] if isinstance(column, ArrayType) else own["valueType"]
    inner_type = column.elementType if isinstance(column, ArrayType) else column.valueType  # type: ignore[attr-defined]
    return value.isNull() | F.forall(items, lambda item: survives_conversion(item, inner_own, inner_type))


def lies_within_years(value: Column, data_type: str) -> Column:
    """Return whether a date or time lies in the years 1 to 9999, both inclusive; NULL for NULL."""
    from pyspark.sql import functions as F

    begin, end = ("", "") if data_type == "date" else (" 00:00:00", " 23:59:59.999999")
    zone = "Z" if data_type == "timestamp" else ""
    first, last = f"0001-01-01{begin}{zone}", f"9999-12-31{end}{zone}"
    # As SQL: PySpark in this process cannot make a literal of date.min.
    return value.between(*[F.expr(f"{data_type} '{text}'") for text in (first, last)])


def own_type(field: StructField) -> Type | None:
    """Return the file's own type of a column, from its metadata; None if it is the table's type."""
    own: Type | None = field.metadata.get(OWN_TYPE)
    return own


def struct_of_own_types(types: Mapping[str, Type | None]) -> StructType:
    """Return the table's columns for a file's own types.

    Times of day become text; fields without a value become ``void``, at any depth.
    """
    from pyspark.sql.types import StructType

    fields = [
        {"name": name, "type": _table_type(own), "nullable": True, "metadata": {}}
        for name, own in types.items()
        if own is not None
    ]
    return StructType.fromJson({"type": "struct", "fields": fields})


def _table_type(own: Type) -> Type:
    if isinstance(own, str):
        return (
            "string"
            if own in TIME_OF_DAY_UNITS or own == UUID
            else (NANOSECONDS | WIDE_RANGE_TYPES).get(own, own)
        )
    if own["type"] == "struct":
        fields = [{**field, "type": _table_type(field["type"])} for field in own["fields"]]
        return {**own, "fields": fields}
    inner = "elementType" if own["type"] == "array" else "valueType"
    return {**own, inner: _table_type(own[inner])}


def _time_of_day(value: Column, parts: int) -> Column:
    """Return a time of day as text, ``HH:MM:SS`` with up to six digits of fraction.

    Further digits are cut off.
    """
    from pyspark.sql import functions as F

    def number(part: Column, digits: int) -> Column:
        return F.lpad(part.cast("bigint").cast("string"), digits, "0")

    seconds, rest = F.floor(value / F.lit(parts)), F.pmod(value, F.lit(parts))
    micros = rest * (1_000_000 // parts) if parts <= 1_000_000 else F.floor(rest / F.lit(parts // 1_000_000))
    clock = F.concat_ws(
        ":",
        number(F.floor(seconds / 3600), 2),
        number(F.pmod(F.floor(seconds / 60), F.lit(60)), 2),
        number(F.pmod(seconds, F.lit(60)), 2),
    )
    fraction = F.when(micros > 0, F.concat(F.lit("."), number(micros, 6))).otherwise(F.lit(""))
    return F.when(value.isNotNull(), F.concat(clock, fraction))


def _uuid_text(value: Column) -> Column:
    """Format 16 bytes as a UUID, such as ``123e4567-e89b-12d3-a456-426614174000``."""
    from pyspark.sql import functions as F

    return F.regexp_replace(F.lower(F.hex(value)), "^(.{8})(.{4})(.{4})(.{4})(.{12})$", "$1-$2-$3-$4-$5")


def _read_type(own: Type, column: DataType) -> DataType:
    """Return the type that Spark reads a file's own type as.

    A struct has only the fields that the column has, and that hold values.
    """
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if isinstance(own, str):
        return spark_type(own)
    if isinstance(column, StructType):
        types = {field["name"].casefold(): field["type"] for field in own["fields"]}
        return StructType(
            [
                StructField(field.name, _read_type(types[field.name.casefold()], field.dataType))
                for field in column.fields
                if types.get(field.name.casefold(), VOID) != VOID
            ]
        )
    if isinstance(column, ArrayType):
        return ArrayType(_read_type(own["elementType"], column.elementType))
    assert isinstance(column, MapType)
    return MapType(column.keyType, _read_type(own["valueType"], column.valueType))


def spark_type(own: Type) -> DataType:
    """Return the type that Spark reads a file's own type as; ``void`` if it has no value."""
    from pyspark.sql.types import (
        ArrayType,
        BinaryType,
        IntegerType,
        LongType,
        MapType,
        NullType,
        StructField,
        StructType,
    )

    if not isinstance(own, str):
        if own["type"] == "struct":
            return StructType(
                [StructField(field["name"], spark_type(field["type"])) for field in own["fields"]]
            )
        if own["type"] == "array":
            return ArrayType(spark_type(own["elementType"]))
        return MapType(spark_type(own["keyType"]), spark_type(own["valueType"]))
    own = WIDE_RANGE_TYPES.get(own, own)
    if own == UUID:
        return BinaryType()
    if own in NANOSECONDS:
        return LongType()
    if own in TIME_OF_DAY_UNITS:
        return IntegerType() if own == "time(millis)" else LongType()
    if own == VOID:
        return NullType()
    field: dict[str, Any] = {"name": "c", "type": own, "nullable": True, "metadata": {}}
    return StructType.fromJson({"type": "struct", "fields": [field]}).fields[0].dataType
