"""Fields without a value have no type yet, at any depth, and get that of their first value."""

from __future__ import annotations

from typing import Any

import pytest

from partitions.evolution import evolve_schema
from partitions.records.json_lines import JsonRule
from partitions.untyped_columns import has_untyped, typed_fields, with_first_types, without_values

Type = Any


def struct(**fields: Type) -> dict[str, Any]:
    """A struct of fields."""
    return {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields.items()
        ],
    }


def array(item: Type) -> dict[str, Any]:
    """An array of items."""
    return {"type": "array", "elementType": item, "containsNull": True}


ALL = struct(
    id="long",
    x="string",
    s=struct(a="string", b="long"),
    l=array("string"),
    n=array(struct(c="string", d="long")),
    e=struct(f="string"),
)
VALUED = struct(id="long", s=struct(b="long"), n=array(struct(d="long")))
UNTYPED = struct(
    id="long", x="void", s=struct(a="void", b="long"), l="void", n=array(struct(c="void", d="long")), e="void"
)


def test_fields_without_a_value_have_no_type_and_no_column() -> None:
    assert without_values(ALL, VALUED) == UNTYPED
    assert typed_fields(UNTYPED) == VALUED
    assert (has_untyped(UNTYPED), has_untyped(VALUED), has_untyped(struct(s=struct(a="void")))) == (
        True,
        False,
        True,
    )


def test_the_first_values_tell_the_types_and_nothing_else_changes() -> None:
    incoming = struct(
        id="string",
        x=struct(y="long"),
        s=struct(a="double", b="string", z="long"),
        n=array(struct(c="date")),
        new="long",
    )
    expected = struct(
        id="long",
        s=struct(b="long", a="double"),
        l="void",
        n=array(struct(d="long", c="date")),
        e="void",
        x=struct(y="long"),
    )
    assert with_first_types(UNTYPED, incoming) == expected


def test_mode_merge_takes_any_first_type() -> None:
    for kind in ("string", "long", array("long"), struct(a="long")):
        evolution = evolve_schema(struct(id="long", x="void"), struct(id="long", x=kind), "merge")
        assert evolution.schema == struct(id="long", x=kind)
        assert str(evolution.changes[0]).startswith("x has its first values")


@pytest.mark.parametrize(
    ("record", "unknown"),
    [
        ('{"id": 1, "x": null}', ()),
        ('{"id": 1, "x": []}', ()),
        ('{"id": 1, "x": 5}', ("x",)),
        ('{"id": 1, "x": {"a": [1]}}', ("x",)),
        ('{"id": 1, "s": {"a": null, "b": 1}}', ()),
        ('{"id": 1, "s": {"a": "", "b": 1}}', ("s.a",)),
        ('{"id": 1, "n": [{"c": null}, {"c": 1}]}', ("n.c",)),
        ('{"id": 1, "y": null}', ("y",)),
    ],
)
def test_a_value_without_type_is_unknown_and_null_is_not(record: str, unknown: tuple[str, ...]) -> None:
    rule = JsonRule.of(UNTYPED)
    judgement = rule.judge(record)
    assert (judgement.fault, judgement.unknown) == (None, unknown)


def test_a_list_of_nothing_but_null_in_a_field_without_type_is_a_fault() -> None:
    fault = JsonRule.of(UNTYPED).judge('{"id": 1, "x": {"a": [null]}}').fault
    assert fault is not None
    assert "found one with nothing but null, whose type is unknown" in fault.reason
