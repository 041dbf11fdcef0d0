"""Which columns both sides can compare; the others are named with a reason."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from partitions.errors import ConfigurationError
from partitions.reconcile.columns import match_columns
from partitions.reconcile.families import Family, read_canonical, type_in_table
from partitions.sources.database_types import ColumnType, postgresql_type


def others(source: dict[str, ColumnType], table: dict[str, Any]) -> dict[str, str]:
    """The columns that are not compared, with their reasons."""
    types = {name: type_in_table(type_) for name, type_ in table.items()}
    return {other.name: other.why for other in match_columns(source, types, ["_run_id"]).others}


def test_columns_match_by_name_in_any_case() -> None:
    matched = match_columns({"ID": ColumnType("long")}, {"id": ColumnType("integer")}, ())
    (column,) = matched.compared
    assert (column.name, column.source_name, matched.others) == ("id", "ID", [])


def test_columns_of_one_side_are_named_but_not_those_that_loading_adds() -> None:
    found = others({"new": ColumnType("long")}, {"old": "long", "_run_id": "string"})
    assert found == {"old": "the source does not have it", "new": "the table does not have it"}


def test_types_without_a_common_text_are_named() -> None:
    struct = {"type": "struct", "fields": []}
    array = {"type": "array", "elementType": "integer", "containsNull": True}
    source = {
        "a": ColumnType("long"),
        "b": ColumnType("string"),
        "c": ColumnType("integer", dimensions=1),
        "d": ColumnType("integer", dimensions=3),
    }
    table = {"a": "string", "b": struct, "c": "integer", "d": array}
    assert others(source, table) == {
        "a": "the source has numbers, the table text",
        "b": "the table holds a nested type, which has no canonical text",
        "c": "the source has arrays of numbers, the table numbers",
        "d": "it is an array of more than 2 dimensions",
    }


def test_a_time_of_day_is_text_in_the_table() -> None:
    matched = match_columns({"at": postgresql_type("time")}, {"at": ColumnType("string")}, ())
    (column,) = matched.compared
    assert column.table_type.is_time_of_day


def test_a_needed_column_that_cannot_be_compared_is_refused_with_the_reason() -> None:
    matched = match_columns({"id": ColumnType("long")}, {"id": ColumnType("string")}, ())
    with pytest.raises(ConfigurationError, match="found id: the source has numbers, the table text"):
        matched.named(["id"], "orders", "target.merge_keys")
    with pytest.raises(ConfigurationError, match="found no: neither side has it"):
        matched.named(["no"], "orders", "target.merge_keys")


@pytest.mark.parametrize(
    ("family", "text", "value"),
    [
        ("number", "-12", -12),
        ("number", "0.5", Decimal("0.5")),
        ("number", "NaN", "NaN"),
        ("float", "3fb999999999999a", 0.1),
        ("flag", "false", False),
        ("text", "=a,,b~", "a,b~"),
        ("text", "~", None),
        ("bytes", "00ff", b"\x00\xff"),
        ("day", "0001-01-01", date(1, 1, 1)),
        ("day", "infinity", "infinity"),
        ("instant", "2026-01-01 00:00:00.5", datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)),
        ("local", "2026-01-01 00:00:00", datetime(2026, 1, 1)),  # noqa: DTZ001
    ],
)
def test_a_canonical_text_is_read_back(family: Family, text: str, value: Any) -> None:
    assert read_canonical(text, family) == value
