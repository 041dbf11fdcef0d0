"""What a schema becomes if rows come with another one, in each mode, against a plain reading of the rule."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.errors import SchemaError
from partitions.evolution import evolve_schema
from partitions.schema_merging import new_fields, with_wider_integers, with_widest_integers
from partitions.schema_types import Schema, Type, widens

_WIDER = {
    "byte": {"short", "integer", "long"},
    "short": {"integer", "long"},
    "integer": {"long"},
    "float": {"double"},
    "decimal(10,2)": {"decimal(12,2)", "decimal(14,4)"},
    "decimal(12,2)": {"decimal(14,4)"},
}
"""What is safely wider, spelt out."""

_SIMPLE = st.sampled_from(
    ["byte", "short", "integer", "long", "float", "double", "string", "date", "decimal(10,2)", "decimal(12,2)", "decimal(14,4)"]
)  # fmt: skip


def _array(kind: Type) -> Type:
    return {"type": "array", "elementType": kind, "containsNull": True}


def _map(key: Type, value: Type) -> Type:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def _struct(fields: dict[str, Type]) -> Any:
    made = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields.items()]
    return {"type": "struct", "fields": made}


def _types(depth: int) -> st.SearchStrategy[Type]:
    if not depth:
        return _SIMPLE
    inner = _types(depth - 1)
    return st.one_of(
        _SIMPLE,
        inner.map(_array),
        st.builds(_map, st.sampled_from(["string", "long"]), inner),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(_struct),
    )


schemas = st.dictionaries(st.sampled_from("abcdef"), _types(2), min_size=1).map(_struct)


class _Refused(Exception):
    pass


def _plain(known: Type, incoming: Type) -> Type:
    """The rule as a reader says it: what both types become, or that they do not go together."""
    if known == incoming:
        return known
    if isinstance(known, str) or isinstance(incoming, str):
        if isinstance(known, str) and isinstance(incoming, str):
            if incoming in _WIDER.get(known, ()):
                return incoming
            if known in _WIDER.get(incoming, ()):
                return known
        raise _Refused
    if known["type"] != incoming["type"]:
        raise _Refused
    if known["type"] == "array":
        return _array(_plain(known["elementType"], incoming["elementType"]))
    if known["type"] == "map":
        if known["keyType"] != incoming["keyType"]:
            raise _Refused
        return _map(known["keyType"], _plain(known["valueType"], incoming["valueType"]))
    theirs = {field["name"]: field["type"] for field in incoming["fields"]}
    fields = {
        field["name"]: _plain(field["type"], theirs.pop(field["name"], field["type"]))
        for field in known["fields"]
    }
    both: Type = _struct(fields | theirs)
    return both


def _columns(schema: Schema) -> dict[str, Any]:
    return {field["name"]: field["type"] for field in schema["fields"]}


@given(st.lists(schemas, min_size=2, max_size=5))
def test_merge_keeps_each_column_and_takes_new_ones_and_wider_types(drawn: list[Schema]) -> None:
    table: Any = drawn[0]
    for incoming in drawn[1:]:
        try:
            expected = _plain(table, incoming)
        except _Refused:
            with pytest.raises(SchemaError) as caught:
                evolve_schema(table, incoming, "merge")
            assert caught.value.reason == "type_change_not_allowed"
            assert caught.value.field is not None
            continue
        found = evolve_schema(table, incoming, "merge")
        assert found.schema == expected
        assert found.action == ("none" if expected == table else "merge")
        assert evolve_schema(found.schema, incoming, "merge").action == "none"
        assert evolve_schema(found.schema, table, "merge").action == "none"
        table = found.schema


@given(schemas, schemas)
def test_overwrite_takes_the_rows_columns_after_the_tables(table: Schema, incoming: Schema) -> None:
    found = evolve_schema(table, incoming, "overwrite")
    assert _columns(found.schema) == (_columns(incoming) if found.action == "overwrite" else _columns(table))
    kept = [name for name in _columns(table) if name in _columns(found.schema)]
    assert list(_columns(found.schema))[: len(kept)] == kept
    assert evolve_schema(found.schema, incoming, "overwrite").action == "none"


@given(schemas, schemas)
def test_strict_accepts_the_same_columns_in_any_order(table: Schema, incoming: Schema) -> None:
    again = {**table, "fields": list(reversed(table["fields"]))}
    assert evolve_schema(table, again, "strict").action == "none"
    if evolve_schema(table, incoming, "overwrite").action == "overwrite":
        with pytest.raises(SchemaError) as caught:
            evolve_schema(table, incoming, "strict")
        assert caught.value.reason == "incompatible_schema"


@given(schemas, schemas)
def test_rescue_changes_no_column_and_names_what_does_not_fit(table: Schema, incoming: Schema) -> None:
    found = evolve_schema(table, incoming, "rescue")
    assert (found.action, found.schema) == ("none", table)
    assert {name.partition(".")[0] for name in found.rescued} <= set(_columns(incoming))
    assert set(_columns(incoming)) - set(_columns(table)) <= set(found.rescued)


@given(_SIMPLE, _SIMPLE)
def test_a_type_is_wider_if_each_value_of_the_other_is_one_of_it(was: str, becomes: str) -> None:
    assert widens(was, becomes) == (becomes in _WIDER.get(was, set()))


def test_a_new_required_column_is_refused_by_merge_alone() -> None:
    table, incoming = _struct({"id": "long"}), _struct({"id": "long", "name": "string"})
    incoming["fields"][1]["nullable"] = False
    with pytest.raises(SchemaError) as caught:
        evolve_schema(table, incoming, "merge")
    assert (caught.value.reason, caught.value.field) == ("required_field_addition", "name")
    assert list(_columns(evolve_schema(table, incoming, "overwrite").schema)) == ["id", "name"]


def test_a_column_without_any_value_tells_no_type() -> None:
    table, incoming = _struct({"id": "long"}), _struct({"id": "void", "name": "void"})
    assert evolve_schema(table, incoming, "merge").action == "none"


def test_names_are_the_same_in_upper_and_lower_case() -> None:
    assert evolve_schema(_struct({"Id": "integer"}), _struct({"iD": "long"}), "merge").schema == _struct(
        {"Id": "long"}
    )


def test_new_fields_leave_the_types_that_are_known() -> None:
    known = _struct({"a": "date", "s": _struct({"x": "integer"}), "l": _array(_struct({"y": "long"}))})
    found = _struct(
        {"a": "string", "s": _struct({"x": "long", "z": "string"}), "l": _array(_struct({"w": "long"}))}
    )
    expected = _struct(
        {
            "a": "date",
            "s": _struct({"x": "integer", "z": "string"}),
            "l": _array(_struct({"y": "long", "w": "long"})),
        }
    )
    assert new_fields(known, found) == expected


def test_only_whole_numbers_get_as_wide_as_those_of_records() -> None:
    known = _struct({"a": "integer", "b": "float", "c": _array("short"), "d": "long"})
    found = _struct({"a": "long", "b": "double", "c": _array("integer"), "e": "long"})
    expected = _struct({"a": "long", "b": "float", "c": _array("integer"), "d": "long"})
    assert with_wider_integers(known, found) == expected


def test_whole_numbers_are_as_wide_as_there_are_at_any_depth() -> None:
    known = _struct({"a": "byte", "b": "double", "c": _array(_struct({"d": "integer"})), "e": "long"})
    expected = _struct({"a": "long", "b": "double", "c": _array(_struct({"d": "long"})), "e": "long"})
    assert with_widest_integers(known) == expected
