"""Columns of JSON that hold empty texts are texts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from partitions.empty_texts import with_empty_texts


def _schema(**types: Any) -> dict[str, Any]:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in types.items()]
    return {"type": "struct", "fields": fields}


def _array(kind: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": kind, "containsNull": True}


@pytest.mark.parametrize(
    ("inferred", "shape", "expected"),
    [
        (_schema(a="long"), "OBJECT<a: VARIANT>", _schema(a="string")),
        (_schema(a="long"), "OBJECT<a: STRING>", _schema(a="string")),
        (_schema(a="long"), "OBJECT<a: DECIMAL(21,1)>", _schema(a="long")),
        (_schema(), "OBJECT<a: STRING, b: VOID, c: OBJECT<>>", _schema(a="string")),
        (_schema(a=_array("long")), "ARRAY<OBJECT<a: ARRAY<VARIANT>>>", _schema(a=_array("string"))),
        (_schema(a=_schema(b="double")), "OBJECT<a: OBJECT<b: STRING, c: ARRAY<STRING>>>", _schema(a=_schema(b="string", c=_array("string")))),
        (_schema(a=_schema(b="double")), "OBJECT<a: VARIANT>", _schema(a="string")),
        (_schema(**{"g,>h": "long", "c`d": "long"}), "OBJECT<`c``d`: STRING, `g,>h`: STRING>", _schema(**{"g,>h": "string", "c`d": "string"})),
        (_schema(a="timestamp"), "OBJECT<a: STRING>", _schema(a="timestamp")),
        (_schema(a="long"), "VOID", _schema(a="long")),
    ],
)  # fmt: skip
def test_a_column_with_an_empty_text_is_a_text(inferred: Any, shape: str, expected: Any) -> None:
    assert json.dumps(with_empty_texts(inferred, shape)) == json.dumps(expected)
