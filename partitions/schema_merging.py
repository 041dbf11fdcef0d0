"""Schemas put together: new fields, wider types, the order of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from partitions.schema_types import (
    INTEGERS,
    NO_VALUE,
    Schema,
    Type,
    as_nullable,
    widens,
    with_parts,
    with_parts_of_both,
)
from partitions.untyped_columns import in_table_order

RESCUED_DATA = "_rescued_data"
"""The column of mode ``rescue`` with what does not fit the schema, as JSON."""


def new_fields(schema: Schema, incoming: Schema) -> Schema:
    """Return a schema with the fields of records that it lacks, at any depth; fields that both have keep the type that is known.

    Names of records are told apart by upper and lower case, too: see :func:`check_names`.
    """
    return merged_schema(schema, incoming, only_new=True)


def with_rescued(schema: Schema, incoming: Schema) -> Schema:
    """Return a schema with the column for what does not fit, if rows have it."""
    rescued = [column for column in incoming["fields"] if column["name"] == RESCUED_DATA]
    others = [column for column in schema["fields"] if column["name"] != RESCUED_DATA]
    return {**schema, "fields": [*others, *rescued]}


def with_wider_integers(schema: Schema, incoming: Schema) -> Schema:
    """Return a schema whose whole numbers are as wide as another one's, at any depth; nothing else of that counts."""
    others = {column["name"].casefold(): column["type"] for column in incoming["fields"]}
    fields = [
        {
            **column,
            "type": _wider_integers(column["type"], others.get(column["name"].casefold(), column["type"])),
        }
        for column in schema["fields"]
    ]
    return {**schema, "fields": fields}


def with_widest_integers(schema: Schema) -> Schema:
    """Return a schema whose whole numbers are as wide as there are, at any depth; keys of maps stay."""
    return {**schema, "fields": [{**column, "type": _widest(column["type"])} for column in schema["fields"]]}


def _widest(kind: Type) -> Type:
    if isinstance(kind, str):
        return INTEGERS[-1] if kind in INTEGERS else kind
    return with_parts(kind, with_widest_integers, _widest)


def merged_schema(schema: Schema, incoming: Schema, *, only_new: bool = False) -> Schema:
    """The columns that are there with their wider types, then new ones."""

    def key(column: Mapping[str, Any]) -> str:
        name: str = column["name"]
        return name if only_new else name.casefold()

    others = {key(column): column for column in incoming["fields"]}
    names = {key(column) for column in schema["fields"]}
    merged = [
        {**column, "type": _wider(column["type"], others[key(column)]["type"], only_new=only_new)}
        if key(column) in others
        else column
        for column in schema["fields"]
    ]
    added = [
        as_nullable(column)
        for column in incoming["fields"]
        if key(column) not in names and column["type"] != NO_VALUE
    ]
    return {**schema, "fields": [*in_table_order(schema["fields"], merged), *added]}


def merged_type(was: Type, incoming_type: Type) -> Type:
    """Return the type that holds values of both, at any depth: wider ones, and fields that either has; where there is none, the one that is known."""
    return _wider(was, incoming_type, only_new=False)


def _wider(was: Type, incoming_type: Type, *, only_new: bool) -> Type:
    if was == NO_VALUE:
        return incoming_type
    if isinstance(was, str) or isinstance(incoming_type, str):
        return incoming_type if not only_new and widens(was, incoming_type) else was
    merge, widen = partial(merged_schema, only_new=only_new), partial(_wider, only_new=only_new)
    return with_parts_of_both(was, incoming_type, merge, widen)


def _wider_integers(was: Type, incoming_type: Type) -> Type:
    if isinstance(was, str) or isinstance(incoming_type, str):
        return incoming_type if was in INTEGERS and widens(was, incoming_type) else was
    return with_parts_of_both(was, incoming_type, with_wider_integers, _wider_integers)


def in_place(schema: Schema, incoming: Schema) -> Schema:
    """The rows' columns: those that the table has in its order, then the others."""
    order = {column["name"].casefold(): number for number, column in enumerate(schema["fields"])}
    fields: Sequence[Any] = sorted(
        incoming["fields"], key=lambda column: order.get(column["name"].casefold(), len(order))
    )
    return {**incoming, "fields": list(fields)}
