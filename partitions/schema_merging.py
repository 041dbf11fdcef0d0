"""Schemas put together: new fields, wider types, the order of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from partitions.schema_types import INTEGERS, NO_VALUE, Schema, Type, as_nullable, widens
from partitions.untyped_columns import in_table_order

RESCUED_DATA = "_rescued_data"
"""The column of mode ``rescue`` with what does not fit the schema, as JSON."""


def new_fields(known: Schema, incoming: Schema) -> Schema:
    """Return a schema with the fields of records that it lacks, at any depth; fields that both have keep the type that is known.

    Names of records are told apart by upper and lower case, too: see :func:`check_names`.
    """
    return merged_schema(known, incoming, only_new=True)


def with_rescued(known: Schema, incoming: Schema) -> Schema:
    """Return a schema with the column for what does not fit, if rows have it."""
    rescued = [each for each in incoming["fields"] if each["name"] == RESCUED_DATA]
    others = [each for each in known["fields"] if each["name"] != RESCUED_DATA]
    return {**known, "fields": [*others, *rescued]}


def with_wider_integers(known: Schema, incoming: Schema) -> Schema:
    """Return a schema whose whole numbers are as wide as another one's, at any depth; nothing else of that counts."""
    others = {each["name"].casefold(): each["type"] for each in incoming["fields"]}
    fields = [
        {**each, "type": _wider_integers(each["type"], others.get(each["name"].casefold(), each["type"]))}
        for each in known["fields"]
    ]
    return {**known, "fields": fields}


def with_widest_integers(known: Schema) -> Schema:
    """Return a schema whose whole numbers are as wide as there are, at any depth; keys of maps stay."""
    return {**known, "fields": [{**each, "type": _widest(each["type"])} for each in known["fields"]]}


def _widest(kind: Type) -> Type:
    if isinstance(kind, str):
        return INTEGERS[-1] if kind in INTEGERS else kind
    if kind["type"] == "struct":
        return with_widest_integers(kind)
    inner = "elementType" if kind["type"] == "array" else "valueType"
    return {**kind, inner: _widest(kind[inner])} if inner in kind else kind


def merged_schema(known: Schema, incoming: Schema, *, only_new: bool = False) -> Schema:
    """The columns that are there with their wider types, then new ones."""

    def key(column: Mapping[str, Any]) -> str:
        name: str = column["name"]
        return name if only_new else name.casefold()

    others = {key(each): each for each in incoming["fields"]}
    names = {key(each) for each in known["fields"]}
    kept = [
        {**each, "type": _wider(each["type"], others[key(each)]["type"], only_new=only_new)}
        if key(each) in others
        else each
        for each in known["fields"]
    ]
    added = [
        as_nullable(each)
        for each in incoming["fields"]
        if key(each) not in names and each["type"] != NO_VALUE
    ]
    return {**known, "fields": [*in_table_order(known["fields"], kept), *added]}


def merged_type(was: Type, found: Type) -> Type:
    """Return the type that holds values of both, at any depth: wider ones, and fields that either has; where there is none, the one that is known."""
    return _wider(was, found, only_new=False)


def _wider(was: Type, found: Type, *, only_new: bool) -> Type:
    if was == NO_VALUE:
        return found
    if isinstance(was, str) or isinstance(found, str):
        return found if not only_new and widens(was, found) else was
    match was["type"], found["type"]:
        case "struct", "struct":
            return merged_schema(was, found, only_new=only_new)
        case "array", "array":
            return {**was, "elementType": _wider(was["elementType"], found["elementType"], only_new=only_new)}
        case "map", "map":
            return {**was, "valueType": _wider(was["valueType"], found["valueType"], only_new=only_new)}
    return was


def _wider_integers(was: Type, found: Type) -> Type:
    if isinstance(was, str) or isinstance(found, str):
        return found if was in INTEGERS and widens(was, found) else was
    match was["type"], found["type"]:
        case "struct", "struct":
            return with_wider_integers(was, found)
        case "array", "array":
            return {**was, "elementType": _wider_integers(was["elementType"], found["elementType"])}
        case "map", "map":
            return {**was, "valueType": _wider_integers(was["valueType"], found["valueType"])}
    return was


def in_place(known: Schema, incoming: Schema) -> Schema:
    """The rows' columns: those that the table has in its order, then the others."""
    order = {each["name"].casefold(): number for number, each in enumerate(known["fields"])}
    fields: Sequence[Any] = sorted(
        incoming["fields"], key=lambda each: order.get(each["name"].casefold(), len(order))
    )
    return {**incoming, "fields": list(fields)}
