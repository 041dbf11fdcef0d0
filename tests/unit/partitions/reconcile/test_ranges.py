"""The ranges of a comparison, and which rows take part in it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from partitions.column.state import ColumnState, ReadBound
from partitions.errors import ConfigurationError
from partitions.predicate import Between, matches
from partitions.reconcile.ranges import MAX_RANGES, Ranges


def ranges(watermark: dict[str, Any], **fields: Any) -> Ranges:
    """Ranges of the first column of a watermark."""
    state = ColumnState.of(watermark)
    columns = tuple(name for name in watermark if not name.startswith("__"))
    return Ranges(columns[0], state, columns, **{"end": state.bounds.get(columns[0]), **fields})


def taking_part(of: Ranges, *rows: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows that are in a range."""
    return [row for row in rows if matches(of.rows, row)]


def test_rows_up_to_the_watermark_and_without_a_value_take_part() -> None:
    rows: list[dict[str, Any]] = [{"id": value} for value in (None, 1, 10, 11)]
    assert taking_part(ranges({"id": 10}), *rows) == rows[:3]
    assert taking_part(ranges({"id": 10, "__exclusive__": ["id"]}), *rows) == rows[:2]
    assert taking_part(ranges({"id": 10}, with_nulls=False), *rows) == rows[1:3]
    assert taking_part(ranges({"id": 10}, lower=5, with_nulls=False), *rows) == rows[2:3]


def test_a_row_above_any_column_takes_no_part() -> None:
    rows: list[dict[str, Any]] = [
        {"id": 1, "at": 9},
        {"id": 1, "at": 5},
        {"id": None, "at": 5},
        {"id": None, "at": None},
    ]
    assert taking_part(ranges({"id": 3, "at": 5}), *rows) == rows[1:]
    assert taking_part(ranges({"id": 3, "at": 5}, requires_value=True), *rows) == rows[1:3]


def test_a_column_that_has_no_stored_value_has_no_loaded_rows() -> None:
    rows: list[dict[str, Any]] = [{"id": 1, "at": None}, {"id": 1, "at": 1}]
    state = ColumnState.of({"id": 3})
    of = Ranges("id", state, ("id", "at"), end=state.bounds["id"])
    assert taking_part(of, *rows) == rows[:1]


def test_a_further_condition_holds_on_both_sides() -> None:
    rows = [{"id": 1, "day": 1}, {"id": 1, "day": 7}]
    assert taking_part(ranges({"id": 3}, also=Between("day", 5, None)), *rows) == rows[1:]


def test_ranges_cover_everything_once() -> None:
    at = [datetime(2026, month, 1, tzinfo=UTC) for month in (1, 2, 3)]
    of = ranges({"at": at[2]}, edges=(at[0], at[1]))
    assert [range_.words for range_ in of.all] == [
        "at < 2026-01-01 00:00:00+00:00",
        "at >= 2026-01-01 00:00:00+00:00 and at < 2026-02-01 00:00:00+00:00",
        "at >= 2026-02-01 00:00:00+00:00 and at <= 2026-03-01 00:00:00+00:00",
        "at without a value",
    ]
    assert of.all[0].as_json() == {
        "lower": None,
        "upper": {"at": {"__datetime__": "2026-01-01T00:00:00+00:00"}},
        "without_value": False,
    }


def test_a_requested_end_does_not_belong_to_the_last_range() -> None:
    of = ranges({"id": 10}, end=ReadBound(5, inclusive=False), with_nulls=False)
    assert taking_part(of, {"id": 4}, {"id": 5}) == [{"id": 4}]
    assert [range_.words for range_ in of.all] == ["id < 5"]


def test_more_ranges_than_sums_are_kept_of_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="at most 4,096 ranges, found 4,097"):
        ranges({"id": 10**6}, edges=tuple(range(MAX_RANGES)))
