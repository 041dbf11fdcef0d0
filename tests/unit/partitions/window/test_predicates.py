"""Which rows extents mean, checked against a filter in Python."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.errors import ConfigurationError
from partitions.instants import as_datetime
from partitions.predicate import EVERYTHING, NOTHING, AllOf, Among, AnyOf, Between, matches
from partitions.window.extent import Extent, Unit
from partitions.window.predicates import (
    Clause,
    ExtentColumns,
    extents_predicate,
    merge_extents,
    split_disjoint,
    tagged_rows_predicate,
)

KINDS: dict[str, Any] = {"at": "whole", "u": "text", "v": "whole"}
COLUMNS = ExtentColumns({**KINDS, "at": "instant"}, "at", {"u": "u", "v": "v"})
UNITS: list[Unit] = [
    {},
    *[{"u": text} for text in ("a", "b'c", None)],
    *[{"u": text, "v": number} for text in ("a", None) for number in (1, None)],
]
moments = st.none() | st.integers(0, 9)


@st.composite
def extents(draw: st.DrawFn) -> list[Extent]:
    """Small ones, so that many touch and overlap."""
    lower, upper = draw(moments), draw(moments)
    units = tuple(draw(st.lists(st.sampled_from(UNITS), min_size=1, max_size=3)))
    rest = draw(extents()) if draw(st.booleans()) else []
    return [Extent(lower, upper, units), *rest]


ROWS = list(itertools.product([None, *range(10)], ["a", "b'c", "z", None], [1, 2, None]))


def _meant(row: tuple[Any, Any, Any], extent: Extent) -> bool:
    at, u, v = row
    if (extent.lower, extent.upper) != (None, None):
        if at is None:
            return False
        if not (extent.lower is None or extent.lower <= at) or not (
            extent.upper is None or at < extent.upper
        ):
            return False
    return any(all({"u": u, "v": v}[name] == value for name, value in unit.items()) for unit in extent.units)


@given(extents() | st.just([]))
def test_the_predicate_matches_the_rows_of_the_extents_and_no_others(extents: list[Extent]) -> None:
    predicate = extents_predicate(extents, COLUMNS)
    for at, u, v in ROWS:
        row = {"at": None if at is None else as_datetime(at), "u": u, "v": v}
        assert matches(predicate, row) == any(_meant((at, u, v), extent) for extent in extents)


@given(extents())
def test_disjoint_extents_hold_each_instant_of_a_unit_once(extents: list[Extent]) -> None:
    single = split_disjoint(extents)
    assert all(len(extent.units) == 1 for extent in single)
    for unit, ms in itertools.product(UNITS, range(10)):
        wanted = any(unit in extent.units and _holds(extent, ms) for extent in extents)
        assert sum(extent.units == (unit,) and _holds(extent, ms) for extent in single) == wanted


def _holds(extent: Extent, ms: int) -> bool:
    return (extent.lower is None or extent.lower <= ms) and (extent.upper is None or ms < extent.upper)


def test_ranges_that_touch_are_one_and_units_with_the_same_ranges_are_together() -> None:
    a, b, c = {"u": "a"}, {"u": "b"}, {"u": "c"}
    found = merge_extents(
        [Extent(5, 9, (c,)), Extent(0, 5, (a, b)), Extent(5, 7, (b, a, a)), Extent(3, 3, (c,))]
    )
    assert found == [Clause(((0, 7),), (a, b)), Clause(((5, 9),), (c,))]


def test_disjoint_extents_are_in_order_of_time_and_not_merged() -> None:
    a, b = {"u": "a"}, {"u": "b"}
    found = split_disjoint([Extent(5, 9, (a, b)), Extent(0, 6, (a,)), Extent(0, 6, (a,))])
    assert found == [Extent(0, 6, (a,)), Extent(6, 9, (a,)), Extent(5, 9, (b,))]


def test_the_predicate_is_the_same_however_extents_are_cut() -> None:
    units: tuple[Unit, ...] = ({"u": "a"}, {"u": None})
    whole = extents_predicate([Extent(0, 4, units)], COLUMNS)
    assert whole == AnyOf((AllOf((Between("at", as_datetime(0), as_datetime(4)), Among("u", ("a", None)))),))
    assert (
        extents_predicate([Extent(2, 4, units), Extent(0, 2, units), Extent(1, 3, units)], COLUMNS) == whole
    )


def test_units_of_several_columns_are_compared_column_by_column() -> None:
    found = extents_predicate([Extent(None, None, ({"u": "a", "v": 1}, {"u": "b", "v": None}))], COLUMNS)
    first = AllOf((Among("u", ("a",)), Among("v", (1,))))
    second = AllOf((Among("u", ("b",)), Among("v", (None,))))
    assert found == AnyOf((AnyOf((first, second)),))


def test_no_extents_are_no_rows_and_one_without_bounds_and_units_is_all_rows() -> None:
    assert extents_predicate([], COLUMNS) == NOTHING
    assert extents_predicate([Extent(4, 4, ({},))], COLUMNS) == NOTHING
    assert extents_predicate([Extent(None, None, ({},))], COLUMNS) == AnyOf((EVERYTHING,))


def test_tagged_rows_of_units_with_the_same_windows_are_together() -> None:
    keys = [("b", 5), ("b", 9), ("a", 5), ("a", 9), ("c", 9), ("d", None), ("d", 5)]
    found = tagged_rows_predicate(keys, start_column="start", unit_column="unit")
    assert found == AnyOf(
        (
            Among("unit", ("d",)),
            AllOf((Among("start", (as_datetime(5), as_datetime(9))), Among("unit", ("a", "b")))),
            AllOf((Among("start", (as_datetime(9),)), Among("unit", ("c",)))),
        )
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("instant", datetime(2024, 3, 30, 23, 30, tzinfo=UTC)),
        ("local", datetime.fromisoformat("2024-03-31T00:30:00")),
        ("day", date(2024, 3, 31)),
    ],
)
def test_a_bound_is_of_the_columns_type(kind: Any, expected: Any) -> None:
    columns = ExtentColumns({"at": kind}, "at", {}, ZoneInfo("Europe/Berlin"))
    assert columns.bound(1_711_841_400_000) == expected


@pytest.mark.parametrize(
    ("columns", "extent", "said"),
    [
        (ExtentColumns({}, None, {}), Extent(0, 1, ({},)), "expected window_column, or a query with"),
        (ExtentColumns({}, None, {}), Extent(None, None, ({"s": 1},)), r"expected a column for s in unit_columns, or \{unit\.s\}"),
        (ExtentColumns({}, None, {}, elsewhere=frozenset({"start"})), Extent(0, 1, ({},)), r"or a query with \{start\} and \{end\}, found neither"),
        (ExtentColumns(KINDS, None, {"v": "v"}), Extent(None, None, ({"v": "x1"},)), "unit v: expected a whole number, as the column v holds, found text 'x1'"),
        (ExtentColumns(KINDS, None, {"u": "u"}), Extent(None, None, ({"u": 1.5},)), "unit u: expected text, as the column u holds, found float 1.5"),
    ],
)  # fmt: skip
def test_what_no_predicate_can_say_is_refused(columns: ExtentColumns, extent: Extent, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        extents_predicate([extent], columns)


def test_what_a_query_takes_care_of_itself_is_not_compared_again() -> None:
    columns = ExtentColumns(KINDS, None, {}, elsewhere=frozenset({"start", "end", "unit.s"}))
    assert extents_predicate([Extent(0, 1, ({"s": 1},))], columns) == AnyOf((EVERYTHING,))
