"""Texts without a letter in JSON: Spark's inference takes ``""`` for no value, so that its columns could not hold it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from partitions.schema_types import Schema, Type

_NAME = re.compile(r"`((?:[^`]|``)*)`|([^`:]+)")
_WORD = re.compile(r"[A-Z_]+(?:\(\d+,\d+\))?")
_TEXTS = ("STRING", "VARIANT")
"""Of texts, and of values of several types, which Spark's inference makes texts, too."""

_TIMES = ("date", "timestamp", "timestamp_ntz")
"""Types that texts get only if the user asks for it."""

Shape = str | list[Any] | dict[str, Any]
"""The types of variants: a word, a list with the type of the items, or those of the fields by name."""


def with_empty_texts(schema: Schema, shape: str) -> Schema:
    """Return a schema whose columns are texts where records hold a text, also an empty one.

    Args:
        schema: as Spark infers it.
        shape: of the records with empty texts, as ``schema_of_variant_agg`` tells it: an object, or an array of objects.
    """
    record, _ = _read(shape, 0)
    while isinstance(record, list):
        record = record[0]
    return _of_fields(schema, record) if isinstance(record, dict) else schema


def _of_fields(schema: Schema, shapes: Mapping[str, Shape]) -> Schema:
    fields = [
        {**field, "type": _with_texts(field["type"], shapes[field["name"]])}
        if field["name"] in shapes
        else field
        for field in schema["fields"]
    ]
    names = {field["name"] for field in fields}
    texts = {name: _texts_of(shape) for name, shape in shapes.items() if name not in names}
    fields += [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in texts.items()
        if kind is not None
    ]
    return {**schema, "fields": fields}


def _with_texts(kind: Type, shape: Shape) -> Type:
    if shape in _TEXTS:
        return kind if kind in _TIMES else "string"
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct" and isinstance(shape, dict):
        return _of_fields(kind, shape)
    if kind["type"] == "array" and isinstance(shape, list):
        return {**kind, "elementType": _with_texts(kind["elementType"], shape[0])}
    return kind


def _texts_of(shape: Shape) -> Type | None:
    """The type of values that hold nothing but empty texts; None if they hold none."""
    if isinstance(shape, dict):
        inside = _of_fields({"type": "struct", "fields": []}, shape)
        return inside if inside["fields"] else None
    if isinstance(shape, list):
        items = _texts_of(shape[0])
        return None if items is None else {"type": "array", "elementType": items, "containsNull": True}
    return "string" if shape in _TEXTS else None


def _read(text: str, position: int) -> tuple[Shape, int]:
    """Read a type, such as ``OBJECT<a: BIGINT, `b c`: ARRAY<STRING>>``, and return the place behind it."""
    word = _WORD.match(text, position)
    assert word is not None, text
    position = word.end()
    if word[0] == "ARRAY":
        inner, position = _read(text, position + 1)
        return [inner], position + 1
    if word[0] != "OBJECT":
        return word[0], position
    fields: dict[str, Shape] = {}
    position += 1
    while text[position] != ">":
        name = _NAME.match(text, position)
        assert name is not None, text
        plain = name[2] if name[1] is None else name[1].replace("``", "`")
        fields[plain], position = _read(text, name.end() + 2)
        position += 2 if text.startswith(", ", position) else 0
    return fields, position + 1
