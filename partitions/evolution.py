"""What becomes of a schema if rows come with another one, by the schema mode (docs/reference/schemas.md).

A schema is Spark's JSON form of a struct, as plain values: the rule needs no Spark. Columns are compared by name, upper and lower case being
the same, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from partitions.errors import SchemaError
from partitions.schema_merging import in_place, merged_schema
from partitions.schema_types import NO_VALUE, Schema, Type, plain_type, shown, type_name, widens

SchemaMode = Literal["strict", "merge", "overwrite", "rescue"]


@dataclass(frozen=True)
class SchemaChange:
    """One difference between a schema and that of rows.

    Attributes:
        field: the column, or dotted a field inside it.
        was: its type; None: the schema lacks it.
        found: its type in the rows; None: they lack it.
        required: whether the rows say that it is never NULL.
    """

    field: str
    was: Type | None
    found: Type | None
    required: bool = False

    @property
    def widens(self) -> bool:
        """Whether each value of the old type is one of the new type, too."""
        return self.was is not None and self.found is not None and widens(self.was, self.found)

    @property
    def narrows(self) -> bool:
        """Whether values can be cast up to the type that is there."""
        return self.was is not None and self.found is not None and widens(self.found, self.was)

    def __str__(self) -> str:
        """In words: what was there, and what was found."""
        if self.was is None:
            return f"{self.field} is new ({shown(self.found)})"
        if self.found is None:
            return f"{self.field} is missing ({shown(self.was)})"
        if self.was == NO_VALUE:
            return f"{self.field} has its first values ({shown(self.found)})"
        if self.was == self.found:
            return f"{self.field} {'must have a value' if self.required else 'may be NULL'} now ({shown(self.was)})"
        return f"{self.field} was {shown(self.was)}, is {shown(self.found)}"


@dataclass(frozen=True)
class Evolution:
    """What becomes of a schema.

    Attributes:
        action: ``none``: it stays; ``merge``: it gets columns and wider types; ``overwrite``: the rows' columns take its place.
        schema: that it becomes.
        changes: what made it so; without those that change nothing.
        rescued: columns, or dotted fields, of the rows that do not fit (mode ``rescue``).
    """

    action: Literal["none", "merge", "overwrite"]
    schema: Schema
    changes: tuple[SchemaChange, ...] = ()
    rescued: tuple[str, ...] = field(default=())

    @property
    def widened(self) -> dict[str, Type]:
        """The new types of columns that had a narrower one; of fields inside of columns the column's."""
        tops = {change.field.partition(".")[0] for change in self.changes if change.widens}
        return {each["name"]: each["type"] for each in self.schema["fields"] if each["name"] in tops}


def evolved(known: Schema, incoming: Schema, mode: SchemaMode) -> Evolution:
    """Return what a schema becomes if rows come with another one.

    Args:
        known: of the table, or the pinned one.
        incoming: of the rows.
        mode: of the target.

    Raises:
        SchemaError: reason ``incompatible_schema`` (mode strict), ``type_change_not_allowed`` or ``required_field_addition``, with the column.
    """
    changes = tuple(differences(known, incoming))
    match mode:
        case "strict":
            if changes:
                listed = "; ".join(map(str, changes))
                raise SchemaError(
                    f"expected the columns that are there, found others: {listed}",
                    reason="incompatible_schema",
                    field=changes[0].field,
                )
            return Evolution("none", known)
        case "rescue":
            misfits = [change.field for change in changes if _is_rescued(change)]
            return Evolution("none", known, rescued=tuple(misfits))
        case "overwrite":
            if not changes:
                return Evolution("none", known)
            return Evolution("overwrite", in_place(known, incoming), changes)
    kept = tuple(change for change in changes if _is_merged(change))
    return Evolution("merge" if kept else "none", merged_schema(known, incoming), kept)


def differences(schema: Schema, incoming: Schema) -> Iterator[SchemaChange]:
    """Yield how the columns of rows differ from those that are there: types and missing columns in their order, then new ones.

    Whether a column may be NULL counts at the top level only: inside of columns rows seldom know.
    """
    found = {each["name"].casefold(): each for each in incoming["fields"]}
    for column in schema["fields"]:
        other = found.get(column["name"].casefold())
        if other is None:
            yield SchemaChange(column["name"], column["type"], None)
            continue
        yield from _of_types(column["name"], column["type"], other["type"])
        if bool(column.get("nullable", True)) != bool(other.get("nullable", True)):
            yield SchemaChange(
                column["name"], column["type"], column["type"], not other.get("nullable", True)
            )
    yield from _new(schema, incoming, "")


def _is_merged(change: SchemaChange) -> bool:
    """Whether a difference changes the schema in mode merge.

    Raises:
        SchemaError: it cannot.
    """
    if change.was is None:
        if change.required:
            raise SchemaError(
                f"column {change.field} is new ({shown(change.found)}) and never NULL: the rows that are there have no value for it",
                reason="required_field_addition",
                field=change.field,
            )
        return True
    if change.found is None or change.was == change.found or change.narrows:
        return False
    if change.widens:
        return True
    raise SchemaError(
        f"column {change.field}: expected {shown(change.was)} or a type that is safely wider, found {shown(change.found)}",
        reason="type_change_not_allowed",
        field=change.field,
    )


def _is_rescued(change: SchemaChange) -> bool:
    return change.found is not None and change.was != change.found and not change.narrows


def _of_types(path: str, was: Type, becomes: Type) -> Iterator[SchemaChange]:
    """The differences of two types: of structs field by field, of arrays and maps inside of them."""
    kinds = {type_name(was), type_name(becomes)}
    if becomes == NO_VALUE:
        return
    if kinds == {"struct"}:
        assert not isinstance(was, str)
        assert not isinstance(becomes, str)
        others = {field["name"].casefold(): field for field in becomes["fields"]}
        for each in was["fields"]:
            other = others.get(each["name"].casefold())
            if other is None:
                yield SchemaChange(f"{path}.{each['name']}", each["type"], None)
            else:
                yield from _of_types(f"{path}.{each['name']}", each["type"], other["type"])
        yield from _new(was, becomes, f"{path}.")
    elif kinds == {"array"}:
        assert not isinstance(was, str)
        assert not isinstance(becomes, str)
        yield from _of_types(path, was["elementType"], becomes["elementType"])
    elif kinds == {"map"} and not isinstance(was, str) and not isinstance(becomes, str):
        if plain_type(was["keyType"]) != plain_type(becomes["keyType"]):
            yield SchemaChange(path, was, becomes)
        else:
            yield from _of_types(path, was["valueType"], becomes["valueType"])
    elif plain_type(was) != plain_type(becomes):
        yield SchemaChange(path, was, becomes)


def _new(schema: Schema, incoming: Schema, above: str) -> Iterator[SchemaChange]:
    names = {column["name"].casefold() for column in schema["fields"]}
    for each in incoming["fields"]:
        if each["name"].casefold() not in names and each["type"] != NO_VALUE:
            required = not above and not each.get("nullable", True)
            yield SchemaChange(f"{above}{each['name']}", None, each["type"], required)
