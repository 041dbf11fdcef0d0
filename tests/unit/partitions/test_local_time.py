from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.local_time import local, local_day, offset_changes

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Havana",
    "Asia/Kathmandu",
]


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        ("2024-10-26T23:59:59.999", "2024-10-27T01:59:59.999"),
        ("2024-10-27T00:00", "2024-10-27T02:00"),  # the first pass of the hour that is there twice
        ("2024-10-27T00:59:59.999", "2024-10-27T02:00"),
        ("2024-10-27T01:00", "2024-10-27T02:00"),
        ("2024-10-27T01:30", "2024-10-27T02:30"),
        ("2024-10-27T02:00", "2024-10-27T03:00"),
        ("2024-03-31T00:59:59.999", "2024-03-31T01:59:59.999"),
        ("2024-03-31T01:00", "2024-03-31T03:00"),
    ],
)
def test_an_hour_that_is_there_twice_is_over_when_both_are(instant: str, expected: str) -> None:
    ms = _ms(datetime.fromisoformat(instant).replace(tzinfo=UTC))
    assert local(ms, ZoneInfo("Europe/Berlin")) == datetime.fromisoformat(expected)


@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime(2024, 1, 1), datetime(2024, 12, 31)),  # noqa: DTZ001 - given without a zone
    st.integers(0, 7_200_000),
)
def test_local_times_never_turn_back_but_for_a_pass(zone: str, moment: datetime, later: int) -> None:
    ms = _ms(moment.replace(tzinfo=UTC)) // 1
    first, second = local(ms, ZoneInfo(zone)), local(ms + later, ZoneInfo(zone))
    assert first <= second
    own = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)).astimezone(ZoneInfo(zone))
    twice = own.utcoffset() != own.replace(fold=1 - own.fold).utcoffset()
    assert first == own.replace(tzinfo=None) or (twice and own.fold == 0)


def test_a_day_is_that_of_the_zone() -> None:
    ms = _ms(datetime(2024, 1, 1, 23, 30, tzinfo=UTC))
    assert [str(local_day(ms, ZoneInfo(zone))) for zone in ("UTC", "Europe/Berlin")] == [
        "2024-01-01",
        "2024-01-02",
    ]


@pytest.mark.parametrize(
    ("zone", "year", "changes"),
    [
        ("America/Recife", 2000, ["2000-02-27T02:00", "2000-10-08T03:00", "2000-10-15T02:00"]),
        ("Africa/Freetown", 1939, ["1939-06-01T00:40", "1939-09-01T01:00", "1939-09-05T00:40"]),
    ],
)
def test_changes_of_clocks_within_a_week_are_all_told(zone: str, year: int, changes: list[str]) -> None:
    told = [change.at for change in offset_changes(ZoneInfo(zone)) if change.at.year == year]
    assert told == [datetime.fromisoformat(change).replace(tzinfo=UTC) for change in changes]
