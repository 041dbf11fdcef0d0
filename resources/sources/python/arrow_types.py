"""Arrow types: which ones hold the same values, and which type a column gets.

See docs/reference/python-functions.md, What it yields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from partitions.ddl import Column

if TYPE_CHECKING:
    import pyarrow as pa

_DECIMALS = (38, 18)
"""Precision and scale of a column that is inferred from Python's decimals."""


def column_type(source_type: pa.DataType) -> pa.DataType | None:
    """Return the column type for values of an Arrow type; None if the type is unknown.

    Columns have no dictionaries, nanoseconds or unsigned numbers.

    Raises:
        TypeError: no column can hold such values.
    """
    import pyarrow as pa

    if pa.types.is_null(source_type):
        return None
    if pa.types.is_dictionary(source_type) or pa.types.is_run_end_encoded(source_type):
        return column_type(source_type.value_type)
    if pa.types.is_map(source_type):
        key, item = column_type(source_type.key_type), column_type(source_type.item_type)
        return None if key is None or item is None else pa.map_(key, item)
    if pa.types.is_struct(source_type):
        if not source_type.num_fields:
            raise TypeError("objects without fields, which no column holds: leave the column out")
        fields = [(field.name, column_type(field.type)) for field in source_type]
        return None if any(arrow_type is None for _, arrow_type in fields) else pa.struct(fields)
    if pa.types.is_nested(source_type):
        element = column_type(source_type.value_type)
        return None if element is None else pa.list_(pa.field("element", element))
    if pa.types.is_timestamp(source_type):
        return pa.timestamp("us", tz="UTC" if source_type.tz is not None else None)
    plain = {"text": pa.string(), "bytes": pa.binary(), "unsigned": pa.int64(), "day": pa.date32()}
    if (family := family_of(source_type)) in plain:
        return plain[family]
    if pa.types.is_decimal(source_type):
        digits = source_type.precision - min(source_type.scale, 0)
        return pa.decimal128(min(digits, 38), min(max(source_type.scale, 0), 38))
    if pa.types.is_float16(source_type):
        return pa.float32()
    if pa.types.is_boolean(source_type) or is_number(source_type):
        return source_type
    raise TypeError(f"values of type {source_type}, which no column holds: yield text or numbers")


def number_type(column: Column | None) -> pa.DataType | None:
    """Return the Arrow type of a declared column of numbers; None for any other column."""
    import pyarrow as pa

    if column is None:
        return None
    if column.type in ("decimal", "dec", "numeric"):
        precision, scale = (*column.numbers, *(10, 0)[len(column.numbers) :])
        return pa.decimal128(precision, scale)
    types = {
        **dict.fromkeys(("tinyint", "byte"), pa.int8()),
        **dict.fromkeys(("smallint", "short"), pa.int16()),
        **dict.fromkeys(("int", "integer"), pa.int32()),
        **dict.fromkeys(("bigint", "long"), pa.int64()),
        **dict.fromkeys(("float", "real"), pa.float32()),
        "double": pa.float64(),
    }
    return types.get(column.type)


def is_text(arrow_type: pa.DataType) -> bool:
    """Return whether values of the type are texts."""
    import pyarrow as pa

    return bool(
        pa.types.is_string(arrow_type)
        or pa.types.is_large_string(arrow_type)
        or pa.types.is_string_view(arrow_type)
    )


def is_number(arrow_type: pa.DataType) -> bool:
    """Return whether values of the type are whole numbers, floats or decimals."""
    import pyarrow as pa

    return bool(
        pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type) or pa.types.is_decimal(arrow_type)
    )


def family_of(arrow_type: pa.DataType) -> str | None:
    """Return the family of types that hold the same values in different widths; None without one."""
    import pyarrow as pa

    if is_text(arrow_type):
        return "text"
    if (
        pa.types.is_binary(arrow_type)
        or pa.types.is_large_binary(arrow_type)
        or pa.types.is_binary_view(arrow_type)
    ):
        return "bytes"
    if pa.types.is_date(arrow_type):
        return "day"
    if pa.types.is_unsigned_integer(arrow_type):
        return "unsigned"
    if pa.types.is_time(arrow_type):
        return "time"
    return "duration" if pa.types.is_duration(arrow_type) else None


def are_alike(source_type: pa.DataType, target_type: pa.DataType) -> bool:
    """Return whether two types differ only in Arrow's metadata."""
    import pyarrow as pa

    if not pa.types.is_nested(target_type):
        return bool(source_type == target_type)
    if source_type.id != target_type.id or source_type.num_fields != target_type.num_fields:
        return False
    fields = [
        (source_type.field(number), target_type.field(number)) for number in range(target_type.num_fields)
    ]
    has_equal_names = not pa.types.is_struct(target_type) or all(
        field.name == target_field.name for field, target_field in fields
    )
    return has_equal_names and all(are_alike(field.type, target_field.type) for field, target_field in fields)


def widen_decimals(data_type: pa.DataType) -> pa.DataType:
    """Return a type with decimals of the most digits: pyarrow infers their precision from a few rows."""
    import pyarrow as pa

    if pa.types.is_decimal(data_type):
        return pa.decimal128(*_DECIMALS)
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(field.name, widen_decimals(field.type)) for field in data_type])
    return pa.list_(widen_decimals(data_type.value_type)) if pa.types.is_list(data_type) else data_type
