"""Decide how a schema changes when rows arrive with another one, by schema mode.

See docs/reference/schemas.md. A schema is Spark's JSON form of a struct, as plain values, so no rule needs
Spark. Columns match by name, in any order; case does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from partitions.errors import SchemaError
from partitions.schema_merging import merge_schemas, replace_columns
from partitions.schema_types import NO_VALUE, Schema, Type, plain_type, type_name, type_text, widens

SchemaMode = Literal["strict", "merge", "overwrite", "rescue"]


@dataclass(frozen=True)
class SchemaChange:
    """One difference between a schema and the schema of incoming rows.

    Attributes:
        field: the column, or a field inside it with dots.
        old_type: its type in the schema; None if the schema lacks it.
        new_type: its type in the rows; None if they lack it.
        required: whether the rows declare it as never NULL.
    """

    field: str
    old_type: Type | None
    new_type: Type | None
    required: bool = False

    @property
    def widens(self) -> bool:
        """Whether the new type holds all values of the old type."""
        return (
            self.old_type is not None and self.new_type is not None and widens(self.old_type, self.new_type)
        )

    @property
    def narrows(self) -> bool:
        """Whether the old type holds all values of the new type."""
        return (
            self.old_type is not None and self.new_type is not None and widens(self.new_type, self.old_type)
        )

    def __str__(self) -> str:
        """Return the old and the new type in words."""
        if self.old_type is None:
            return f"{self.field} is new ({type_text(self.new_type)})"
        if self.new_type is None:
            return f"{self.field} is missing ({type_text(self.old_type)})"
        if self.old_type == NO_VALUE:
            return f"{self.field} has its first values ({type_text(self.new_type)})"
        if self.old_type == self.new_type:
            return f"{self.field} {'must have a value' if self.required else 'may be NULL'} now ({type_text(self.old_type)})"
        return f"{self.field} was {type_text(self.old_type)}, is {type_text(self.new_type)}"


@dataclass(frozen=True)
class Evolution:
    """The change of a schema.

    Attributes:
        action: ``none``: it stays; ``merge``: it gets columns and wider types; ``overwrite``: the rows'
        columns replace it.
        schema: the resulting schema.
        changes: the differences that change it.
        rescued: columns, or fields with dots, of the rows that do not fit (mode ``rescue``).
    """

    action: Literal["none", "merge", "overwrite"]
    schema: Schema
    changes: tuple[SchemaChange, ...] = ()
    rescued: tuple[str, ...] = field(default=())

    @property
    def widened(self) -> dict[str, Type]:
        """The new types of the columns that get wider; for a field inside a column, the column's type."""
        tops = {change.field.partition(".")[0] for change in self.changes if change.widens}
        return {column["name"]: column["type"] for column in self.schema["fields"] if column["name"] in tops}


def evolve_schema(current: Schema, incoming: Schema, mode: SchemaMode) -> Evolution:
    """Return how a schema changes when rows arrive with another one.

    Args:
        current: the schema of the table, or the pinned one.
        incoming: the schema of the rows.
        mode: schema mode of the target.

    Raises:
        SchemaError: reason ``incompatible_schema`` (mode strict), ``type_change_not_allowed`` or
        ``required_field_addition``, with the column.
    """
    changes = tuple(schema_changes(current, incoming))
    match mode:
        case "strict":
            if changes:
                listed = "; ".join(map(str, changes))
                raise SchemaError(
                    f"expected the table's columns, found others: {listed}",
                    reason="incompatible_schema",
                    field=changes[0].field,
                )
            return Evolution("none", current)
        case "rescue":
            misfits = [change.field for change in changes if _is_rescued(change)]
            return Evolution("none", current, rescued=tuple(misfits))
        case "overwrite":
            if not changes:
                return Evolution("none", current)
            return Evolution("overwrite", replace_columns(current, incoming), changes)
    merged_changes = tuple(change for change in changes if _is_merged(change))
    return Evolution("merge" if merged_changes else "none", merge_schemas(current, incoming), merged_changes)


def schema_changes(schema: Schema, incoming: Schema) -> Iterator[SchemaChange]:
    """Yield the differences of incoming columns: changed and missing ones in schema order, then new ones.

    Only at the top level does it count whether a column may be NULL: inside columns rows seldom declare
    it.
    """
    incoming_columns = {column["name"].casefold(): column for column in incoming["fields"]}
    for column in schema["fields"]:
        incoming_column = incoming_columns.get(column["name"].casefold())
        if incoming_column is None:
            yield SchemaChange(column["name"], column["type"], None)
            continue
        yield from _of_types(column["name"], column["type"], incoming_column["type"])
        if bool(column.get("nullable", True)) != bool(incoming_column.get("nullable", True)):
            yield SchemaChange(
                column["name"], column["type"], column["type"], not incoming_column.get("nullable", True)
            )
    yield from _new(schema, incoming, "")


def _is_merged(change: SchemaChange) -> bool:
    """Return whether a difference changes the schema in mode merge.

    Raises:
        SchemaError: mode merge does not allow the difference.
    """
    if change.old_type is None:
        if change.required:
            raise SchemaError(
                f"column {change.field} is new ({type_text(change.new_type)}) and never NULL, but the "
                "table's existing rows have no value for it",
                reason="required_field_addition",
                field=change.field,
            )
        return True
    if change.new_type is None or change.old_type == change.new_type or change.narrows:
        return False
    if change.widens:
        return True
    raise SchemaError(
        f"column {change.field}: expected {type_text(change.old_type)} or a wider type that keeps all "
        f"values, found {type_text(change.new_type)}",
        reason="type_change_not_allowed",
        field=change.field,
    )


def _is_rescued(change: SchemaChange) -> bool:
    return change.new_type is not None and change.old_type != change.new_type and not change.narrows


def _of_types(path: str, old_type: Type, new_type: Type) -> Iterator[SchemaChange]:
    """Yield the differences of two types: structs field by field, arrays and maps by their parts."""
    kinds = {type_name(old_type), type_name(new_type)}
    if new_type == NO_VALUE:
        return
    if kinds == {"struct"}:
        assert not isinstance(old_type, str)
        assert not isinstance(new_type, str)
        new_fields = {field["name"].casefold(): field for field in new_type["fields"]}
        for field in old_type["fields"]:
            new_field = new_fields.get(field["name"].casefold())
            if new_field is None:
                yield SchemaChange(f"{path}.{field['name']}", field["type"], None)
            else:
                yield from _of_types(f"{path}.{field['name']}", field["type"], new_field["type"])
        yield from _new(old_type, new_type, f"{path}.")
    elif kinds == {"array"}:
        assert not isinstance(old_type, str)
        assert not isinstance(new_type, str)
        yield from _of_types(path, old_type["elementType"], new_type["elementType"])
    elif kinds == {"map"} and not isinstance(old_type, str) and not isinstance(new_type, str):
        if plain_type(old_type["keyType"]) != plain_type(new_type["keyType"]):
            yield SchemaChange(path, old_type, new_type)
        else:
            yield from _of_types(path, old_type["valueType"], new_type["valueType"])
    elif plain_type(old_type) != plain_type(new_type):
        yield SchemaChange(path, old_type, new_type)


def _new(schema: Schema, incoming: Schema, above: str) -> Iterator[SchemaChange]:
    names = {column["name"].casefold() for column in schema["fields"]}
    for column in incoming["fields"]:
        if column["name"].casefold() not in names and column["type"] != NO_VALUE:
            required = not above and not column.get("nullable", True)
            yield SchemaChange(f"{above}{column['name']}", None, column["type"], required)
