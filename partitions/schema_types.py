"""Schemas and types in Spark's JSON form, and their text for people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from partitions.errors import SchemaError

Schema = Mapping[str, Any]
"""``{"type": "struct", "fields": [{"name", "type", "nullable", "metadata"}, …]}``."""


Type = str | Mapping[str, Any]
"""The name of a type without parts, such as ``long`` or ``decimal(10,2)``; or an array, map or struct."""


INTEGERS = ("byte", "short", "integer", "long")


NO_VALUE = "void"
"""The type of a column without a value so far; it gets the type of the first value."""


DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")


_SHOWN = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
"""Spark's type names in DDL, where they differ from those in its JSON."""


def widens(narrow: Type, wide: Type) -> bool:
    """Return whether a wider type holds each value of a type without parts.

    Delta and Iceberg widen such columns without a rewrite.
    """
    if narrow == NO_VALUE:
        return wide != NO_VALUE
    if not isinstance(narrow, str) or not isinstance(wide, str) or narrow == wide:
        return False
    if narrow in INTEGERS and wide in INTEGERS:
        return INTEGERS.index(narrow) < INTEGERS.index(wide)
    before, after = DECIMAL.fullmatch(narrow), DECIMAL.fullmatch(wide)
    if before and after:
        (precision, scale), (wider, finer) = (tuple(map(int, field.groups())) for field in (before, after))
        return finer >= scale and wider - finer >= precision - scale
    return (narrow, wide) == ("float", "double")


def all_nullable(schema: Schema) -> Schema:
    """Return a schema whose columns may all be NULL.

    That the rows of one query have a value proves nothing for later rows.
    """
    return {**schema, "fields": [as_nullable(field) for field in schema["fields"]]}


def check_field_names(schema: Schema, above: str = "") -> None:
    """Raise SchemaError, reason ``incompatible_schema``, if two names differ in case only.

    A table cannot hold both.
    """
    spelt: dict[str, str] = {}
    for field in schema["fields"]:
        name = field["name"]
        first = spelt.setdefault(name.casefold(), name)
        if first != name:
            raise SchemaError(
                f"column {above}{name}: expected a name of its own, found one that differs from {above}{first} in upper and lower case only",
                reason="incompatible_schema",
                field=f"{above}{name}",
            )
        data_type = field["type"]
        while not isinstance(data_type, str) and data_type["type"] in ("array", "map"):
            data_type = data_type["elementType"] if data_type["type"] == "array" else data_type["valueType"]
        if not isinstance(data_type, str) and data_type["type"] == "struct":
            check_field_names(data_type, f"{above}{name}.")


def field_names(data_type: Type) -> Iterator[str]:
    """Yield the names of all fields of a schema or type, at any depth."""
    if isinstance(data_type, str):
        return
    for field in data_type.get("fields", ()):
        yield field["name"]
        yield from field_names(field["type"])
    for part in ("elementType", "keyType", "valueType"):
        yield from field_names(data_type.get(part, NO_VALUE))


def _part_of(data_type: Mapping[str, Any]) -> str:
    return "elementType" if data_type["type"] == "array" else "valueType"


def with_parts(
    data_type: Mapping[str, Any], of_struct: Callable[[Schema], Schema], of_part: Callable[[Type], Type]
) -> Type:
    """Return a struct, array or map with its fields, items or values changed; keys of maps stay."""
    if data_type["type"] == "struct":
        return of_struct(data_type)
    part = _part_of(data_type)
    return {**data_type, part: of_part(data_type[part])} if part in data_type else data_type


def with_parts_of_both(
    data_type: Mapping[str, Any],
    other_type: Mapping[str, Any],
    of_structs: Callable[[Schema, Schema], Schema],
    of_parts: Callable[[Type, Type], Type],
) -> Type:
    """Return a type whose parts are combined with those of another type.

    It stays as it is unless both are structs, both arrays or both maps.
    """
    if data_type["type"] != other_type["type"]:
        return data_type
    return with_parts(
        data_type,
        lambda struct: of_structs(struct, other_type),
        lambda part: of_parts(part, other_type[_part_of(other_type)]),
    )


def type_text(data_type: Type | None) -> str:
    """Return a type as Spark's DDL writes it."""
    if data_type is None:
        return "nothing"
    if isinstance(data_type, str):
        return _SHOWN.get(data_type, data_type)
    match data_type["type"]:
        case "array":
            return f"array<{type_text(data_type['elementType'])}>"
        case "map":
            return f"map<{type_text(data_type['keyType'])},{type_text(data_type['valueType'])}>"
        case "struct":
            return f"struct<{','.join(field['name'] + ':' + type_text(field['type']) for field in data_type['fields'])}>"
    return str(data_type["type"])


def as_nullable(column: Mapping[str, Any]) -> dict[str, Any]:
    """Return a column that may be NULL."""
    return {**column, "nullable": True}


def type_name(data_type: Type) -> str:
    """Return the name of a type: ``struct``, ``array``, ``map``, or a simple type's."""
    return data_type if isinstance(data_type, str) else str(data_type["type"])


def plain_type(data_type: Type) -> Any:
    """Return a type without nullability and metadata, and with names in lower case, for comparison."""
    if isinstance(data_type, str):
        return data_type
    match data_type["type"]:
        case "array":
            return ("array", plain_type(data_type["elementType"]))
        case "map":
            return ("map", plain_type(data_type["keyType"]), plain_type(data_type["valueType"]))
        case "struct":
            return (
                "struct",
                {field["name"].casefold(): plain_type(field["type"]) for field in data_type["fields"]},
            )
    return str(data_type)
