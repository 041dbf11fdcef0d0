"""Merge schemas: new fields, wider types, and the column order of a table."""

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
"""The column of mode ``rescue`` with the values that do not fit the schema, as JSON."""


def new_fields(schema: Schema, incoming: Schema) -> Schema:
    """Return a schema with the fields that records have beyond it, at any depth.

    Shared fields keep the type of ``schema``. Field names are case-sensitive here: see
    :func:`check_field_names`.
    """
    return merge_schemas(schema, incoming, only_new=True)


def with_rescued(schema: Schema, incoming: Schema) -> Schema:
    """Return a schema that ends with the column of rescued values, if the rows have it."""
    rescued = [column for column in incoming["fields"] if column["name"] == RESCUED_DATA]
    columns = [column for column in schema["fields"] if column["name"] != RESCUED_DATA]
    return {**schema, "fields": [*columns, *rescued]}


def with_wider_integers(schema: Schema, incoming: Schema) -> Schema:
    """Return a schema with the integer types of ``incoming`` where they are wider, at any depth."""
    incoming_types = {column["name"].casefold(): column["type"] for column in incoming["fields"]}
    fields = [
        {
            **column,
            "type": _wider_integers(
                column["type"], incoming_types.get(column["name"].casefold(), column["type"])
            ),
        }
        for column in schema["fields"]
    ]
    return {**schema, "fields": fields}


def with_widest_integers(schema: Schema) -> Schema:
    """Return a schema with all integers as ``long``, at any depth; keys of maps stay."""
    return {**schema, "fields": [{**column, "type": _widest(column["type"])} for column in schema["fields"]]}


def _widest(data_type: Type) -> Type:
    if isinstance(data_type, str):
        return INTEGERS[-1] if data_type in INTEGERS else data_type
    return with_parts(data_type, with_widest_integers, _widest)


def merge_schemas(schema: Schema, incoming: Schema, *, only_new: bool = False) -> Schema:
    """Return the columns of a schema with their wider types, then the new ones.

    With ``only_new``, types stay and names are case-sensitive.
    """

    def key(column: Mapping[str, Any]) -> str:
        name: str = column["name"]
        return name if only_new else name.casefold()

    incoming_columns = {key(column): column for column in incoming["fields"]}
    names = {key(column) for column in schema["fields"]}
    merged = [
        {**column, "type": _wider(column["type"], incoming_columns[key(column)]["type"], only_new=only_new)}
        if key(column) in incoming_columns
        else column
        for column in schema["fields"]
    ]
    added = [
        as_nullable(column)
        for column in incoming["fields"]
        if key(column) not in names and column["type"] != NO_VALUE
    ]
    return {**schema, "fields": [*in_table_order(schema["fields"], merged), *added]}


def merge_types(current_type: Type, incoming_type: Type) -> Type:
    """Return the type that holds values of both, at any depth; the current type if there is none.

    Wider types win, and structs get the fields of both.
    """
    return _wider(current_type, incoming_type, only_new=False)


def _wider(current_type: Type, incoming_type: Type, *, only_new: bool) -> Type:
    if current_type == NO_VALUE:
        return incoming_type
    if isinstance(current_type, str) or isinstance(incoming_type, str):
        return incoming_type if not only_new and widens(current_type, incoming_type) else current_type
    merge, widen = partial(merge_schemas, only_new=only_new), partial(_wider, only_new=only_new)
    return with_parts_of_both(current_type, incoming_type, merge, widen)


def _wider_integers(current_type: Type, incoming_type: Type) -> Type:
    if isinstance(current_type, str) or isinstance(incoming_type, str):
        return (
            incoming_type
            if current_type in INTEGERS and widens(current_type, incoming_type)
            else current_type
        )
    return with_parts_of_both(current_type, incoming_type, with_wider_integers, _wider_integers)


def replace_columns(schema: Schema, incoming: Schema) -> Schema:
    """Return the rows' columns: those that the table has in its order, then the new ones."""
    order = {column["name"].casefold(): number for number, column in enumerate(schema["fields"])}
    fields: Sequence[Any] = sorted(
        incoming["fields"], key=lambda column: order.get(column["name"].casefold(), len(order))
    )
    return {**incoming, "fields": list(fields)}
