"""Inspect Avro schemas: their fields, the fields' types, and the types that no table can hold."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from partitions.records.conversions import (
    ITEM,
    VALUE,
    VOID,
)
from partitions.records.forms import Type
from resources.sources.files.field_paths import FieldPath, dotted_name
from resources.sources.files.footers import MAX_DIGITS, find_doubled_name

_NAMED = ("record", "error", "enum", "fixed")


@lru_cache(maxsize=64)
def find_unreadable_field(schema: str) -> tuple[str, str] | None:
    """Return the dotted name and type of a field that no table can hold; None if there is none.

    Examples: a record without fields, a record that contains itself, a duration, a decimal of more than 38
    digits. The name is "" if the values are no records.
    """
    content = json.loads(schema)
    avro_type = content.get("type") if isinstance(content, dict) else content
    if avro_type not in ("record", "error"):
        return "", avro_type if isinstance(avro_type, str) else "of several types"
    return next(_unreadable((), content, {}, ()), None)


def _unreadable(
    path: FieldPath, avro_type: Any, named_types: dict[str, Any], enclosing: Collection[str]
) -> Iterator[tuple[str, str]]:
    if isinstance(avro_type, list):
        for member in avro_type:
            yield from _unreadable(path, member, named_types, enclosing)
        return
    if isinstance(avro_type, str):
        if avro_type in enclosing:
            yield dotted_name(path), f"the recursive record {avro_type}"
            return
        avro_type = named_types.get(avro_type, avro_type)
    if not isinstance(avro_type, dict):
        return
    if not isinstance(avro_type["type"], str):
        yield from _unreadable(path, avro_type["type"], named_types, enclosing)
        return
    if avro_type["type"] in _NAMED:
        named_types[avro_type["name"]] = avro_type
    if avro_type.get("logicalType") == "duration":
        yield dotted_name(path), "duration"
    elif avro_type.get("logicalType") == "decimal" and avro_type.get("precision", 0) > MAX_DIGITS:
        yield (
            dotted_name(path),
            f"a decimal of {avro_type['precision']} digits, which is more than {MAX_DIGITS}",
        )
    elif avro_type["type"] in ("record", "error"):
        if avro_type["name"] in enclosing:
            yield dotted_name(path), f"the recursive record {avro_type['name']}"
            return
        if not avro_type["fields"]:
            yield dotted_name(path), "a record without fields"
        for field in avro_type["fields"]:
            yield from _unreadable(
                (*path, field["name"]), field["type"], named_types, (*enclosing, avro_type["name"])
            )
    elif avro_type["type"] in ("array", "map"):
        yield from _unreadable(path, avro_type.get("items", avro_type.get("values")), named_types, enclosing)


@lru_cache(maxsize=64)
def find_doubled_names(schema: str) -> tuple[str, str] | None:
    """Return two fields of one record whose names differ in case only; None if there are none."""
    names: dict[FieldPath, list[str]] = {}
    for path in sorted(field_paths_of(schema)):
        names.setdefault(path[:-1], []).append(path[-1])
    return next(filter(None, map(find_doubled_name, names.values())), None)


@lru_cache(maxsize=64)
def own_types(schema: str, *, are_members_numbered: bool = True) -> Mapping[str, Type | None]:
    """Return the types of a schema's fields in Spark's JSON form; None for a type that only Spark knows.

    See :mod:`partitions.records.conversions` for the form.

    Args:
        schema: the Avro schema as JSON text.
        are_members_numbered: whether Spark names the members of a union by position; if not, only Spark knows
            the type.
    """
    content = json.loads(schema)
    if not isinstance(content, dict) or content.get("type") != "record":
        return {}
    types = _TypeResolver({content["name"]: content}, are_members_numbered)
    return {field["name"]: types.of(field["type"]) for field in content["fields"]}


class _TypeResolver:
    """A resolver of the types of one schema.

    Attributes:
        named: the named types that were met so far.
        are_members_numbered: whether Spark names the members of a union by position.
    """

    def __init__(self, named_types: dict[str, Any], are_members_numbered: bool) -> None:
        self.named, self.are_members_numbered = named_types, are_members_numbered

    def of(self, avro_type: Any) -> Type | None:
        """Return a type in Spark's JSON form; None if only Spark knows it."""
        if isinstance(avro_type, list):
            members = [member for member in avro_type if member != "null"]
            return self._of_union(members) if len(members) > 1 else self.of((*members, "null")[0])
        if isinstance(avro_type, str):
            if avro_type not in self.named:
                return _PRIMITIVES.get(avro_type)
            avro_type = self.named[avro_type]
        if not isinstance(avro_type["type"], str):
            return self.of(avro_type["type"])
        if avro_type["type"] in _NAMED:
            self.named[avro_type["name"]] = avro_type
        logical = avro_type.get("logicalType")
        if logical == "decimal":
            return (
                f"decimal({avro_type['precision']},{avro_type.get('scale', 0)})"
                if avro_type["precision"] <= 38
                else None
            )
        if logical in _LOGICAL:
            return _LOGICAL[logical]
        if avro_type["type"] in ("record", "error"):
            return _struct_of({field["name"]: self.of(field["type"]) for field in avro_type["fields"]})
        if avro_type["type"] == "array":
            item = self.of(avro_type["items"])
            return None if item is None else {"type": "array", "elementType": item, "containsNull": True}
        if avro_type["type"] == "map":
            value = self.of(avro_type["values"])
            if value is None:
                return None
            return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": True}
        return {"enum": "string", "fixed": "binary"}.get(avro_type["type"], self.of(avro_type["type"]))

    def _of_union(self, members: Sequence[Any]) -> Type | None:
        """Return the type that Spark reads a union of several types as.

        The wider of two numbers, else a struct with a field for each member.
        """
        plain = {
            member["type"] if isinstance(member, dict) else member for member in members if _is_plain(member)
        }
        for numbers, wider in ((("int", "long"), "long"), (("float", "double"), "double")):
            if len(members) == 2 and plain == set(numbers):
                return wider
        if not self.are_members_numbered:
            return None
        types = [self.of(member) for member in members]
        return _struct_of({f"member{number}": data_type for number, data_type in enumerate(types)})


def _struct_of(types: Mapping[str, Type | None]) -> Type | None:
    """Return a struct of these fields; None if the type of one is unknown."""
    if None in types.values():
        return None
    fields = [
        {"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in types.items()
    ]
    return {"type": "struct", "fields": fields}


def _is_plain(member: Any) -> bool:
    """Return whether a member of a union is a type without parts."""
    return isinstance(member, str) or (isinstance(member, dict) and isinstance(member["type"], str))


_PRIMITIVES: Mapping[str, str] = {
    "null": VOID,
    "boolean": "boolean",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}


_LOGICAL: Mapping[str, str] = {
    "date": "date(any)",
    "time-millis": "time(millis)",
    "time-micros": "time(micros)",
    "timestamp-millis": "timestamp(any)",
    "timestamp-micros": "timestamp(any)",
    "timestamp-nanos": "timestamp(nanos)",
    "local-timestamp-millis": "timestamp_ntz(any)",
    "local-timestamp-micros": "timestamp_ntz(any)",
    "local-timestamp-nanos": "timestamp_ntz(nanos)",
}


@lru_cache(maxsize=64)
def field_paths_of(schema: str) -> frozenset[FieldPath]:
    """Return all fields of an Avro schema at any depth, named as Spark names them.

    Unions of several types are not searched.
    """
    named_types: dict[str, Any] = {}
    return frozenset(_fields((), json.loads(schema), named_types, ()))


def _fields(
    path: FieldPath, avro_type: Any, named_types: dict[str, Any], enclosing: Collection[str]
) -> Iterator[FieldPath]:
    if isinstance(avro_type, list):
        values = [branch for branch in avro_type if branch != "null"]
        if len(values) == 1:
            yield from _fields(path, values[0], named_types, enclosing)
        return
    if isinstance(avro_type, str):
        avro_type = named_types.get(avro_type, avro_type)
    if not isinstance(avro_type, dict):
        return
    if avro_type["type"] in _NAMED:
        named_types[avro_type["name"]] = avro_type
    if avro_type["type"] in ("record", "error") and avro_type["name"] not in enclosing:
        for field in avro_type["fields"]:
            yield (*path, field["name"])
            yield from _fields(
                (*path, field["name"]), field["type"], named_types, (*enclosing, avro_type["name"])
            )
    elif avro_type["type"] == "array":
        yield from _fields((*path, ITEM), avro_type["items"], named_types, enclosing)
    elif avro_type["type"] == "map":
        yield from _fields((*path, VALUE), avro_type["values"], named_types, enclosing)
    elif isinstance(avro_type["type"], dict | list):
        yield from _fields(path, avro_type["type"], named_types, enclosing)
