"""What becomes of a schema if rows come with another one, by the schema mode (docs/schemas.md).

A schema is Spark's JSON form of a struct, as plain values: the rule needs no Spark. Columns are compared by name, upper and lower case being
the same, in any order.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from partitions.errors import SchemaError

SchemaMode = Literal["strict", "merge", "overwrite", "rescue"]

Schema = Mapping[str, Any]
"""``{"type": "struct", "fields": [{"name", "type", "nullable", "metadata"}, …]}``."""

Type = str | Mapping[str, Any]
"""The name of a type without parts, such as ``long`` or ``decimal(10,2)``; else an array, a map or a struct."""

RESCUED_DATA = "_rescued_data"
"""The column of mode ``rescue`` with what does not fit the schema, as JSON."""

_INTEGERS = ("byte", "short", "integer", "long")
_NO_VALUE = "void"
"""The type of a column that is NULL in all rows that were looked at: it has none yet, and gets that of the first value."""
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_SHOWN = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
"""Spark's words in DDL, where they are others than those of its JSON."""


@dataclass(frozen=True)
class Change:
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
        if self.was == _NO_VALUE:
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
    changes: tuple[Change, ...] = ()
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
            return Evolution("overwrite", _in_place(known, incoming), changes)
    kept = tuple(change for change in changes if _is_merged(change))
    return Evolution("merge" if kept else "none", _merged(known, incoming), kept)


def differences(known: Schema, incoming: Schema) -> Iterator[Change]:
    """Yield how the columns of rows differ from those that are there: types and missing columns in their order, then new ones.

    Whether a column may be NULL counts at the top level only: inside of columns rows seldom know.
    """
    found = {each["name"].casefold(): each for each in incoming["fields"]}
    for column in known["fields"]:
        other = found.get(column["name"].casefold())
        if other is None:
            yield Change(column["name"], column["type"], None)
            continue
        yield from _of_types(column["name"], column["type"], other["type"])
        if bool(column.get("nullable", True)) != bool(other.get("nullable", True)):
            yield Change(column["name"], column["type"], column["type"], not other.get("nullable", True))
    yield from _new(known, incoming, "")


def widens(was: Type, becomes: Type) -> bool:
    """Return whether each value of a type without parts is one of another, wider type: what Delta and Iceberg do to a column without a rewrite."""
    if was == _NO_VALUE:
        return becomes != _NO_VALUE
    if not isinstance(was, str) or not isinstance(becomes, str) or was == becomes:
        return False
    if was in _INTEGERS and becomes in _INTEGERS:
        return _INTEGERS.index(was) < _INTEGERS.index(becomes)
    before, after = _DECIMAL.fullmatch(was), _DECIMAL.fullmatch(becomes)
    if before and after:
        (precision, scale), (wider, finer) = (tuple(map(int, each.groups())) for each in (before, after))
        return finer >= scale and wider - finer >= precision - scale
    return (was, becomes) == ("float", "double")


def new_fields(known: Schema, incoming: Schema) -> Schema:
    """Return a schema with the fields of records that it lacks, at any depth; fields that both have keep the type that is known.

    Names of records are told apart by upper and lower case, too: see :func:`check_names`.
    """
    return _merged(known, incoming, only_new=True)


def without_values(schema: Schema, valued: Schema) -> Schema:
    """Return a schema in which the fields that have no value in any record have no type yet, at any depth.

    Args:
        schema: of all fields.
        valued: the same without these.
    """
    types = {each["name"]: each["type"] for each in valued["fields"]}
    fields = [
        {**each, "type": _without_value(each["type"], types.get(each["name"], _NO_VALUE))}
        for each in schema["fields"]
    ]
    return {**schema, "fields": fields}


def _without_value(kind: Type, valued: Type) -> Type:
    if valued == _NO_VALUE:
        return _NO_VALUE
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
    return {**schema, "fields": [each for each in kept if each["type"] != _NO_VALUE]}


def _typed(kind: Type) -> Type:
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct" and kind["fields"]:
        inner = typed_fields(kind)
        return inner if inner["fields"] else _NO_VALUE
    if kind["type"] == "array":
        item = _typed(kind["elementType"])
        return {**kind, "elementType": item} if item != _NO_VALUE else _NO_VALUE
    if kind["type"] == "map":
        value = _typed(kind["valueType"])
        return {**kind, "valueType": value} if value != _NO_VALUE else _NO_VALUE
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
        return "string" if kind == _NO_VALUE else kind
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
        return kind == _NO_VALUE
    if kind["type"] == "struct":
        return has_untyped(kind)
    return _is_untyped(kind.get("elementType", kind.get("valueType", "")))


def with_first_types(known: Schema, incoming: Schema) -> Schema:
    """Return a schema in which fields that had no type yet have that of records; no other field changes, and none comes.

    Those that have one now stand at the end, where a table gets new columns.
    """
    types = {each["name"]: each["type"] for each in incoming["fields"]}
    fields = [
        {**each, "type": _first_type(each["type"], types.get(each["name"], _NO_VALUE))}
        for each in known["fields"]
    ]
    return {**known, "fields": _in_table_order(known["fields"], fields)}


def _in_table_order(before: Sequence[Any], fields: Sequence[Any]) -> list[Any]:
    """The same fields, those at the end that had no type before."""
    new = [
        _typed(was["type"]) == _NO_VALUE != _typed(now["type"])
        for was, now in zip(before, fields, strict=True)
    ]
    return [
        *(field for field, is_new in zip(fields, new, strict=True) if not is_new),
        *(field for field, is_new in zip(fields, new, strict=True) if is_new),
    ]


def _first_type(was: Type, found: Type) -> Type:
    if was == _NO_VALUE:
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


def all_nullable(schema: Schema) -> Schema:
    """Return a schema whose columns may all be NULL: that a query's rows have a value tells nothing of others."""
    return {**schema, "fields": [_nullable(each) for each in schema["fields"]]}


def with_rescued(known: Schema, incoming: Schema) -> Schema:
    """Return a schema with the column for what does not fit, if rows have it."""
    rescued = [each for each in incoming["fields"] if each["name"] == RESCUED_DATA]
    others = [each for each in known["fields"] if each["name"] != RESCUED_DATA]
    return {**known, "fields": [*others, *rescued]}


def check_names(schema: Schema, above: str = "") -> None:
    """Raise SchemaError, reason ``incompatible_schema``, if two names differ in upper and lower case only: a table cannot hold both."""
    spelt: dict[str, str] = {}
    for each in schema["fields"]:
        name = each["name"]
        known = spelt.setdefault(name.casefold(), name)
        if known != name:
            raise SchemaError(
                f"column {above}{name}: expected a name of its own, found one that differs from {above}{known} in upper and lower case only",
                reason="incompatible_schema",
                field=f"{above}{name}",
            )
        kind = each["type"]
        while not isinstance(kind, str) and kind["type"] in ("array", "map"):
            kind = kind["elementType"] if kind["type"] == "array" else kind["valueType"]
        if not isinstance(kind, str) and kind["type"] == "struct":
            check_names(kind, f"{above}{name}.")


def with_wider_integers(known: Schema, incoming: Schema) -> Schema:
    """Return a schema whose whole numbers are as wide as another one's, at any depth; nothing else of that counts."""
    others = {each["name"].casefold(): each["type"] for each in incoming["fields"]}
    fields = [
        {**each, "type": _wider_integers(each["type"], others.get(each["name"].casefold(), each["type"]))}
        for each in known["fields"]
    ]
    return {**known, "fields": fields}


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


def _is_merged(change: Change) -> bool:
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


def _is_rescued(change: Change) -> bool:
    return change.found is not None and change.was != change.found and not change.narrows


def _of_types(path: str, was: Type, found: Type) -> Iterator[Change]:
    """The differences of two types: of structs field by field, of arrays and maps inside of them."""
    kinds = {_name(was), _name(found)}
    if found == _NO_VALUE:
        return
    if kinds == {"struct"}:
        assert not isinstance(was, str)
        assert not isinstance(found, str)
        others = {each["name"].casefold(): each for each in found["fields"]}
        for each in was["fields"]:
            other = others.get(each["name"].casefold())
            if other is None:
                yield Change(f"{path}.{each['name']}", each["type"], None)
            else:
                yield from _of_types(f"{path}.{each['name']}", each["type"], other["type"])
        yield from _new(was, found, f"{path}.")
    elif kinds == {"array"}:
        assert not isinstance(was, str)
        assert not isinstance(found, str)
        yield from _of_types(path, was["elementType"], found["elementType"])
    elif kinds == {"map"} and not isinstance(was, str) and not isinstance(found, str):
        if _plain(was["keyType"]) != _plain(found["keyType"]):
            yield Change(path, was, found)
        else:
            yield from _of_types(path, was["valueType"], found["valueType"])
    elif _plain(was) != _plain(found):
        yield Change(path, was, found)


def _new(known: Schema, incoming: Schema, above: str) -> Iterator[Change]:
    names = {each["name"].casefold() for each in known["fields"]}
    for each in incoming["fields"]:
        if each["name"].casefold() not in names and each["type"] != _NO_VALUE:
            required = not above and not each.get("nullable", True)
            yield Change(f"{above}{each['name']}", None, each["type"], required)


def _merged(known: Schema, incoming: Schema, *, only_new: bool = False) -> Schema:
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
        _nullable(each) for each in incoming["fields"] if key(each) not in names and each["type"] != _NO_VALUE
    ]
    return {**known, "fields": [*_in_table_order(known["fields"], kept), *added]}


def merged_type(was: Type, found: Type) -> Type:
    """Return the type that holds values of both, at any depth: wider ones, and fields that either has; where there is none, the one that is known."""
    return _wider(was, found, only_new=False)


def _wider(was: Type, found: Type, *, only_new: bool) -> Type:
    if was == _NO_VALUE:
        return found
    if isinstance(was, str) or isinstance(found, str):
        return found if not only_new and widens(was, found) else was
    match was["type"], found["type"]:
        case "struct", "struct":
            return _merged(was, found, only_new=only_new)
        case "array", "array":
            return {**was, "elementType": _wider(was["elementType"], found["elementType"], only_new=only_new)}
        case "map", "map":
            return {**was, "valueType": _wider(was["valueType"], found["valueType"], only_new=only_new)}
    return was


def _wider_integers(was: Type, found: Type) -> Type:
    if isinstance(was, str) or isinstance(found, str):
        return found if was in _INTEGERS and widens(was, found) else was
    match was["type"], found["type"]:
        case "struct", "struct":
            return with_wider_integers(was, found)
        case "array", "array":
            return {**was, "elementType": _wider_integers(was["elementType"], found["elementType"])}
        case "map", "map":
            return {**was, "valueType": _wider_integers(was["valueType"], found["valueType"])}
    return was


def _in_place(known: Schema, incoming: Schema) -> Schema:
    """The rows' columns: those that the table has in its order, then the others."""
    order = {each["name"].casefold(): number for number, each in enumerate(known["fields"])}
    fields: Sequence[Any] = sorted(
        incoming["fields"], key=lambda each: order.get(each["name"].casefold(), len(order))
    )
    return {**incoming, "fields": list(fields)}


def _nullable(column: Mapping[str, Any]) -> dict[str, Any]:
    return {**column, "nullable": True}


def _name(kind: Type) -> str:
    return kind if isinstance(kind, str) else str(kind["type"])


def _plain(kind: Type) -> Any:
    """A type without what it says of NULL and without notes on it; names without upper case."""
    if isinstance(kind, str):
        return kind
    match kind["type"]:
        case "array":
            return ("array", _plain(kind["elementType"]))
        case "map":
            return ("map", _plain(kind["keyType"]), _plain(kind["valueType"]))
        case "struct":
            return ("struct", {each["name"].casefold(): _plain(each["type"]) for each in kind["fields"]})
    return str(kind)
