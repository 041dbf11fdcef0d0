"""Chunks of a replay over any range."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.errors import ConfigurationError
from partitions.replay.bounds import ReplayBound
from partitions.replay.chunks import MAX_CHUNKS, Chunk, chunk_column, chunks, chunks_above
from partitions.replay.every import fitted_chunks, parse_interval
from partitions.unit_values import ValueType

_TIMES = st.datetimes(
    min_value=datetime.fromisoformat("2019-01-01"), max_value=datetime.fromisoformat("2021-12-31")
)
_CALENDAR = st.sampled_from(["years", "months", "weeks", "days"])
_AMOUNT = st.integers(min_value=1, max_value=30)


@given(_TIMES, _TIMES, _CALENDAR, _AMOUNT)
def test_chunks_cover_a_range_once_in_order(one: datetime, other: datetime, unit: str, amount: int) -> None:
    start, end = sorted((one, other))
    if start == end:
        end += timedelta(microseconds=1)
    _covers(chunks("at", start, end, {unit: amount}), start, end)


@given(st.integers(-500, 500), st.integers(1, 500), _AMOUNT)
def test_steps_end_at_multiples_of_the_step(start: int, length: int, step: int) -> None:
    planned = chunks("id", start, start + length, {"step": step})
    _covers(planned, start, start + length)
    assert [chunk.upper % step for chunk in planned[:-1]] == [0] * (len(planned) - 1)  # type: ignore[operator]


@given(_TIMES, st.integers(1, 2_000), st.sampled_from(["hours", "minutes"]), st.integers(1, 100))
def test_blocks_end_with_the_day_and_the_hour(start: datetime, minutes: int, unit: str, amount: int) -> None:
    planned = chunks("at", start, start + timedelta(minutes=minutes), {unit: amount})
    _covers(planned, start, start + timedelta(minutes=minutes))
    for chunk in planned:
        last = chunk.upper - timedelta(microseconds=1)  # type: ignore[operator]
        assert last.date() == chunk.lower.date()  # type: ignore[union-attr]
        assert unit == "hours" or last.hour == chunk.lower.hour  # type: ignore[union-attr]


@given(_TIMES, st.integers(2, 400), st.integers(0, 400))
def test_a_chunk_remains_if_it_ends_above_the_value(start: datetime, days: int, after: int) -> None:
    planned = chunks("at", start, start + timedelta(days=days), {"weeks": 1})
    stored = start + timedelta(days=after)
    left = chunks_above(planned, {"at": stored})
    assert left == tuple(chunk for chunk in planned if chunk.upper > stored)  # type: ignore[operator]
    for chunk in left:
        stored = chunk.upper  # type: ignore[assignment]
    assert chunks_above(planned, {"at": stored}) == ()


def test_the_last_year_that_a_date_can_have_ends_the_last_chunk() -> None:
    assert chunks("at", "9998-06-01", "9999-12-31", {"years": 1})[-1] == Chunk(
        "at", date(9999, 1, 1), date(9999, 12, 31)
    )


@pytest.mark.parametrize(("start", "end", "interval", "told"), [
    ("2025-01-02", "2025-01-02", None, "expected a start below the end"),
    ("20250101", "2025-02-01", None, "expected two values of one kind"),
    ("2025-1-1", "2025-02-01", None, "start: expected a date"),
    ("2025-02-30", "2025-03-01", None, "day is out of range"),
    ("2025-01-01T00:00:00.1234567", "2025-03-01", None, "start: expected a date"),
    ("2025-01-01", "2025-02-01", {"days": 1.5}, "a whole number of days above 0, found 1.5"),
    ("2025-01-01", "2025-02-01", {"days": True}, "a whole number of days above 0, found True"),
    ("2025-01-01", "2025-02-01", {"days": 1, "hours": 1}, "expected one of step, years"),
    ("2025-01-01", "2025-02-01", {"step": 10}, "expected numbers for start and end"),
    ("1", "200", {"hours": 10}, "expected 'step'"),
    (True, 2, None, "start: expected a date"),
])  # fmt: skip
def test_what_cannot_be_cut_is_told_what_can(start: Any, end: Any, interval: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        chunks("at", start, end, interval)


def test_another_than_a_watermark_column_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigurationError, match=r"a watermark column \(at, id\), found 'name'"):
        chunk_column("name", ["at", "id"])


def _covers(planned: tuple[Chunk, ...], start: Any, end: Any) -> None:
    assert (planned[0].lower, planned[-1].upper) == (start, end)
    assert all(chunk.lower < chunk.upper for chunk in planned)  # type: ignore[operator]
    assert all(left.upper == right.lower for left, right in pairwise(planned))


@pytest.mark.parametrize(
    ("start", "end", "interval"),
    [
        (0, MAX_CHUNKS + 1, {"step": 1}),
        (0, 10**30, {"step": 1}),
        ("0001-01-01", "9999-12-31", {"minutes": 1}),
    ],
)
def test_too_many_chunks_are_refused_before_made(start: Any, end: Any, interval: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match="at most 100,000 chunks"):
        chunks("id", start, end, interval)
    assert len(chunks("id", 0, MAX_CHUNKS, {"step": 1})) == MAX_CHUNKS


@pytest.mark.parametrize(
    "bound", ["0001-01-01T00:00+14:00", "9999-12-31T23:00-02:00", "2026-01-01T00:00+25:00"]
)
def test_a_bound_that_is_no_time_in_utc_is_refused(bound: str) -> None:
    with pytest.raises(ConfigurationError, match="expected a date such as"):
        chunks("at", bound, "2026-01-01T00:00Z", None)


def test_an_interval_of_more_digits_than_a_number_has_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="expected a whole number, a blank and a unit"):
        parse_interval("9" * 5000 + " years")


@pytest.mark.parametrize(
    ("kind", "lower", "told"),
    [
        ("day", datetime.fromisoformat("2026-01-01T12:00"), "holds a date, found 2026-01-01 12:00:00. Take dates, and chunks of whole days"),
        ("local", datetime(2026, 1, 1, tzinfo=UTC), r"without zone, found 2026-01-01 00:00:00\+00:00. Take dates, or times without"),
        ("text", 1, "holds text, found 1. Columns of dates, times and numbers have chunks"),
    ],
)  # fmt: skip
def test_bounds_of_another_type_are_refused_with_those_that_fit(
    kind: ValueType, lower: ReplayBound, told: str
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        fitted_chunks([Chunk("at", lower, lower)], kind)


def test_an_unknown_unit_of_an_interval_is_named_as_it_was_written() -> None:
    assert [parse_interval(text) for text in ("2 Day", "1 months", "5 step")] == [
        {"days": 2},
        {"months": 1},
        {"step": 5},
    ]
    with pytest.raises(ConfigurationError, match=r"every: expected one of step, years, .*, found 'dayz'"):
        parse_interval("2 dayz")
