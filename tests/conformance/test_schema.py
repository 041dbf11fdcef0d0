"""schema.json."""

from __future__ import annotations

import re
from typing import Any

import pytest

from partitions.evolution import evolve_schema
from partitions.schema_types import Schema, Type
from tests.conformance.common import Case, answer

_NAMES = {"int32": "integer", "int64": "long", "float32": "float", "float64": "double", "string": "string"}
_LIST = re.compile(r"list<(.+)>")


@pytest.mark.cases("schema", "schema_evolution")
def test_schema_evolution(case: Case) -> None:
    inputs, expected = case["input"], case["expected"]
    result = answer(
        case, lambda: evolve_schema(_schema(inputs["table"]), _schema(inputs["incoming"]), inputs["mode"])
    )
    if result is None:
        return
    assert result.action == expected["action"]
    if "fields" in expected:
        assert [field["name"] for field in result.schema["fields"]] == expected["fields"]
    if "widened" in expected:
        assert {name: _change_document(kind) for name, kind in result.widened.items()} == expected["widened"]


def _schema(columns: list[dict[str, Any]]) -> Schema:
    fields = [{**column, "type": _type(column["type"]), "metadata": {}} for column in columns]
    return {"type": "struct", "fields": fields}


def _type(text: str) -> Type:
    inner = _LIST.fullmatch(text)
    if inner is None:
        return _NAMES[text]
    return {"type": "array", "elementType": _type(inner[1]), "containsNull": True}


def _change_document(kind: Type) -> str:
    if isinstance(kind, str):
        return next(name for name, of_spark in _NAMES.items() if of_spark == kind)
    return f"list<{_change_document(kind['elementType'])}>"
