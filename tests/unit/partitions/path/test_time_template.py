from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.errors import ConfigurationError
from partitions.path.cold_start import prefixes
from partitions.path.order import is_past
from partitions.path.time_template import TimeTemplate

READING = [
    "date=%Y-%m-%d",
    "%Y/%m/%d",
    "year=%Y/month=%m",
    "y=%Y",
    "date=%Y-%m-%d/hour=%H",
    "%Y%m%d%H",
    "%Y/%j",
    "year=%Y/date=%Y-%m-%d",
    "d=%d-%m-%Y",
    "100%%/%Y",
]
templates = st.sampled_from(READING).map(TimeTemplate)
instants = st.datetimes(datetime(1100, 1, 1), datetime(9900, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(templates, instants)
def test_reading_a_partition_inverts_writing_it(template: TimeTemplate, instant: datetime) -> None:
    start = template.floor(instant)
    assert template.time(start.strftime(template.text)) == start


@given(templates, instants)
def test_an_instant_lies_in_the_unit_that_it_is_floored_to(template: TimeTemplate, instant: datetime) -> None:
    start = template.floor(instant)
    assert start <= instant < template.end(start)


@given(templates, instants, st.integers(0, 50))
def test_a_look_back_has_n_plus_1_prefixes(template: TimeTemplate, now: datetime, lookback: int) -> None:
    found = prefixes(template, lookback, now)
    times = [template.time(prefix) for prefix in found]
    assert len(found) == lookback + 1
    assert times[-1] == template.floor(now)
    assert all(earlier and template.end(earlier) == later for earlier, later in pairwise(times))


@given(templates, instants, st.integers(-12, 12))
def test_prefixes_are_in_utc_whatever_the_offset(template: TimeTemplate, now: datetime, hours: int) -> None:
    elsewhere = now.astimezone(timezone(timedelta(hours=hours)))
    assert prefixes(template, 3, elsewhere) == prefixes(template, 3, now)


@given(
    st.sampled_from([text for text in READING if text != "d=%d-%m-%Y"]).map(TimeTemplate), instants, instants
)
def test_a_jump_leaves_closed_partitions(template: TimeTemplate, one: datetime, other: datetime) -> None:
    closed, bound = sorted((template.floor(one), template.floor(other)))
    if closed == bound:
        return
    names = [instant.strftime(template.text) for instant in (closed, template.step(bound, -1), bound)]
    target = template.skip(names[0], bound)
    assert is_past(f"{names[2]}/file", target)
    assert not is_past(f"{names[0]}/file", target)
    assert not is_past(f"{names[1]}/file", target)


def test_below_another_year_every_region_is_listed_anew() -> None:
    template = TimeTemplate("year=%Y/*/month=%m")
    bound = datetime(2026, 3, 1, tzinfo=UTC)
    assert is_past("year=2026/aa/month=03/x", template.skip("year=2025/eu/month=12", bound))
    assert not is_past("year=2026/eu/month=02/x", template.skip("year=2026/eu/month=01", bound))
    assert is_past("year=2026/eu/month=03/x", template.skip("year=2026/eu/month=01", bound))


def test_a_jump_leaves_just_the_partition_where_texts_do_not_sort_like_times() -> None:
    target = TimeTemplate("d=%d-%m-%Y").skip("d=02-01-2020", datetime(2026, 1, 1, tzinfo=UTC))
    assert is_past("d=03-01-2020/x", target)
    assert not is_past("d=02-01-2020/x", target)


def test_a_star_stands_for_any_one_component() -> None:
    template = TimeTemplate("*/date=%Y-%m-%d")
    assert template.time("eu/date=2026-01-28") == datetime(2026, 1, 28, tzinfo=UTC)
    assert template.time("eu/de/date=2026-01-28") is None
    assert template.time("date=2026-01-28") is None


def test_a_template_may_be_coarser_than_the_partitions() -> None:
    assert TimeTemplate("date=%Y-%m-%d").time("date=2026-01-28/hour=14") == datetime(2026, 1, 28, tzinfo=UTC)


@pytest.mark.parametrize(
    "partition",
    ["date=2026-02-30", "date=2026-1-28", "date=2026-01-28x", "", "x/date=2026-01-28", "date=٢٠٢٦-01-28"],
)
def test_what_the_template_does_not_write_it_does_not_read(partition: str) -> None:
    assert TimeTemplate("date=%Y-%m-%d").time(partition) is None


def test_a_repeated_time_must_agree_with_itself() -> None:
    assert TimeTemplate("year=%Y/date=%Y-%m-%d").time("year=2025/date=2026-01-28") is None


def test_a_day_of_the_year_stays_in_its_year() -> None:
    template = TimeTemplate("%Y/%j")
    assert template.time("2024/366") == datetime(2024, 12, 31, tzinfo=UTC)
    assert template.time("2025/366") is None
    assert template.time("2025/000") is None


def test_a_template_with_a_hole_writes_each_prefix_once_and_reads_no_time() -> None:
    template = TimeTemplate("hour=%H")
    assert prefixes(template, 25, datetime(2026, 1, 28, 1, 30, tzinfo=UTC)) == [
        f"hour={hour:02}" for hour in [*range(24)]
    ]
    assert not template.can_parse
    assert template.time("hour=03") is None


@pytest.mark.parametrize("text", ["date=%Y-%m-%q", "data", "date=%Y%", "x*/%Y", ""])
def test_a_template_that_no_prefix_can_be_written_from_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="time template"):
        TimeTemplate(text)


def test_a_look_back_beyond_year_1_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="lookback"):
        prefixes(TimeTemplate("%Y"), 100_000, datetime(2026, 1, 1, tzinfo=UTC))
