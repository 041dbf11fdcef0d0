"""Columns without a value, which have no type yet and fit every later one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from partitions.schema_types import NO_VALUE, Schema, Type, with_parts, with_parts_of_both


def without_values(schema: Schema, valued: Schema) -> Schema:
    """Return a schema in which the fields that have no value in any record have no type yet, at any depth.

    Args:
        schema: of all fields.
        valued: the same without these.
    """
    types = {field["name"]: field["type"] for field in valued["fields"]}
    fields = [
        {**field, "type": _without_value(field["type"], types.get(field["name"], NO_VALUE))}
        for field in schema["fields"]
    ]
    return {**schema, "fields": fields}


def _without_value(kind: Type, valued: Type) -> Type:
    if valued == NO_VALUE:
        return NO_VALUE
    if isinstance(kind, str) or isinstance(valued, str) or kind["type"] != valued["type"]:
        return kind
    if kind["type"] == "struct":
        return without_values(kind, valued)
    if kind["type"] == "array":
        return {**kind, "elementType": _without_value(kind["elementType"], valued["elementType"])}
    return kind


def typed_fields(schema: Schema) -> Schema:
    """Return a schema without the fields that have no type yet, at any depth."""
    typed = ({**field, "type": _typed(field["type"])} for field in schema["fields"])
    return {**schema, "fields": [field for field in typed if field["type"] != NO_VALUE]}


def with_untyped_values(schema: Schema) -> Schema:
    """Return a schema without the columns that hold no value in any row: lists, maps and structs of nothing but null are values."""
    return {**schema, "fields": [field for field in schema["fields"] if field["type"] != NO_VALUE]}


def _typed(kind: Type) -> Type:
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct" and kind["fields"]:
        inner = typed_fields(kind)
        return inner if inner["fields"] else NO_VALUE
    if kind["type"] == "array":
        item = _typed(kind["elementType"])
        return {**kind, "elementType": item} if item != NO_VALUE else NO_VALUE
    if kind["type"] == "map":
        value = _typed(kind["valueType"])
        return {**kind, "valueType": value} if value != NO_VALUE else NO_VALUE
    return kind


def untyped_as_text(schema: Schema, names: Collection[str] | None) -> Schema:
    """Return a schema in which columns that have no type yet are text: those of these names, case-folded; None: all of them, at any depth."""
    fields = [
        {**field, "type": _as_text(field["type"], inside=names is None)}
        if names is None or field["name"].casefold() in names
        else field
        for field in schema["fields"]
    ]
    return {**schema, "fields": fields}


def _as_text(kind: Type, *, inside: bool) -> Type:
    if isinstance(kind, str):
        return "string" if kind == NO_VALUE else kind
    if not inside:
        return kind
    return with_parts(kind, lambda struct: untyped_as_text(struct, None), partial(_as_text, inside=True))


def has_untyped(schema: Schema) -> bool:
    """Return whether some field has no type yet, at any depth."""
    return any(_is_untyped(field["type"]) for field in schema["fields"])


def _is_untyped(kind: Type) -> bool:
    if isinstance(kind, str):
        return kind == NO_VALUE
    if kind["type"] == "struct":
        return has_untyped(kind)
    return _is_untyped(kind.get("elementType", kind.get("valueType", "")))


def with_first_types(schema: Schema, incoming: Schema) -> Schema:
    """Return a schema in which fields that had no type yet have that of records; no other field changes, and none comes.

    Those that have one now stand at the end, where a table gets new columns.
    """
    types = {field["name"]: field["type"] for field in incoming["fields"]}
    fields = [
        {**field, "type": _first_type(field["type"], types.get(field["name"], NO_VALUE))}
        for field in schema["fields"]
    ]
    return {**schema, "fields": in_table_order(schema["fields"], fields)}


def in_table_order(before: Sequence[Any], fields: Sequence[Any]) -> list[Any]:
    """The same fields, those at the end that had no type before."""
    new = [
        _typed(was["type"]) == NO_VALUE != _typed(now["type"])
        for was, now in zip(before, fields, strict=True)
    ]
    return [
        *(field for field, is_new in zip(fields, new, strict=True) if not is_new),
        *(field for field, is_new in zip(fields, new, strict=True) if is_new),
    ]


def _first_type(was: Type, incoming_type: Type) -> Type:
    if was == NO_VALUE:
        return incoming_type
    if isinstance(was, str) or isinstance(incoming_type, str):
        return was
    return with_parts_of_both(was, incoming_type, with_first_types, _first_type)
