"""Whether values of a file's own type may be loaded into a column: always, if each survives the way there and back, or never.

Types are in Spark's JSON form. Beside Spark's there are ``time(millis)``, ``time(micros)`` and ``time(nanos)``: a time of day, counted from midnight;
``date(any)``, ``timestamp(any)`` and ``timestamp_ntz(any)``, which may lie beyond the years 1 to 9999; and ``uuid``, 16 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from partitions.records.forms import DECIMAL, INTEGER_BITS, WHOLE_BITS, Type
from partitions.schema_types import widens

Conversion = Literal["same", "always", "checked"]
"""``same``: nothing is to be done; ``always``: the column holds each value; ``checked``: it depends on the value."""

VOID = "void"
"""The type of a column without any value."""

TIMES: dict[str, int] = {"time(millis)": 1_000, "time(micros)": 1_000_000, "time(nanos)": 1_000_000_000}
"""Times of day, with their parts of a second."""

NANOSECONDS: dict[str, str] = {"timestamp(nanos)": "timestamp", "timestamp_ntz(nanos)": "timestamp_ntz"}
"""Times counted in nanoseconds, with the type that holds them to the microsecond."""

DOUBTFUL: dict[str, str] = {f"{name}(any)": name for name in ("date", "timestamp", "timestamp_ntz")}
"""Dates and times that may lie beyond the years 1 to 9999, with the type that holds the others."""

ITEM, KEY, VALUE = "[]", "{key}", "{value}"
"""What stands for the parts of arrays and maps in the paths of fields."""

UUID = "uuid"
VARIANT = "variant"

_ORDER: tuple[Conversion, ...] = ("same", "always", "checked")


def conversion(own: Type, column: Type) -> Conversion | None:
    """Return how values of a file's own type get into a column; None if they are something else.

    Args:
        own: the type of the file's column.
        column: the type of the table's column.
    """
    if own == VOID:
        return "always"
    if isinstance(own, str) and isinstance(column, str):
        if own == column:
            return "same"
        if own in DOUBTFUL:
            return None if conversion(DOUBTFUL[own], column) is None else "checked"
        if own == UUID:
            return "always" if column in ("string", "binary") else None
        if own == VARIANT:
            return "always" if column == "string" else None
        if own in NANOSECONDS:
            return "always" if column == NANOSECONDS[own] else "checked" if column == "long" else None
        if own in TIMES:
            return "always" if column == "string" else None
        if widens(own, column):
            return "always"
        is_checked = (_is_number(own) and _is_number(column)) or (own == "binary" and column == "string")
        return "checked" if is_checked else None
    if isinstance(own, str) or isinstance(column, str) or own["type"] != column["type"]:
        return None
    if own["type"] == "array":
        return conversion(own["elementType"], column["elementType"])
    if own["type"] == "map":
        if conversion(own["keyType"], column["keyType"]) != "same":
            return None
        return conversion(own["valueType"], column["valueType"])
    if own["type"] != "struct":
        return None
    types = {field["name"].casefold(): field["type"] for field in own["fields"]}
    inner = [
        conversion(types[field["name"].casefold()], field["type"])
        for field in column["fields"]
        if field["name"].casefold() in types
    ]
    steps = [step for step in inner if step is not None]
    return max(steps, key=_ORDER.index, default="same") if len(steps) == len(inner) else None


def _is_number(data_type: str) -> bool:
    return data_type in INTEGER_BITS or data_type in WHOLE_BITS or DECIMAL.fullmatch(data_type) is not None


def shown_type(own: Type) -> str:
    """Return a file's own type as a user knows it."""
    if isinstance(own, str):
        own = DOUBTFUL.get(own, own)
        return {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(own, own)
    return str(own["type"])


def paths_without_value(name: str, own: Type) -> Iterator[tuple[str, ...]]:
    """Yield the fields of a column that have no value in a file, at any depth, case-folded; ``ITEM`` and ``VALUE`` in arrays and maps."""
    folded = name.casefold()
    if not has_value(own):
        yield (folded,)
    elif not isinstance(own, str):
        inner = (
            [(field["name"], field["type"]) for field in own["fields"]]
            if own["type"] == "struct"
            else [(ITEM, own["elementType"])]
            if own["type"] == "array"
            else [(VALUE, own["valueType"])]
        )
        for each, kind in inner:
            for path in paths_without_value(each, kind):
                yield (folded, *path)


def has_value(own: Type) -> bool:
    """Return whether a column of this type can have a value other than NULL and empty ones; a struct without fields is no such type."""
    if isinstance(own, str):
        return own != VOID
    if own["type"] == "struct":
        return not own["fields"] or any(has_value(field["type"]) for field in own["fields"])
    return has_value(own.get("elementType", own.get("valueType")))


def is_special_type(data_type: Type | None) -> bool:
    """Return whether Spark cannot tell a file's own type: of a time of day, of nanoseconds, of a UUID, of a column without a value."""
    if data_type is None or isinstance(data_type, str):
        return data_type in (VOID, UUID) or data_type in TIMES or data_type in NANOSECONDS
    if data_type["type"] == "struct":
        return any(is_special_type(field["type"]) for field in data_type["fields"])
    return is_special_type(data_type.get("elementType", data_type.get("valueType")))
