"""Cuts by a histogram: ascending, inside the range, and parts of about as many rows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.column.cuts_by_statistics import Histogram

START = datetime(2026, 1, 1, tzinfo=UTC)
MADE = {
    "whole": lambda number: number,
    "instant": lambda number: START + timedelta(seconds=number),
    "local": lambda number: (START + timedelta(seconds=number)).replace(tzinfo=None),
    "day": lambda number: date(1900, 1, 1) + timedelta(days=number),
}


@pytest.mark.parametrize("kind", MADE)
def test_parts_of_a_bucket_and_of_many_have_as_many_rows_as_asked_for(kind: str) -> None:
    made: Any = MADE[kind]
    even = Histogram([made(number) for number in range(0, 10_001, 1000)], 1000)
    assert list(even.cuts(None, None, 250))[:6] == [made(number) for number in range(250, 1501, 250)]
    assert list(even.cuts(None, None, 2500)) == [made(number) for number in (2500, 5000, 7500, 10_000)]
    assert list(even.cuts(made(500), made(5000), 1000)) == [
        made(number) for number in (1500, 2500, 3500, 4500)
    ]
    assert list(even.cuts(made(10_000), None, 10)) == []
    assert list(even.cuts(None, made(0), 10)) == []


def test_many_rows_of_one_value_are_one_part() -> None:
    assert list(Histogram([1, 5, 5, 5, 9], 100).cuts(None, None, 50)) == [3, 5, 7, 9]


@given(
    st.lists(st.integers(-500, 500), min_size=2, max_size=12).map(sorted),
    st.integers(1, 400),
    st.integers(1, 150),
    st.none() | st.integers(-600, 600),
    st.none() | st.integers(-600, 600),
    st.sampled_from(sorted(MADE)),
)
def test_cuts_ascend_inside_the_range_and_no_part_is_much_larger(
    numbers: list[int], rows: int, step: int, lower: int | None, upper: int | None, kind: str
) -> None:
    made: Any = MADE[kind]
    bounds = [made(number) for number in numbers]
    low, high = (made(bound) if bound is not None else None for bound in (lower, upper))
    cuts = list(Histogram(bounds, rows).cuts(low, high, step))
    assert cuts == sorted(set(cuts))
    assert all(low is None or cut > low for cut in cuts)
    assert all(high is None or cut < high for cut in cuts)
    if kind in ("instant", "local"):
        inside = [first for first in (low, *cuts) if first is not None and first >= bounds[0]]
        for first, last in pairwise(inside):
            assert _rows_between(bounds, rows, first, last) <= 2 * step + _rows_of_ties(bounds, rows, last)


def _rows_between(bounds: list[Any], rows: int, first: Any, last: Any) -> float:
    """Rows above a value up to another, if those of each bucket lie evenly."""
    total = 0.0
    for low, high in pairwise(bounds):
        if high > low and high > first and low < last:
            total += rows * ((min(high, last) - max(low, first)) / (high - low))
    return total


def _rows_of_ties(bounds: list[Any], rows: int, last: Any) -> float:
    return sum(rows for low, high in pairwise(bounds) if low == high == last)
