"""Columns without a value, which have no type yet and fit every later one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from partitions.schema_types import NO_VALUE, Schema, Type


def without_values(schema: Schema, valued: Schema) -> Schema:
    """Return a schema in which the fields that have no value in any record have no type yet, at any depth.

    Args:
        schema: of all fields.
        valued: the same without these.
    """
    types = {each["name"]: each["type"] for each in valued["fields"]}
    fields = [
        {**each, "type": _without_value(each["type"], types.get(each["name"], NO_VALUE))}
        for each in schema["fields"]
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
    kept = ({**each, "type": _typed(each["type"])} for each in schema["fields"])
    return {**schema, "fields": [each for each in kept if each["type"] != NO_VALUE]}


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
        {**each, "type": _as_text(each["type"], inside=names is None)}
        if names is None or each["name"].casefold() in names
        else each
        for each in schema["fields"]
    ]
    return {**schema, "fields": fields}


def _as_text(kind: Type, *, inside: bool) -> Type:
    if isinstance(kind, str):
        return "string" if kind == NO_VALUE else kind
    if not inside:
        return kind
    if kind["type"] == "struct":
        return untyped_as_text(kind, None)
    inner = "elementType" if kind["type"] == "array" else "valueType"
    return {**kind, inner: _as_text(kind[inner], inside=True)} if inner in kind else kind


def has_untyped(schema: Schema) -> bool:
    """Return whether some field has no type yet, at any depth."""
    return any(_is_untyped(each["type"]) for each in schema["fields"])


def _is_untyped(kind: Type) -> bool:
    if isinstance(kind, str):
        return kind == NO_VALUE
    if kind["type"] == "struct":
        return has_untyped(kind)
    return _is_untyped(kind.get("elementType", kind.get("valueType", "")))


def with_first_types(known: Schema, incoming: Schema) -> Schema:
    """Return a schema in which fields that had no type yet have that of records; no other field changes, and none comes.

    Those that have one now stand at the end, where a table gets new columns.
    """
    types = {each["name"]: each["type"] for each in incoming["fields"]}
    fields = [
        {**each, "type": _first_type(each["type"], types.get(each["name"], NO_VALUE))}
        for each in known["fields"]
    ]
    return {**known, "fields": in_table_order(known["fields"], fields)}


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


def _first_type(was: Type, found: Type) -> Type:
    if was == NO_VALUE:
        return found
    if isinstance(was, str) or isinstance(found, str) or was["type"] != found["type"]:
        return was
    if was["type"] == "struct":
        return with_first_types(was, found)
    if was["type"] == "array":
        return {**was, "elementType": _first_type(was["elementType"], found["elementType"])}
    if was["type"] == "map":
        return {**was, "valueType": _first_type(was["valueType"], found["valueType"])}
    return was
