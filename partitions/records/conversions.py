"""Decide whether values of a file's own type fit a column: always, depending on the value, or never.

A value fits if it survives the conversion to the column's type and back. Types are in Spark's JSON form.
Beside Spark's there are ``time(millis)``, ``time(micros)`` and ``time(nanos)``: a time of day, counted
from midnight; ``timestamp(nanos)`` and ``timestamp_ntz(nanos)``; ``date(any)``, ``timestamp(any)`` and
``timestamp_ntz(any)``, which may lie outside the years 1 to 9999; and ``uuid``, 16 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from partitions.records.forms import DECIMAL, INTEGER_BITS, WHOLE_BITS, Type
from partitions.schema_types import widens

Conversion = Literal["same", "always", "checked"]
"""``same``: the types are equal; ``always``: the column holds every value; ``checked``: it depends on the value."""

VOID = "void"
"""The type of a column that has no values."""

TIME_OF_DAY_UNITS: dict[str, int] = {
    "time(millis)": 1_000,
    "time(micros)": 1_000_000,
    "time(nanos)": 1_000_000_000,
}
"""Time-of-day types, with their ticks per second."""

NANOSECONDS: dict[str, str] = {"timestamp(nanos)": "timestamp", "timestamp_ntz(nanos)": "timestamp_ntz"}
"""Nanosecond types, with the type that holds their values to the microsecond."""

WIDE_RANGE_TYPES: dict[str, str] = {f"{name}(any)": name for name in ("date", "timestamp", "timestamp_ntz")}
"""Types whose values may lie outside the years 1 to 9999, with the type that holds the values inside."""

ITEM, KEY, VALUE = "[]", "{key}", "{value}"
"""Path steps for the parts of arrays and maps."""

UUID = "uuid"
VARIANT = "variant"

_ORDER: tuple[Conversion, ...] = ("same", "always", "checked")


def conversion(file_type: Type, column: Type) -> Conversion | None:
    """Return how values of a file's type convert to a column's type; None if they cannot.

    Args:
        file_type: the type of the file's column.
        column: the type of the table's column.
    """
    if file_type == VOID:
        return "always"
    if isinstance(file_type, str) and isinstance(column, str):
        if file_type == column:
            return "same"
        if file_type in WIDE_RANGE_TYPES:
            return None if conversion(WIDE_RANGE_TYPES[file_type], column) is None else "checked"
        if file_type == UUID:
            return "always" if column in ("string", "binary") else None
        if file_type == VARIANT:
            return "always" if column == "string" else None
        if file_type in NANOSECONDS:
            return "always" if column == NANOSECONDS[file_type] else "checked" if column == "long" else None
        if file_type in TIME_OF_DAY_UNITS:
            return "always" if column == "string" else None
        if widens(file_type, column):
            return "always"
        is_checked = (_is_number(file_type) and _is_number(column)) or (
            file_type == "binary" and column == "string"
        )
        return "checked" if is_checked else None
    if isinstance(file_type, str) or isinstance(column, str) or file_type["type"] != column["type"]:
        return None
    if file_type["type"] == "array":
        return conversion(file_type["elementType"], column["elementType"])
    if file_type["type"] == "map":
        if conversion(file_type["keyType"], column["keyType"]) != "same":
            return None
        return conversion(file_type["valueType"], column["valueType"])
    if file_type["type"] != "struct":
        return None
    types = {field["name"].casefold(): field["type"] for field in file_type["fields"]}
    inner = [
        conversion(types[field["name"].casefold()], field["type"])
        for field in column["fields"]
        if field["name"].casefold() in types
    ]
    steps = [step for step in inner if step is not None]
    return max(steps, key=_ORDER.index, default="same") if len(steps) == len(inner) else None


def _is_number(data_type: str) -> bool:
    return data_type in INTEGER_BITS or data_type in WHOLE_BITS or DECIMAL.fullmatch(data_type) is not None


def displayed_type(file_type: Type) -> str:
    """Return the name of a file's type that users know."""
    if isinstance(file_type, str):
        file_type = WIDE_RANGE_TYPES.get(file_type, file_type)
        return {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(
            file_type, file_type
        )
    return str(file_type["type"])


def paths_without_value(name: str, file_type: Type) -> Iterator[tuple[str, ...]]:
    """Yield the paths of a column's fields whose type can hold no value, at any depth.

    Names are case-folded; ``ITEM`` and ``VALUE`` stand for the parts of arrays and maps.
    """
    folded = name.casefold()
    if not has_value(file_type):
        yield (folded,)
    elif not isinstance(file_type, str):
        inner = (
            [(field["name"], field["type"]) for field in file_type["fields"]]
            if file_type["type"] == "struct"
            else [(ITEM, file_type["elementType"])]
            if file_type["type"] == "array"
            else [(VALUE, file_type["valueType"])]
        )
        for field_name, field_type in inner:
            for path in paths_without_value(field_name, field_type):
                yield (folded, *path)


def has_value(file_type: Type) -> bool:
    """Return whether a column of this type can hold a value other than NULL or an empty one.

    A struct without fields counts as a type with values.
    """
    if isinstance(file_type, str):
        return file_type != VOID
    if file_type["type"] == "struct":
        return not file_type["fields"] or any(has_value(field["type"]) for field in file_type["fields"])
    return has_value(file_type.get("elementType", file_type.get("valueType")))


def is_special_type(data_type: Type | None) -> bool:
    """Return whether Spark cannot represent a file's type.

    Such types are times of day, nanoseconds, UUIDs and columns without values, also inside structs, arrays
    and maps.
    """
    if data_type is None or isinstance(data_type, str):
        return data_type in (VOID, UUID) or data_type in TIME_OF_DAY_UNITS or data_type in NANOSECONDS
    if data_type["type"] == "struct":
        return any(is_special_type(field["type"]) for field in data_type["fields"])
    return is_special_type(data_type.get("elementType", data_type.get("valueType")))
