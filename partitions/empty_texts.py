"""Type columns that hold empty texts: Spark's JSON inference takes ``""`` for no value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from partitions.schema_types import Schema, Type

_NAME = re.compile(r"`((?:[^`]|``)*)`|([^`:]+)")
_WORD = re.compile(r"[A-Z_]+(?:\(\d+,\d+\))?")
_TEXTS = ("STRING", "VARIANT")
"""Shapes that become texts: Spark's inference also makes text of values of several types."""

_TIMES = ("date", "timestamp", "timestamp_ntz")
"""Types that a text gets only if the user asks for it."""

Shape = str | list[Any] | dict[str, Any]
"""The type of variants: a word, a list with the items' type, or field types by name."""


def with_empty_texts(schema: Schema, shape: str) -> Schema:
    """Return a schema whose columns are texts where records hold a text, even an empty one.

    Args:
        schema: as Spark infers it.
        shape: result of ``schema_of_variant_agg`` over the records with empty texts: an object, or an
        array of objects.
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
        {"name": name, "type": data_type, "nullable": True, "metadata": {}}
        for name, data_type in texts.items()
        if data_type is not None
    ]
    return {**schema, "fields": fields}


def _with_texts(data_type: Type, shape: Shape) -> Type:
    if shape in _TEXTS:
        return data_type if data_type in _TIMES else "string"
    if isinstance(data_type, str):
        return data_type
    if data_type["type"] == "struct" and isinstance(shape, dict):
        return _of_fields(data_type, shape)
    if data_type["type"] == "array" and isinstance(shape, list):
        return {**data_type, "elementType": _with_texts(data_type["elementType"], shape[0])}
    return data_type


def _texts_of(shape: Shape) -> Type | None:
    """Return the type of values that hold nothing but empty texts; None if they hold no text."""
    if isinstance(shape, dict):
        inside = _of_fields({"type": "struct", "fields": []}, shape)
        return inside if inside["fields"] else None
    if isinstance(shape, list):
        items = _texts_of(shape[0])
        return None if items is None else {"type": "array", "elementType": items, "containsNull": True}
    return "string" if shape in _TEXTS else None


def _read(text: str, position: int) -> tuple[Shape, int]:
    """Parse a type at a position, and return it with the position after it.

    Example: ``OBJECT<a: BIGINT, `b c`: ARRAY<STRING>>``.
    """
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
