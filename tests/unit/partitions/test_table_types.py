"""Types that tables of a format do not hold, at any depth."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from partitions.supported import FORMATS
from partitions.table_types import can_hold, first_unsupported_column
from partitions.target import Target


def columns(data_type: Any) -> dict[str, Any]:
    field = {"name": "v", "type": data_type, "nullable": True, "metadata": {}}
    return {"type": "struct", "fields": [{**field, "name": "id", "type": "long"}, field]}


@pytest.mark.parametrize("data_type", ["variant", "interval day to second", "interval", "time(6)", "string"])
def test_a_type_is_found_at_any_depth(data_type: str) -> None:
    nested = [
        data_type,
        columns(data_type),
        {"type": "array", "elementType": data_type, "containsNull": True},
        {"type": "map", "keyType": "string", "valueType": columns(data_type), "valueContainsNull": True},
    ]
    for table_format in FORMATS:
        expected = None if can_hold(table_format, data_type) else ("v", data_type)
        assert [first_unsupported_column(table_format, columns(each)) for each in nested] == [expected] * 4


def test_items_without_a_type_are_held_by_no_format_and_columns_without_one_by_delta() -> None:
    items = {"type": "array", "elementType": "void", "containsNull": True}
    assert {name: first_unsupported_column(name, columns(items)) for name in FORMATS} == dict.fromkeys(
        FORMATS, ("v", "void")
    )
    assert [name for name in FORMATS if first_unsupported_column(name, columns("void")) is None] == ["delta"]


def struct(*fields: tuple[str, str]) -> dict[str, Any]:
    parts = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields]
    return {"type": "struct", "fields": parts}


@pytest.mark.parametrize(
    ("data_type", "told"),
    [
        (struct(), "struct without a field that has a type"),
        (struct(("a", "void")), "struct without a field that has a type"),
        (struct(("a", "long"), ("A", "long")), "struct with two fields a, whose names differ in upper and lower case at most"),
    ],
)  # fmt: skip
def test_a_struct_without_or_with_doubled_fields_is_refused(data_type: dict[str, Any], told: str) -> None:
    nested = {"type": "array", "elementType": data_type, "containsNull": True}
    for table_format in FORMATS:
        assert first_unsupported_column(table_format, columns(data_type)) == ("v", told)
        assert first_unsupported_column(table_format, columns(nested)) == ("v", told)


def test_texts_with_a_collation_are_not_held_by_delta() -> None:
    column = {"name": "v", "type": "string", "metadata": {"__COLLATIONS": {"v": "icu.UNICODE_CI"}}}
    refused = {
        name: first_unsupported_column(name, {"type": "struct", "fields": [column]}) for name in FORMATS
    }
    assert refused == {"delta": ("v", "string collate UNICODE_CI"), "iceberg": None, "parquet": None}


def test_every_format_has_a_rule() -> None:
    formats = get_args(Target.model_fields["format"].annotation)
    assert {name: can_hold(name, "variant") for name in formats} == {
        "delta": True,
        "iceberg": False,
        "parquet": False,
    }
    assert not any(can_hold(name, "interval year to month") for name in formats)
