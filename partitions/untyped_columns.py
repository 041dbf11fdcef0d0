"""Columns without a value: they have no type yet and accept any later one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from partitions.schema_types import NO_VALUE, Schema, Type, with_parts, with_parts_of_both


def without_values(schema: Schema, valued: Schema) -> Schema:
    """Return a schema in which the fields without a value in any record have no type, at any depth.

    Args:
        schema: the schema of all fields.
        valued: the same schema without the fields that have no value.
    """
    types = {field["name"]: field["type"] for field in valued["fields"]}
    fields = [
        {**field, "type": _without_value(field["type"], types.get(field["name"], NO_VALUE))}
        for field in schema["fields"]
    ]
    return {**schema, "fields": fields}


def _without_value(data_type: Type, valued: Type) -> Type:
    if valued == NO_VALUE:
        return NO_VALUE
    if isinstance(data_type, str) or isinstance(valued, str) or data_type["type"] != valued["type"]:
        return data_type
    if data_type["type"] == "struct":
        return without_values(data_type, valued)
    if data_type["type"] == "array":
        return {**data_type, "elementType": _without_value(data_type["elementType"], valued["elementType"])}
    return data_type


def typed_fields(schema: Schema) -> Schema:
    """Return a schema without the fields that have no type yet, at any depth."""
    typed = ({**field, "type": _typed(field["type"])} for field in schema["fields"])
    return {**schema, "fields": [field for field in typed if field["type"] != NO_VALUE]}


def with_untyped_values(schema: Schema) -> Schema:
    """Return a schema without the columns that have no type yet.

    Lists, maps and structs of nothing but null are values, so they stay.
    """
    return {**schema, "fields": [field for field in schema["fields"] if field["type"] != NO_VALUE]}


def _typed(data_type: Type) -> Type:
    if isinstance(data_type, str):
        return data_type
    if data_type["type"] == "struct" and data_type["fields"]:
        inner = typed_fields(data_type)
        return inner if inner["fields"] else NO_VALUE
    if data_type["type"] == "array":
        item = _typed(data_type["elementType"])
        return {**data_type, "elementType": item} if item != NO_VALUE else NO_VALUE
    if data_type["type"] == "map":
        value = _typed(data_type["valueType"])
        return {**data_type, "valueType": value} if value != NO_VALUE else NO_VALUE
    return data_type


def untyped_as_text(schema: Schema, names: Collection[str] | None) -> Schema:
    """Return a schema in which columns without a type are text.

    With ``names`` (case-folded): these columns only, at the top level. None: all, at any depth.
    """
    fields = [
        {**field, "type": _as_text(field["type"], inside=names is None)}
        if names is None or field["name"].casefold() in names
        else field
        for field in schema["fields"]
    ]
    return {**schema, "fields": fields}


def _as_text(data_type: Type, *, inside: bool) -> Type:
    if isinstance(data_type, str):
        return "string" if data_type == NO_VALUE else data_type
    if not inside:
        return data_type
    return with_parts(data_type, lambda struct: untyped_as_text(struct, None), partial(_as_text, inside=True))


def has_untyped(schema: Schema) -> bool:
    """Return whether some field has no type yet, at any depth."""
    return any(_is_untyped(field["type"]) for field in schema["fields"])


def _is_untyped(data_type: Type) -> bool:
    if isinstance(data_type, str):
        return data_type == NO_VALUE
    if data_type["type"] == "struct":
        return has_untyped(data_type)
    return _is_untyped(data_type.get("elementType", data_type.get("valueType", "")))


def with_first_types(schema: Schema, incoming: Schema) -> Schema:
    """Return a schema in which fields without a type get their type from records.

    No other field changes, and none is added. Columns that get a type move to the end, where a table adds
    new columns.
    """
    types = {field["name"]: field["type"] for field in incoming["fields"]}
    fields = [
        {**field, "type": _first_type(field["type"], types.get(field["name"], NO_VALUE))}
        for field in schema["fields"]
    ]
    return {**schema, "fields": in_table_order(schema["fields"], fields)}


def in_table_order(before: Sequence[Any], fields: Sequence[Any]) -> list[Any]:
    """Return ``fields`` with those that had no type before moved to the end."""
    new = [
        _typed(field["type"]) == NO_VALUE != _typed(field_after["type"])
        for field, field_after in zip(before, fields, strict=True)
    ]
    return [
        *(field for field, is_new in zip(fields, new, strict=True) if not is_new),
        *(field for field, is_new in zip(fields, new, strict=True) if is_new),
    ]


def _first_type(current_type: Type, incoming_type: Type) -> Type:
    if current_type == NO_VALUE:
        return incoming_type
    if isinstance(current_type, str) or isinstance(incoming_type, str):
        return current_type
    return with_parts_of_both(current_type, incoming_type, with_first_types, _first_type)
