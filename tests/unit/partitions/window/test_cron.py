"""Dagster's windows are ours, start by start and end by end, wherever a definition gets a cron expression."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import takewhile
from typing import Any
from zoneinfo import available_timezones

import pytest
from dagster import DynamicPartitionsDefinition, TimeWindowPartitionsDefinition
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from partitions.dagster_partitions import WindowPartitions
from partitions.errors import ConfigurationError
from partitions.instants import milliseconds
from partitions.window.cron import CronWindows
from partitions.window.definition import WindowWatermark
from tests.support.windows import windowed

LAST = milliseconds(datetime(2035, 1, 1, tzinfo=UTC))
GRAINS = ("hourly", "daily", "weekly", "monthly", "yearly")


@cache
def zones() -> list[str]:
    return sorted(available_timezones())


def time_windows(watermark: WindowWatermark) -> TimeWindowPartitionsDefinition:
    definition = WindowPartitions.of("flow", watermark).definition
    assert isinstance(definition, TimeWindowPartitionsDefinition)
    return definition


def ticks(definition: TimeWindowPartitionsDefinition) -> Iterator[tuple[int, int]]:
    """Dagster's windows, without end."""
    for window in definition._iterate_time_windows(definition.start_timestamp):
        yield milliseconds(window.start), milliseconds(window.end)


def ours(watermark: WindowWatermark) -> Iterator[tuple[int, int]]:
    """The windows as they follow from the definition, without end."""
    grid, start = watermark.default_grid, watermark.time_range.start(None)
    while True:
        yield start, (start := grid.end(start))


def at(watermark: WindowWatermark, now: datetime) -> tuple[list[int], list[int]]:
    """The starts of the windows at an instant: Dagster's, and those that are planned."""
    partitions, windows = WindowPartitions.of("flow", watermark), watermark.windows(now)
    keys = time_windows(watermark).get_partition_keys(current_time=now)
    return [partitions.window_of(key) for key in keys], list(windows.starts)


# Clocks change in these hours mostly; the others are drawn less often.
_times = st.tuples(
    st.sampled_from([0, 0, 1, 2, 3, 23]) | st.integers(0, 23),
    st.sampled_from([0, 0, 30]) | st.integers(0, 59),
)
_days = st.dates(date(1970, 1, 1), date(2034, 12, 31))


@st.composite
def starts(draw: st.DrawFn, grain: str) -> str:
    day, (hour, minute) = draw(_days), draw(_times)
    year = 2034 if grain == "hourly" else max(day.year, 2015) if grain == "daily" else day.year
    return f"{year}-{day:%m}-{min(day.day, 28):02}T{hour:02}:{minute:02}:00"


@pytest.mark.full
@pytest.mark.parametrize("grain", GRAINS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_dagsters_windows_are_ours_in_each_zone_until_2035(grain: str, data: st.DataObject) -> None:
    watermark = windowed(data.draw(starts(grain)), window=grain, timezone=data.draw(st.sampled_from(zones())))
    assume(CronWindows.of(watermark) is not None)
    theirs = takewhile(lambda window: window[0] < LAST, ticks(time_windows(watermark)))
    for window, own in zip(theirs, ours(watermark), strict=False):
        assert window == own


@pytest.mark.parametrize(
    ("start", "window", "zone"),
    [
        ("2017-01-01", "daily", "America/Sao_Paulo"),  # midnight was skipped until 2018
        ("2020-01-01T02:30:00", "daily", "Europe/Berlin"),
        ("2020-01-01T01:30:00", "weekly", "America/New_York"),
        ("2011-06-01T12:00:00", "daily", "Pacific/Apia"),  # a whole day was skipped
        ("2020-01-31", "monthly", "UTC"),
        ("2020-02-29", "yearly", "UTC"),
        ("2020-01-01T00:00:30", "hourly", "UTC"),
        ("2020-01-01T00:00:00.001", "daily", "UTC"),
        ("P7D", "daily", "UTC"),
        ("2020-01-01", "daily", "+05:30"),
        ("1969-01-01", "daily", "UTC"),
        ("2020-01-01", {"daily": ["2020-01-01", "-"]}, "UTC"),
    ],
)
def test_windows_that_cron_does_not_give_have_dynamic_keys(start: str, window: Any, zone: str) -> None:
    definition = WindowPartitions.of("flow", windowed(start, window=window, timezone=zone)).definition
    assert definition == DynamicPartitionsDefinition(name="flow_windows")


@pytest.mark.parametrize(
    ("to", "window"),
    [
        ("P0D", "weekly"),
        ("P1D", "monthly"),
        ("P0DT6H", "daily"),
        ("P1D.Asia/Tokyo", "daily"),
        ("P0DT0H30M", "hourly"),
    ],
)
def test_an_end_before_now_that_falls_inside_windows_has_dynamic_keys(to: str, window: str) -> None:
    assert CronWindows.of(windowed("2020-01-01", to, window)) is None


@pytest.mark.parametrize(
    ("start", "window", "zone", "schedule", "key"),
    [
        ("2020-01-01", "daily", "Europe/Berlin", "0 0 * * *", "2020-01-01"),
        ("2020-01-01T03:00:00", "daily", "Europe/Berlin", "0 3 * * *", "2020-01-01T03:00"),
        ("2020-01-06", "weekly", "UTC", "0 0 * * 1", "2020-01-06"),
        ("2020-01-05T04:05:00", "weekly", "Z", "5 4 * * 0", "2020-01-05T04:05"),
        ("2020-01-28", "monthly", "UTC", "0 0 28 * *", "2020-01-28"),
        ("2020-03-04", "yearly", "Asia/Tokyo", "0 0 4 3 *", "2020-03-04"),
        ("2020-01-01T00:15:00", "hourly", "Asia/Kolkata", "45 * * * *", "2019-12-31T18:45Z"),
        ("2020-01-01T00:00:00+01:00", "daily", "UTC", "0 23 * * *", "2019-12-31T23:00"),
    ],
)
def test_cron_ticks_where_the_first_window_starts_and_its_key_says_when(
    start: str, window: str, zone: str, schedule: str, key: str
) -> None:
    partitions = WindowPartitions.of("flow", windowed(start, window=window, timezone=zone))
    assert partitions.cron is not None
    first = partitions.watermark.time_range.start(None)
    assert (partitions.cron.schedule, partitions.window_key(first), partitions.window_of(key)) == (
        schedule,
        key,
        first,
    )


_TO = ("-", "2025-03-10", "2025-03-10T12:30:00", "2031-01-01", "2025-01-01", "2025-01-01T00:30:00")


@settings(max_examples=100, deadline=None)
@given(
    grain=st.sampled_from(GRAINS),
    to=st.sampled_from(_TO),
    partial=st.booleans(),
    minutes=st.integers(1, 60 * 24 * 500),
    zone=st.sampled_from(["UTC", "Europe/Berlin"]),
)
def test_at_each_instant_dagster_shows_the_windows_that_are_planned(
    grain: str, to: str, partial: bool, minutes: int, zone: str
) -> None:
    start = "2025-01-01" if grain in ("hourly", "daily") else "2020-01-01"
    now = datetime(2025, 1, 8, tzinfo=UTC) + timedelta(minutes=minutes)
    # Only in the first minute of a window Dagster is ahead of us: we cut now down to the minute.
    now += timedelta(minutes=now.minute == 0, seconds=1)
    theirs, planned = at(windowed(start, to, grain, partial=partial, timezone=zone), now)
    assert theirs == planned


@pytest.mark.parametrize(
    ("to", "window", "zone"),
    [
        ("P0D", "daily", "Europe/Berlin"),
        ("P3D", "daily", "America/New_York"),
        ("P100D", "daily", "UTC"),
        ("P0DT0H", "hourly", "UTC"),
        ("P2DT5H", "hourly", "UTC"),
    ],
)
@pytest.mark.parametrize("partial", [True, False])
@settings(max_examples=15, deadline=None)
@given(minutes=st.integers(1, 60 * 24 * 200))
def test_an_end_before_now_that_falls_between_windows_is_shown_exactly(
    to: str, window: str, zone: str, partial: bool, minutes: int
) -> None:
    now = datetime(2025, 6, 15, tzinfo=UTC) + timedelta(minutes=minutes, seconds=1)
    theirs, planned = at(windowed("2025-03-01", to, window, partial=partial, timezone=zone), now)
    assert theirs == planned


def test_the_last_window_that_an_end_cuts_short_is_shown_as_whole_and_planned_as_cut() -> None:
    watermark = windowed("2020-01-01", "2020-01-03T12:00:00")
    now = datetime(2021, 1, 1, tzinfo=UTC)
    definition = time_windows(watermark)
    assert definition.get_partition_keys(current_time=now) == ["2020-01-01", "2020-01-02", "2020-01-03"]
    assert definition.end == datetime(2020, 1, 4, tzinfo=UTC)
    assert watermark.windows(now).ends[-1] == milliseconds(datetime(2020, 1, 3, 12, tzinfo=UTC))


@pytest.mark.parametrize("key", ["2020-1-1", "2020-01-01T00:00", "", "x", "2020-02-30"])
def test_a_text_that_is_no_start_in_the_definition_s_form_is_no_key(key: str) -> None:
    with pytest.raises(
        ConfigurationError, match="expected the start of a window, such as 2020-01-01, found the key"
    ):
        WindowPartitions.of("flow", windowed("2020-01-01")).window_of(key)


def test_a_window_that_starts_within_its_length_is_not_planned() -> None:
    watermark = windowed("2030-01-02")
    theirs, planned = at(watermark, datetime(2030, 1, 1, 12, tzinfo=UTC))
    assert (len(theirs), planned) == (1, [])
    assert at(watermark, datetime(2030, 1, 1, tzinfo=UTC) - timedelta(hours=1)) == ([], [])
