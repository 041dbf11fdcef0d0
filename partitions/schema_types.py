"""Schemas and types in Spark's JSON form, and how people read them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from partitions.errors import SchemaError

Schema = Mapping[str, Any]
"""``{"type": "struct", "fields": [{"name", "type", "nullable", "metadata"}, …]}``."""


Type = str | Mapping[str, Any]
"""The name of a type without parts, such as ``long`` or ``decimal(10,2)``; else an array, a map or a struct."""


INTEGERS = ("byte", "short", "integer", "long")


NO_VALUE = "void"
"""The type of a column that is NULL in all rows that were looked at: it has none yet, and gets that of the first value."""


DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")


_SHOWN = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
"""Spark's words in DDL, where they are others than those of its JSON."""


def widens(was: Type, becomes: Type) -> bool:
    """Return whether each value of a type without parts is one of another, wider type: what Delta and Iceberg do to a column without a rewrite."""
    if was == NO_VALUE:
        return becomes != NO_VALUE
    if not isinstance(was, str) or not isinstance(becomes, str) or was == becomes:
        return False
    if was in INTEGERS and becomes in INTEGERS:
        return INTEGERS.index(was) < INTEGERS.index(becomes)
    before, after = DECIMAL.fullmatch(was), DECIMAL.fullmatch(becomes)
    if before and after:
        (precision, scale), (wider, finer) = (tuple(map(int, field.groups())) for field in (before, after))
        return finer >= scale and wider - finer >= precision - scale
    return (was, becomes) == ("float", "double")


def all_nullable(schema: Schema) -> Schema:
    """Return a schema whose columns may all be NULL: that a query's rows have a value tells nothing of others."""
    return {**schema, "fields": [as_nullable(field) for field in schema["fields"]]}


def check_names(schema: Schema, above: str = "") -> None:
    """Raise SchemaError, reason ``incompatible_schema``, if two names differ in upper and lower case only: a table cannot hold both."""
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
        kind = field["type"]
        while not isinstance(kind, str) and kind["type"] in ("array", "map"):
            kind = kind["elementType"] if kind["type"] == "array" else kind["valueType"]
        if not isinstance(kind, str) and kind["type"] == "struct":
            check_names(kind, f"{above}{name}.")


def field_names(kind: Type) -> Iterator[str]:
    """Yield the names of the fields of a schema, or of another type, at any depth."""
    if isinstance(kind, str):
        return
    for field in kind.get("fields", ()):
        yield field["name"]
        yield from field_names(field["type"])
    for part in ("elementType", "keyType", "valueType"):
        yield from field_names(kind.get(part, NO_VALUE))


def _part_of(kind: Mapping[str, Any]) -> str:
    return "elementType" if kind["type"] == "array" else "valueType"


def with_parts(
    kind: Mapping[str, Any], of_struct: Callable[[Schema], Schema], of_part: Callable[[Type], Type]
) -> Type:
    """Return a struct, an array or a map with what is made of its fields, its items or its values; keys of maps stay."""
    if kind["type"] == "struct":
        return of_struct(kind)
    part = _part_of(kind)
    return {**kind, part: of_part(kind[part])} if part in kind else kind


def with_parts_of_both(
    kind: Mapping[str, Any],
    other: Mapping[str, Any],
    of_structs: Callable[[Schema, Schema], Schema],
    of_parts: Callable[[Type, Type], Type],
) -> Type:
    """Return a type with what is made of its parts and those of another one; as it is if the two are not both structs, arrays or maps."""
    if kind["type"] != other["type"]:
        return kind
    return with_parts(
        kind,
        lambda struct: of_structs(struct, other),
        lambda part: of_parts(part, other[_part_of(other)]),
    )


def shown(kind: Type | None) -> str:
    """Return a type in words of Spark's DDL."""
    if kind is None:
        return "nothing"
    if isinstance(kind, str):
        return _SHOWN.get(kind, kind)
    match kind["type"]:
        case "array":
            return f"array<{shown(kind['elementType'])}>"
        case "map":
            return f"map<{shown(kind['keyType'])},{shown(kind['valueType'])}>"
        case "struct":
            return f"struct<{','.join(each['name'] + ':' + shown(each['type']) for each in kind['fields'])}>"
    return str(kind["type"])


def as_nullable(column: Mapping[str, Any]) -> dict[str, Any]:
    """Return a column that may be NULL."""
    return {**column, "nullable": True}


def type_name(kind: Type) -> str:
    """Return the word of a type: ``struct``, ``array``, ``map``, or that of a simple one."""
    return kind if isinstance(kind, str) else str(kind["type"])


def plain_type(kind: Type) -> Any:
    """A type without what it says of NULL and without notes on it; names without upper case."""
    if isinstance(kind, str):
        return kind
    match kind["type"]:
        case "array":
            return ("array", plain_type(kind["elementType"]))
        case "map":
            return ("map", plain_type(kind["keyType"]), plain_type(kind["valueType"]))
        case "struct":
            return (
                "struct",
                {field["name"].casefold(): plain_type(field["type"]) for field in kind["fields"]},
            )
    return str(kind)
