"""Look-back: what it does to values of each type, beyond the conformance cases."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.column.lookback import parse_look_back
from partitions.errors import ConfigurationError

NOW = datetime(2026, 3, 8, 14, tzinfo=UTC)


def lower(value: Any, **units: int) -> Any:
    block = parse_look_back({"backward": units})
    return value if block is None else block.lower_bound(value, NOW)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (date(2026, 3, 8), date(2026, 3, 6)),  # from its midnight
        ("2026-03-08", "2026-03-06"),
        ("2026-03-08T12:30Z", "2026-03-07T11:30Z"),
        ("2026-03-08 12:30:15.5+0530", "2026-03-07 11:30:15.5+0530"),
        ("2026-02-30", "2026-02-30"),
        (7, 7),
        (time(12), time(12)),
        (None, None),
    ],
)
def test_days_and_hours_move_each_value_in_its_own_form(value: Any, expected: Any) -> None:
    assert lower(value, days=1, hours=1) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-03-08", "2026-02-01"),
        ("2026-03-08T12:30:15Z", "2026-02-01T00:00:00Z"),
        ("2026-03-08 12:30", "2026-02-01 00:00"),
        (datetime(2026, 3, 8, tzinfo=timezone(timedelta(hours=7))), datetime(2026, 2, 1, tzinfo=UTC)),
        (date(2026, 1, 5), date(2026, 1, 5)),
    ],
)
def test_a_closing_day_goes_to_the_first_of_the_month_in_the_value_s_form(value: Any, expected: Any) -> None:
    assert lower(value, closing_day=10) == expected


def test_hours_of_local_times_are_as_long_as_they_pass_where_clocks_are_put_forward() -> None:
    now = datetime(2026, 3, 8, 14, tzinfo=ZoneInfo("America/New_York"))
    given = {"spring": datetime(2026, 3, 8, 3, 30), "autumn": datetime(2026, 11, 1, 1, 30)}  # noqa: DTZ001 - local times
    block = parse_look_back({"backward": {"hours": 2}})
    assert block is not None
    assert {season: block.lower_bound(value, now) for season, value in given.items()} == {
        "spring": datetime(2026, 3, 8, 0, 30),  # noqa: DTZ001 - local times
        "autumn": datetime(2026, 10, 31, 23, 30),  # noqa: DTZ001
    }


def test_a_look_back_beyond_the_year_1_ends_there() -> None:
    assert lower(datetime(2026, 3, 8, tzinfo=UTC), years=5000) == datetime(1, 1, 8, tzinfo=UTC)
    assert lower(date(2026, 3, 8), days=10**9) == date(1, 1, 1)


@pytest.mark.parametrize("value", [-1, 1.5, "1.5", "-1", True, "x", [1]])
def test_anything_but_a_whole_number_of_at_least_0_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected a whole number of at least 0"):
        parse_look_back({"backward_days": value})


def test_a_nested_block_of_another_form_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="expected units with numbers"):
        parse_look_back({"backward": 7})


@given(
    st.datetimes(timezones=st.just(UTC)),
    st.dictionaries(
        st.sampled_from(["days", "hours", "months", "years", "closing_day"]), st.integers(0, 400)
    ),
)
def test_no_look_back_moves_a_bound_up(value: datetime, units: dict[str, int]) -> None:
    assert lower(value, **units) <= value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5000, 4000),
        (7, -993),
        (-(2**63) + 5, -(2**63)),
        (2**64, 2**64 - 1000),
        (1500.5, 500.5),
        (
            Decimal("98765432109876543210987654321098765432.5"),
            Decimal("98765432109876543210987654321098764432.5"),
        ),
        (date(2026, 3, 8), date(2026, 3, 8)),
        ("0000005000", "0000005000"),
    ],
)
def test_a_look_back_by_value_moves_numbers_exactly_and_nothing_else(value: Any, expected: Any) -> None:
    assert lower(value, by=1000) == expected
    assert type(lower(value, by=1000)) is type(expected)
