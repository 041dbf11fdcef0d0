"""Bounds as parameters: what is said is what is read."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.api.calendar_ranges import split_range
from partitions.api.parameters import BoundFormatter, Exclusive, Format, format_parameter, inclusive_end
from partitions.errors import ConfigurationError
from partitions.instants import zone_of

FORMATS = st.sampled_from(get_args(Format))
MODES = st.sampled_from([None, *get_args(Exclusive)])
ZONES = st.sampled_from([UTC, zone_of("Europe/Berlin"), zone_of("-05:30"), zone_of("Asia/Ho_Chi_Minh")])
INSTANTS = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


def said(text: str, form: str, zone: Any) -> datetime:
    """The instant that an API takes a parameter for."""
    if form == "timestamp":
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=float(text))
    if form == "timestamp_ms":
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=int(text))
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)


@given(INSTANTS, FORMATS, MODES, ZONES)
def test_a_said_bound_is_within_a_step_below(moment: datetime, form: Any, mode: Any, zone: Any) -> None:
    bounds = BoundFormatter(form, zone, UTC, mode)
    floored, raised = bounds.floored(moment), bounds.raised(moment)
    # A day may have an hour more; what a repeated hour holds cannot be said at all without an offset.
    most = bounds.step + timedelta(hours=2)
    assert moment - most < floored <= moment <= raised < moment + most
    assert (bounds.floored(floored), bounds.raised(floored)) == (floored, floored)


@given(INSTANTS, FORMATS, ZONES)
def test_the_api_is_told_exactly_the_bound_that_is_saved(moment: datetime, form: Any, zone: Any) -> None:
    bounds = BoundFormatter(form, zone)
    bound = bounds.floored(moment)
    tolerance = timedelta(microseconds=1) if form == "timestamp" else timedelta(0)
    for text in (bounds.lower(bound), bounds.upper(bound)):
        assert abs(said(text, form, zone) - bound) <= tolerance


@given(INSTANTS, FORMATS, ZONES, st.booleans())
def test_no_row_at_its_lower_bound_is_lost(moment: datetime, form: Any, zone: Any, excludes: bool) -> None:
    asked = said(BoundFormatter(form, zone, excludes_lower=excludes).lower(moment), form, zone)
    late = timedelta(microseconds=1) if form == "timestamp" else timedelta(0)
    assert asked < moment + late if excludes else asked <= moment + late


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (None, "2026-01-02T00:00:00+00:00"),
        ("1ms", "2026-01-01T23:59:59.999000+00:00"),
        ("1s", "2026-01-01T23:59:59+00:00"),
        ("1day", "2026-01-01T00:00:00+00:00"),
    ],
)
def test_an_api_whose_end_is_inclusive_is_asked_for_less(mode: Any, expected: str) -> None:
    assert BoundFormatter(exclusive=mode).upper(datetime(2026, 1, 2, tzinfo=UTC)) == expected


def test_bounds_are_said_in_the_zone_of_the_api() -> None:
    bound = datetime(2026, 1, 1, 23, 30, tzinfo=UTC)
    berlin = zone_of("Europe/Berlin")
    assert BoundFormatter("datetime", berlin).lower(bound) == "2026-01-02T00:30:00"
    assert BoundFormatter("date", berlin).lower(bound) == "2026-01-02"
    assert BoundFormatter("iso", berlin).lower(bound) == "2026-01-02T00:30:00+01:00"
    local = bound.replace(tzinfo=None)
    assert BoundFormatter("timestamp_ms", local_zone=berlin).lower(local) == "1767306600000"
    assert BoundFormatter("iso", local_zone=berlin).lower(local) == "2026-01-01T23:30:00"


@pytest.mark.parametrize("form", get_args(Format))
@pytest.mark.parametrize(("value", "text"), [(7, "7"), ("abc", "abc"), (Decimal("1.50"), "1.50")])
def test_what_is_no_time_goes_out_as_it_is(form: Any, value: Any, text: str) -> None:
    assert (BoundFormatter(form).lower(value), format_parameter(value, form)) == (text, text)


def test_a_day_is_its_midnight_in_the_zone_of_the_api() -> None:
    day, zone = date(2026, 1, 2), timezone(timedelta(hours=7))
    assert BoundFormatter("iso", zone).upper(day) == "2026-01-02T00:00:00+07:00"
    assert BoundFormatter("date", zone, exclusive="1day").upper(day) == "2026-01-01"


def test_unknown_words_are_refused() -> None:
    now: Any = datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(ConfigurationError, match="1week"):
        inclusive_end(now, "1week")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="rfc"):
        format_parameter(now, "rfc")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="week"):
        split_range(now, now, 1, "week")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="amount"):
        split_range(now, now, 0, "day")


@given(
    INSTANTS,
    st.timedeltas(timedelta(0), timedelta(days=900)),
    st.integers(1, 40),
    st.sampled_from(["day", "month", "year"]),
)
def test_ranges_join_and_cover_everything_once(
    start: datetime, length: timedelta, amount: int, unit: Any
) -> None:
    found = list(split_range(start, start + length, amount, unit))
    assert all(lower < upper for lower, upper in found)
    assert [upper for _, upper in found[:-1]] == [lower for lower, _ in found[1:]]
    assert not length or (found[0][0], found[-1][1]) == (start, start + length)


def test_hours_pass_also_where_the_clock_is_put_back() -> None:
    zone = zone_of("Europe/Berlin")
    start = datetime(2026, 10, 25, 1, tzinfo=zone)
    found = list(split_range(start, datetime(2026, 10, 25, 5, tzinfo=zone), 1, "hour"))
    assert [upper.astimezone(UTC) - lower.astimezone(UTC) for lower, upper in found] == [
        timedelta(hours=1)
    ] * 5


@pytest.mark.parametrize("hour", ["2026-03-29T01:00+00:00", "2026-10-25T01:00+00:00"])
def test_a_moment_before_a_bound_is_so_where_clocks_change(hour: str) -> None:
    berlin, moment = zone_of("Europe/Berlin"), datetime.fromisoformat(hour)
    end = BoundFormatter(zone=berlin, exclusive="1s").upper(moment)
    assert datetime.fromisoformat(end) == moment - timedelta(seconds=1)
    start = BoundFormatter(zone=berlin, exclusive="1ms", excludes_lower=True).lower(moment)
    assert datetime.fromisoformat(start) == moment - timedelta(milliseconds=1)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize("form", get_args(Format))
def test_the_ends_of_the_calendar_are_said_in_each_zone(zone: str, form: Any) -> None:
    bounds = BoundFormatter(form, zone_of(zone), zone_of(zone), excludes_lower=True)
    first, last = datetime.min, datetime.max  # noqa: DTZ901 - local times
    for value in (first, first.replace(tzinfo=UTC), first.date()):
        said = bounds.lower(value)
        assert said.startswith(("0001-01-01", "-62135"))
    for value in (last, last.replace(tzinfo=UTC), last.date()):
        said = bounds.upper(value)
        assert said.startswith(("9999-12-31", "2534"))
    first, last = first.replace(tzinfo=UTC), last.replace(tzinfo=UTC)
    assert bounds.floored(first) <= first
    assert bounds.raised(last) >= last


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC), "0.000001"),
        (datetime(9998, 1, 1, 0, 0, 0, 1, tzinfo=UTC), "253339228800.000001"),
        (datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC), "-0.5"),
        (datetime(2026, 1, 1, tzinfo=UTC), "1767225600.0"),
    ],
)
def test_seconds_are_said_with_all_their_digits(moment: datetime, text: str) -> None:
    assert format_parameter(moment, "timestamp") == text


def test_an_offset_with_seconds_is_said_in_utc() -> None:
    monrovia = zone_of("Africa/Monrovia")
    assert (
        BoundFormatter("iso", monrovia).lower(datetime(1960, 1, 1, tzinfo=UTC)) == "1960-01-01T00:00:00+00:00"
    )


def test_ranges_go_on_through_an_hour_that_comes_twice() -> None:
    zone = zone_of("America/New_York")
    start, end = datetime(2026, 11, 1, 1, 30, tzinfo=zone), datetime(2026, 11, 1, 1, 10, tzinfo=zone, fold=1)
    assert list(split_range(start, end, 1, "hour")) == [(start, end)]
    first = next(
        iter(split_range(datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC), 1, "hour"))
    )
    assert first[1] == datetime(1, 1, 1, 1, tzinfo=UTC)
