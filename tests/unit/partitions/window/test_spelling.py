"""Units by their values, not by their spelling (docs/reference/windows.md, Units)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from partitions.unit_values import ValueType
from partitions.window.listed_units import (
    ListedUnits,
    SelectedUnits,
    loose_spelling,
    may_have_equal_units,
    state_identities,
    unit_value,
)
from partitions.window.units import identity

BERLIN = ZoneInfo("Europe/Berlin")


def unit(value: Any) -> str:
    return identity({"id": value})


def same(kind: ValueType | None, *values: Any) -> bool:
    kinds: dict[str, ValueType] = {} if kind is None else {"id": kind}
    return len({unit_value(unit(value), kinds, {}, BERLIN) for value in values}) == 1


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("whole", ["1", 1, "01", 1.0, " 1 ", Decimal("1.0")]),
        ("number", ["1.50", 1.5, Decimal("1.5"), "1.5"]),
        ("number", ["0", 0, -0.0]),
        ("text", ["1", 1]),
        ("day", ["2026-01-02", date(2026, 1, 2)]),
        ("instant", ["2026-01-02T01:00", "2026-01-02T00:00Z", datetime(2026, 1, 2, tzinfo=UTC)]),
        ("local", ["2026-01-02T01:00", "2026-01-02T00:00Z"]),
        ("flag", ["true", True, "True"]),
    ],
)
def test_spellings_of_one_value_of_the_column_are_one_unit(kind: ValueType, values: list[Any]) -> None:
    assert same(kind, *values)
    assert len({loose_spelling(unit(value), BERLIN) for value in values}) == 1, (
        "or nobody would ask for the type"
    )


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("text", ["1", "01"]),
        ("text", ["a", "A"]),
        ("whole", [1, "1.0"]),
        ("whole", [1, True]),
        ("number", [0.1, "0.2"]),
        ("text", ["1.0", 1.0]),
        (None, ["1", 1]),
        (None, ["1", "01"]),
    ],
)
def test_what_the_column_tells_apart_stays_apart(kind: ValueType | None, values: list[Any]) -> None:
    assert not same(kind, *values)


def test_a_value_that_no_column_holds_is_what_it_is_asked_for_by() -> None:
    values = [unit_value(unit(value), {}, {"id": str}, UTC) for value in (1, "1", "01")]
    assert values[0] == values[1] != values[2]


def whole(identity: str) -> Any:
    return unit_value(identity, {"id": "whole"}, {}, UTC)


def test_units_keep_the_identity_that_the_state_knows_and_each_value_is_there_once() -> None:
    units = [unit(2), unit("1"), unit(1), unit("03")]
    assert state_identities(units, {unit("2"), unit(1), unit(9)}, whole) == (unit("2"), unit(1), unit("03"))
    assert state_identities([unit("1"), unit(1), unit("01")], (), whole) == (unit("1"),)
    assert state_identities([unit("1")], {unit(1), unit("1")}, whole) == (unit("1"),)
    assert state_identities([unit(1)], {unit(1), unit("1")}, whole) == (unit(1),)


@pytest.mark.parametrize(
    ("units", "known", "asks"),
    [
        ([1, 2], [], False),
        ([1, 2], [1, 2, "2"], False),
        ([1, 3], [1, 2], False),
        ([1, 2], ["1", "2"], True),
        (["1", 1], [], True),
        (["a", "b"], ["a"], False),
    ],
)
def test_types_are_asked_only_for_like_spellings(units: list[Any], known: list[Any], asks: bool) -> None:
    assert (
        may_have_equal_units([unit(value) for value in units], {unit(value) for value in known}, UTC) is asks
    )


def test_a_spelling_finds_the_unit_that_it_is_of_if_there_is_one() -> None:
    assert ListedUnits((unit("1"), unit("2")), UTC).spelling_of(unit(1)) == unit("1")
    assert ListedUnits((unit(1), unit("1")), UTC).spelling_of(unit(1)) == unit(1)
    assert ListedUnits((unit("01"), unit("1")), UTC).spelling_of(unit(1)) is None
    assert ListedUnits((unit("1"),), UTC).spelling_of(unit(3)) is None
    some = SelectedUnits(frozenset({unit(1)}), ListedUnits((unit(1), unit(2)), UTC))
    assert [each in some for each in (unit(1), unit("1"), unit(2), unit("2"))] == [True, True, False, False]
