"""Schemas of Avro: which fields they have, of which types, and which of these no table can hold."""

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
from resources.sources.files.footers import (
    MOST_DIGITS,
    FieldPath,
    doubled,
    shown,
)

_NAMED = ("record", "error", "enum", "fixed")


@lru_cache(maxsize=64)
def unreadable_field(schema: str) -> tuple[str, str] | None:
    """Return a field of an Avro schema that no table can hold, dotted, and its type.

    Such as a record without fields or that holds itself, a duration, a decimal of more than 38 digits. The field is "" if the values themselves are no records.
    """
    content = json.loads(schema)
    kind = content.get("type") if isinstance(content, dict) else content
    if kind not in ("record", "error"):
        return "", kind if isinstance(kind, str) else "of several types"
    return next(_unreadable((), content, {}, ()), None)


def _unreadable(
    path: FieldPath, kind: Any, named: dict[str, Any], above: Collection[str]
) -> Iterator[tuple[str, str]]:
    if isinstance(kind, list):
        for member in kind:
            yield from _unreadable(path, member, named, above)
        return
    if isinstance(kind, str):
        if kind in above:
            yield shown(path), f"the record {kind}, which holds itself"
            return
        kind = named.get(kind, kind)
    if not isinstance(kind, dict):
        return
    if not isinstance(kind["type"], str):
        yield from _unreadable(path, kind["type"], named, above)
        return
    if kind["type"] in _NAMED:
        named[kind["name"]] = kind
    if kind.get("logicalType") == "duration":
        yield shown(path), "duration"
    elif kind.get("logicalType") == "decimal" and kind.get("precision", 0) > MOST_DIGITS:
        yield shown(path), f"a decimal of {kind['precision']} digits, which is more than {MOST_DIGITS}"
    elif kind["type"] in ("record", "error"):
        if kind["name"] in above:
            yield shown(path), f"the record {kind['name']}, which holds itself"
            return
        if not kind["fields"]:
            yield shown(path), "a record without fields"
        for field in kind["fields"]:
            yield from _unreadable((*path, field["name"]), field["type"], named, (*above, kind["name"]))
    elif kind["type"] in ("array", "map"):
        yield from _unreadable(path, kind.get("items", kind.get("values")), named, above)


@lru_cache(maxsize=64)
def doubled_names(schema: str) -> tuple[str, str] | None:
    """Return two fields of one record whose names differ in upper and lower case only; None if there are none."""
    names: dict[FieldPath, list[str]] = {}
    for path in sorted(fields_of(schema)):
        names.setdefault(path[:-1], []).append(path[-1])
    return next(filter(None, map(doubled, names.values())), None)


@lru_cache(maxsize=64)
def own_types(schema: str, *, are_members_numbered: bool = True) -> Mapping[str, Type | None]:
    """Return the types of an Avro schema's fields in Spark's JSON form (:mod:`partitions.records.conversions`); None of one that only Spark knows.

    Args:
        schema: as JSON.
        are_members_numbered: whether Spark names the members of a union by their places; if not, only Spark knows the type.
    """
    content = json.loads(schema)
    if not isinstance(content, dict) or content.get("type") != "record":
        return {}
    types = _Types({content["name"]: content}, are_members_numbered)
    return {field["name"]: types.of(field["type"]) for field in content["fields"]}


class _Types:
    """The types of one schema.

    Attributes:
        named: its types with a name that were met so far.
        are_members_numbered: whether Spark names the members of a union by their places.
    """

    def __init__(self, named: dict[str, Any], are_members_numbered: bool) -> None:
        self.named, self.are_members_numbered = named, are_members_numbered

    def of(self, kind: Any) -> Type | None:
        """Return a type in Spark's JSON form; None if only Spark knows it."""
        if isinstance(kind, list):
            members = [member for member in kind if member != "null"]
            return self._of_union(members) if len(members) > 1 else self.of((*members, "null")[0])
        if isinstance(kind, str):
            if kind not in self.named:
                return _PRIMITIVES.get(kind)
            kind = self.named[kind]
        if not isinstance(kind["type"], str):
            return self.of(kind["type"])
        if kind["type"] in _NAMED:
            self.named[kind["name"]] = kind
        logical = kind.get("logicalType")
        if logical == "decimal":
            return f"decimal({kind['precision']},{kind.get('scale', 0)})" if kind["precision"] <= 38 else None
        if logical in _LOGICAL:
            return _LOGICAL[logical]
        if kind["type"] in ("record", "error"):
            return _struct_of({field["name"]: self.of(field["type"]) for field in kind["fields"]})
        if kind["type"] == "array":
            item = self.of(kind["items"])
            return None if item is None else {"type": "array", "elementType": item, "containsNull": True}
        if kind["type"] == "map":
            value = self.of(kind["values"])
            if value is None:
                return None
            return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": True}
        return {"enum": "string", "fixed": "binary"}.get(kind["type"], self.of(kind["type"]))

    def _of_union(self, members: Sequence[Any]) -> Type | None:
        """The type that Spark reads several types as: the wider of two numbers, else a struct with a field for each."""
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
    """A struct of these fields; None if the type of one is unknown."""
    if None in types.values():
        return None
    fields = [
        {"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in types.items()
    ]
    return {"type": "struct", "fields": fields}


def _is_plain(member: Any) -> bool:
    """Whether a member of a union is a type without parts."""
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
def fields_of(schema: str) -> frozenset[FieldPath]:
    """Return all fields of an Avro schema, at any depth, as Spark names them. Of a union of several types none is looked into."""
    named: dict[str, Any] = {}
    return frozenset(_fields((), json.loads(schema), named, ()))


def _fields(path: FieldPath, kind: Any, named: dict[str, Any], above: Collection[str]) -> Iterator[FieldPath]:
    if isinstance(kind, list):
        values = [branch for branch in kind if branch != "null"]
        if len(values) == 1:
            yield from _fields(path, values[0], named, above)
        return
    if isinstance(kind, str):
        kind = named.get(kind, kind)
    if not isinstance(kind, dict):
        return
    if kind["type"] in _NAMED:
        named[kind["name"]] = kind
    if kind["type"] in ("record", "error") and kind["name"] not in above:
        for field in kind["fields"]:
            yield (*path, field["name"])
            yield from _fields((*path, field["name"]), field["type"], named, (*above, kind["name"]))
    elif kind["type"] == "array":
        yield from _fields((*path, ITEM), kind["items"], named, above)
    elif kind["type"] == "map":
        yield from _fields((*path, VALUE), kind["values"], named, above)
    elif isinstance(kind["type"], dict | list):
        yield from _fields(path, kind["type"], named, above)
