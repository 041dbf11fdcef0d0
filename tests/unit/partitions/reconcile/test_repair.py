"""What a repair reads again: keys in disjoint lists, or ranges, as the log stores them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from partitions.column.state import ColumnState, ReadBound
from partitions.predicate import Among, matches
from partitions.reconcile.columns import ComparedColumn
from partitions.reconcile.differences import Differences, RowSum
from partitions.reconcile.ranges import ComparedRange
from partitions.reconcile.repair import (
    KEYS_OF_A_QUERY,
    MAX_KEYS,
    MAX_QUERIES,
    RepairedKeys,
    RepairedRanges,
    keys_to_repair,
    read_repaired,
)
from partitions.sources.database_types import ColumnType

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "repaired",
    [
        RepairedKeys(("id", "Day"), ("ID", "day"), ((1, date(2026, 1, 1)), (None, None)), 1, compared="now"),
        RepairedKeys(("a",), ("a",), ((Decimal("1.50"),), (NOON,), ("it's",), (True,))),
        RepairedRanges(
            (
                ComparedRange("at", NOON, None, upper_inclusive=True),
                ComparedRange("at", holds_nulls=True),
            ),
            ColumnState({"at": ReadBound(NOON, inclusive=False), "n": ReadBound(4)}),
            ("at", "n"),
            "state 4",
        ),
    ],
)
def test_what_is_stored_is_read_as_it_was(repaired: RepairedKeys | RepairedRanges) -> None:
    assert read_repaired(repaired.stored()) == repaired


def test_keys_of_one_column_are_in_exactly_one_part() -> None:
    count = KEYS_OF_A_QUERY * 9
    keys = RepairedKeys(("id",), ("id",), tuple((number,) for number in range(count)))
    parts = keys.rows_to_read
    assert len(parts) == MAX_QUERIES
    values = [value for part in parts if isinstance(part, Among) for value in part.values]
    assert sorted(values) == list(range(count))


def test_keys_of_several_columns_are_in_exactly_one_part_each() -> None:
    keys = tuple((number % 3, f"k{number}") for number in range(KEYS_OF_A_QUERY + 10))
    parts = RepairedKeys(("shop", "code"), ("shop", "code"), (*keys, (None, None))).rows_to_read
    assert len(parts) == 2
    for shop, code in (keys[0], keys[-1], (None, None)):
        assert sum(matches(part, {"shop": shop, "code": code}) for part in parts) == 1
    assert not any(matches(part, {"shop": 9, "code": "k1"}) for part in parts)


def test_ranges_hold_no_row_above_the_compared_state() -> None:
    state = ColumnState({"n": ReadBound(10)})
    ranges = RepairedRanges(
        (ComparedRange("n", 5, None), ComparedRange("n", holds_nulls=True)), state, ("n",)
    )
    held = [number for number in (4, 5, 10, 11, None) if matches(ranges.rows, {"n": number})]
    assert held == [5, 10, None]


def _differences(count: int) -> Differences:
    differences = Differences(MAX_KEYS + 1, ("id",))
    for number in range(count):
        differences.add("missing", RowSum("", 0, "", None, (number,)), 0)
    return differences


def test_a_key_counts_once_and_too_many_keys_are_refused() -> None:
    columns = [ComparedColumn("id", "id", ColumnType("long"), ColumnType("long"))]
    differences = _differences(2)
    differences.add("extra", RowSum("", 0, "", None, (1,)), 0)
    repaired = keys_to_repair(columns, differences, ("missing", "extra", "different"))
    assert repaired == RepairedKeys(("id",), ("id",), ((1,), (0,)), lacked=1)
    assert (
        keys_to_repair(columns, _differences(MAX_KEYS + 1), ("missing",)) == "more than 250,000 keys differ"
    )
    for type_, words in (
        (ColumnType("double"), "floats"),
        (ColumnType("string", is_time_of_day=True), "times of day"),
        (ColumnType("long", dimensions=1), "arrays of numbers"),
    ):
        unlisted = [ComparedColumn("id", "id", type_, type_)]
        assert f"holds {words}" in str(keys_to_repair(unlisted, differences, ("missing",)))
