"""What a rule compares with a column: literals that never fail a cast."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from partitions.reconcile.families import type_in_table
from partitions.rules.values import accepted_literal, are_comparable

BIG = 10**30
LITERALS: list[tuple[Any, str, Any]] = [
    ("new", "string", "new"),
    (1, "string", "1"),
    (True, "string", "true"),
    (date(2026, 1, 2), "string", "2026-01-02"),
    (1, "long", 1),
    (1.5, "double", 1.5),
    ("1.50", "decimal(9,2)", Decimal("1.50")),
    (BIG, "long", Decimal(BIG)),
    ("a", "long", None),
    ("NaN", "double", None),
    (True, "long", None),
    (10**40, "long", None),
    ("1e-60", "double", None),
    (True, "boolean", True),
    ("true", "boolean", None),
    ("2026-01-02", "date", "2026-01-02"),
    ("20260102", "date", "2026-01-02"),
    ("2026-01-02 03:04", "date", None),
    (date(2026, 1, 2), "timestamp", "2026-01-02"),
    ("2026-01-02T03:04:05Z", "timestamp", "2026-01-02 03:04:05+00:00"),
    ("soon", "timestamp_ntz", None),
    (1, "binary", None),
]


@pytest.mark.parametrize(("value", "data_type", "literal"), LITERALS)
def test_a_value_that_a_column_cannot_have_has_no_literal(value: Any, data_type: str, literal: Any) -> None:
    found = accepted_literal(value, type_in_table(data_type))
    assert (found, type(found)) == (literal, type(literal))


def test_a_nested_column_has_no_accepted_value() -> None:
    assert accepted_literal("a", type_in_table({"type": "struct"})) is None
    assert accepted_literal("a", type_in_table({"type": "array", "elementType": "string"})) is None


def test_columns_are_comparable_if_no_cast_of_one_fails() -> None:
    pairs = [("long", "decimal(3,1)"), ("float", "integer"), ("date", "timestamp"), ("string", "varchar(3)")]
    assert all(are_comparable(type_in_table(one), type_in_table(other)) for one, other in pairs)
    pairs = [("long", "string"), ("boolean", "long"), ("date", "string"), ("binary", "string")]
    assert not any(are_comparable(type_in_table(one), type_in_table(other)) for one, other in pairs)
