"""Values of JSON as those of columns: with all digits that were sent, and as texts where a column holds texts."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Any

import pytest

from partitions.api.document import parse_document
from partitions.api.values import SentNumber, as_text, kind_of_values, to_column_value
from partitions.unit_values import ValueType


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (SentNumber("1.50"), "text", "1.50"),
        (2, "text", "2"),
        (True, "text", "true"),
        (SentNumber("1.123456789012345678"), "number", Decimal("1.123456789012345678")),
        (SentNumber("1e3"), "whole", Decimal(1000)),
        (SentNumber("1e400"), "number", None),
    ],
)
def test_a_number_keeps_what_was_sent(value: Any, kind: ValueType, expected: Any) -> None:
    assert to_column_value(value, kind) == expected


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, "2"], "text"),
        (["2026-01-01T00:00:00Z", 1], "text"),
        ([True, 1], "text"),
        ([1, SentNumber("1.5")], "number"),
        (["x", {}], None),
        ([None], None),
    ],
)
def test_values_of_several_kinds_are_texts(values: list[Any], kind: ValueType | None) -> None:
    assert kind_of_values(values) == kind


def test_a_cursor_of_many_digits_is_sent_back_as_it_came() -> None:
    cursor = parse_document('{"next": 1767614340.12345678901, "items": []}', "items").at("next")
    assert as_text(cursor) == as_text(pickle.loads(pickle.dumps(cursor))) == "1767614340.12345678901"
