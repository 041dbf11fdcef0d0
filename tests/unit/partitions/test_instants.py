from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from partitions.errors import ConfigurationError
from partitions.instants import (
    DAY,
    HOUR,
    MINUTE,
    Instant,
    add_days,
    add_months,
    as_datetime,
    floor_minute,
    milliseconds,
    zone_of,
)

LA = zone_of("America/Los_Angeles")
BERLIN = zone_of("Europe/Berlin")
zones = st.sampled_from(sorted(available_timezones())).map(ZoneInfo)
nows = st.datetimes(datetime(1900, 1, 2), datetime(2100, 1, 1)).map(lambda naive: naive.replace(tzinfo=UTC))  # noqa: DTZ001


def _ms(text: str) -> int:
    return milliseconds(datetime.fromisoformat(text))


def _at(text: str, now: str | None = None, zone: str = "UTC") -> int:
    return Instant.parse(text, zone_of(zone)).at(datetime.fromisoformat(now) if now else None)


@pytest.mark.parametrize(
    ("text", "zone", "wanted"),
    [
        ("2017-01-02", "UTC", "2017-01-02T00:00:00+00:00"),
        ("2020-01-01T10:00:30.123", "UTC", "2020-01-01T10:00:30.123+00:00"),
        ("2020-01-01 10:00:30.1", "UTC", "2020-01-01T10:00:30.100+00:00"),
        ("2020-01-01T10:00:30Z", "Europe/Berlin", "2020-01-01T10:00:30+00:00"),
        ("2020-01-01T10:00:30America/Los_Angeles", "UTC", "2020-01-01T10:00:30-08:00"),
        ("2020-01-01Europe/Berlin", "UTC", "2020-01-01T00:00:00+01:00"),
    ],
)
def test_a_constant_is_local_to_its_own_zone_or_the_definitions(text: str, zone: str, wanted: str) -> None:
    assert _at(text, zone=zone) == _ms(wanted)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("P0DT0H", "2020-03-10T10:00:00-07:00"),
        ("-", "2020-03-10T10:42:00-07:00"),
        ("P0D.Asia/Tokyo", "2020-03-11T00:00:00+09:00"),
    ],
)
def test_a_duration_floors_now_then_goes_back_days_and_elapsed_hours(text: str, wanted: str) -> None:
    assert _at(text, "2020-03-10T10:42:59.999-07:00", "America/Los_Angeles") == _ms(wanted)


@pytest.mark.parametrize(
    "text",
    [
        "", "2020", "2020-01", "2020-1-1", "2020-01-01T10", "2020-01-01T10:00", "2020-01-01T10:00:00.", "2020-02-30", "2019-02-29",
        "2020-13-01", "2020-01-01T24:00:00", "2020-01-01T10:60:00", "2020-01-01T10:00:00.1234567", "2020-01-01T10:00:00+25:00",
        "2020-01-01T10:00:00 Nowhere/City", "2020-01-01Nowhere/City", "P1", "PD", "P1DT", "P1DT24H", "P1DT1H60M", "P1DT5M", "PT1H",
        "P-1D", "P1W", "P0D.Nowhere/City", "--", "now", "\u0662020-01-01", "0000-01-01", "2020-01-01T10:00:00Z ",
    ],
)  # fmt: skip
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="expected"):
        Instant.parse(text, UTC)


def test_now_is_only_allowed_where_it_is_said() -> None:
    with pytest.raises(ConfigurationError, match="now"):
        Instant.parse("-", UTC, now_allowed=False)


def test_an_instant_that_no_calendar_holds_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="0001-01-01"):
        Instant.parse("0001-01-01", zone_of("Asia/Tokyo"))
    with pytest.raises(ConfigurationError, match="P999999D"):
        _at("P999999D", "2020-01-01T00:00:00+00:00")


def test_a_duration_needs_a_clock_and_a_constant_does_not_look_at_it() -> None:
    with pytest.raises(ConfigurationError, match="clock"):
        _at("P1D")
    assert _at("2020-01-01", "2030-01-01T00:00:00+00:00") == _at("2020-01-01")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Nowhere",
        "+24:00",
        "+1:00",
        "../UTC",
        "America",
        "utc+1",
        "localtime",
        "right/Europe/Berlin",
    ],
)
def test_an_unknown_zone_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="time zone"):
        zone_of(text)


@pytest.mark.parametrize(
    ("text", "hours"), [("Z", 0), ("UTC", 0), ("+05:30", 5.5), ("-0800", -8), ("Asia/Kathmandu", 5.75)]
)
def test_a_zone_is_a_name_or_an_offset(text: str, hours: float) -> None:
    assert datetime(2026, 1, 1, tzinfo=zone_of(text)).utcoffset() == timedelta(hours=hours)


def test_a_local_time_that_does_not_exist_counts_by_the_offset_before() -> None:
    assert _at("2020-03-29T02:30:00", zone="Europe/Berlin") == _ms("2020-03-29T03:30:00+02:00")
    assert add_days(_ms("2020-03-28T02:30:00+01:00"), 1, BERLIN) == _ms("2020-03-29T03:30:00+02:00")


def test_a_doubled_local_time_is_the_earlier_or_of_the_steps_offset() -> None:
    assert _at("2020-10-25T02:30:00", zone="Europe/Berlin") == _ms("2020-10-25T02:30:00+02:00")
    assert add_days(_ms("2020-10-24T02:30:00+02:00"), 1, BERLIN) == _ms("2020-10-25T02:30:00+02:00")
    assert add_days(_ms("2020-10-26T02:30:00+01:00"), -1, BERLIN) == _ms("2020-10-25T02:30:00+01:00")


def test_days_are_23_or_25_hours_long_where_clocks_change() -> None:
    assert add_days(_ms("2020-03-08T00:00:00-08:00"), 1, LA) - _ms("2020-03-08T00:00:00-08:00") == 23 * HOUR
    assert add_days(_ms("2020-11-01T00:00:00-07:00"), 1, LA) - _ms("2020-11-01T00:00:00-07:00") == 25 * HOUR
    assert add_days(_ms("2020-11-01T00:00:00+00:00"), 1, UTC) - _ms("2020-11-01T00:00:00+00:00") == DAY


@pytest.mark.parametrize(
    ("start", "months", "wanted"),
    [
        ("2020-01-31", 1, "2020-02-29"),
        ("2019-01-31", 1, "2019-02-28"),
        ("2020-02-29", 12, "2021-02-28"),
        ("2020-03-31", -1, "2020-02-29"),
        ("2020-12-15", 1, "2021-01-15"),
        ("2020-01-15", -1, "2019-12-15"),
    ],
)
def test_months_clamp_the_day(start: str, months: int, wanted: str) -> None:
    assert add_months(_at(start), months, UTC) == _at(wanted)


@given(zones, nows, st.integers(0, 400), st.sampled_from(["P{}D", "P{}DT0H", "P{}DT0H0M"]))
def test_a_floored_now_is_within_its_unit_below(zone: ZoneInfo, now: datetime, days: int, form: str) -> None:
    at = Instant.parse(form.format(0), zone).at(now)
    # A day may be skipped, or lived twice, where a zone moves across the date line.
    longest = {"P{}D": 2 * DAY + HOUR, "P{}DT0H": 2 * HOUR, "P{}DT0H0M": 2 * MINUTE}[form]
    assert 0 <= milliseconds(now) - at < longest
    assert Instant.parse(form.format(days), zone).at(now) <= at


@given(zones, nows, st.integers(-400, 400))
def test_days_keep_the_local_time(zone: ZoneInfo, now: datetime, days: int) -> None:
    local = now.astimezone(zone).replace(tzinfo=None) + timedelta(days=days)
    found = as_datetime(add_days(milliseconds(now), days, zone), zone)
    assume(
        local.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None) == local
    )  # it exists
    assert found.replace(tzinfo=None) == local.replace(microsecond=local.microsecond // 1000 * 1000)


@given(nows)
def test_milliseconds_come_back(now: datetime) -> None:
    assert as_datetime(milliseconds(now)) == now.replace(microsecond=now.microsecond // 1000 * 1000)
    assert floor_minute(now) == milliseconds(now.replace(second=0, microsecond=0))
