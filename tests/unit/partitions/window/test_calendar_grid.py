from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitions.instants import DAY, HOUR, MINUTE, Instant, as_datetime, milliseconds, zone_of
from partitions.window.calendar_grid import GRAINS, Grain, Grid, steps
from partitions.window.windows import Stretch, Windows

ZONES = sorted(available_timezones() - {"localtime"})  # which names no zone, and is there on some machines
LONG = {
    "none": DAY,
    "hourly": HOUR,
    "daily": DAY,
    "weekly": 7 * DAY,
    "monthly": 30 * DAY,
    "yearly": 365 * DAY,
}

grids = st.builds(Grid, st.sampled_from(GRAINS), st.sampled_from(ZONES))
instants = st.integers(-60 * 365 * DAY, 90 * 365 * DAY)  # 1910 to 2060


def _ms(text: str) -> int:
    return milliseconds(datetime.fromisoformat(text))


def _cut(grid: Grid, start: int, end: int, *, partial: bool = True, fixed: bool = False) -> Windows:
    return Windows.of([Stretch(grid, start, end, fixed)], partial=partial)


@st.composite
def stretches(draw: st.DrawFn) -> Stretch:
    grid, start = draw(grids), draw(instants)
    many = draw(st.integers(0, 40))
    return Stretch(grid, start, start + many * LONG[grid.grain] + draw(st.integers(0, LONG[grid.grain])))


@settings(max_examples=400, deadline=None)
@given(stretches())
def test_windows_are_contiguous_and_half_open_and_cover_exactly_what_is_asked_for(stretch: Stretch) -> None:
    found = list(Windows.of([stretch]))
    assert all(start < end for start, end in found)
    assert all(one.end == other.start for one, other in pairwise(found))
    if stretch.start < stretch.end:
        assert (found[0].start, found[-1].end) == (stretch.start, stretch.end)
    else:
        assert found == []


@settings(max_examples=400, deadline=None)
@given(stretches(), st.integers(0, 50 * DAY))
def test_a_later_end_cuts_the_same_windows_the_last_one_aside(stretch: Stretch, later: int) -> None:
    fewer = list(Windows.of([stretch]))
    more = list(_cut(stretch.grid, stretch.start, stretch.end + later))
    assert fewer[:-1] == more[: len(fewer) - 1 if fewer else 0]
    assert not fewer or fewer[-1].start == more[len(fewer) - 1].start


@settings(max_examples=400, deadline=None)
@given(stretches())
def test_without_partial_windows_only_the_short_last_one_is_dropped(stretch: Stretch) -> None:
    every, whole = Windows.of([stretch]), Windows.of([stretch], partial=False)
    short = bool(every.cut) and stretch.grid.grain != "none"
    assert list(whole) == list(every)[: len(every) - short]
    assert not whole.open or stretch.grid.grain == "none"


@settings(max_examples=400, deadline=None)
@given(grids, instants, st.integers(0, 2000 * HOUR))
def test_steps_know_the_windows_of_a_grid(grid: Grid, start: int, ahead: int) -> None:
    at, windows = start + ahead, steps(grid, start)
    reached = start
    while grid.end(reached) <= at:
        reached = grid.end(reached)
    assert windows.next(at) == grid.end(reached)
    assert windows.is_start(at) == (reached == at)


@given(stretches(), instants, st.integers(0, 40 * DAY))
def test_touching_gives_the_windows_that_intersect_a_range(stretch: Stretch, start: int, width: int) -> None:
    windows = Windows.of([stretch])
    first = stretch.start + (start - stretch.start) % (60 * DAY) - 10 * DAY
    wanted = [
        index for index, (begin, end) in enumerate(windows) if width and begin < first + width and first < end
    ]
    assert list(windows.touching(first, first + width)) == wanted


@pytest.mark.parametrize(
    ("grain", "second", "third"),
    [
        ("hourly", "2020-01-31T01:30:00+00:00", "2020-01-31T02:30:00+00:00"),
        ("daily", "2020-02-01T00:30:00+00:00", "2020-02-02T00:30:00+00:00"),
        ("weekly", "2020-02-07T00:30:00+00:00", "2020-02-14T00:30:00+00:00"),
        ("monthly", "2020-02-29T00:30:00+00:00", "2020-03-29T00:30:00+00:00"),
        ("yearly", "2021-01-31T00:30:00+00:00", "2022-01-31T00:30:00+00:00"),
    ],
)
def test_windows_step_from_from_and_from_each_end(grain: Grain, second: str, third: str) -> None:
    start = _ms("2020-01-31T00:30:00+00:00")
    grid = Grid(grain)
    assert (grid.end(start), grid.end(grid.end(start))) == (_ms(second), _ms(third))


def test_one_window_without_a_grain() -> None:
    assert list(_cut(Grid("none"), 5, 50)) == [(5, 50)]


def test_a_day_that_a_zone_left_out_is_no_window() -> None:
    start, end = _ms("2011-12-29T00:00:00-10:00"), _ms("2012-01-02T00:00:00+14:00")
    found = [
        (window.end - window.start) // HOUR for window in _cut(Grid("daily", "Pacific/Apia"), start, end)
    ]
    assert found == [24, 24, 24]  # the 29th, the 31st, the 1st


MIDNIGHT_IS_SKIPPED = (
    ("America/Sao_Paulo", "2018-11-04"),
    ("Africa/Cairo", "2026-04-24"),
    ("Asia/Beirut", "2026-03-29"),
    ("America/Havana", "2026-03-08"),
    ("America/Santiago", "2026-09-06"),
    ("Atlantic/Azores", "2026-03-29"),
)


def _local(grid: Grid, start: int, count: int) -> list[str]:
    found = [start]
    for _ in range(count):
        found.append(grid.end(found[-1]))
    return [f"{as_datetime(at, zone_of(grid.zone)):%Y-%m-%d %H:%M}" for at in found]


@pytest.mark.parametrize(("zone", "day"), MIDNIGHT_IS_SKIPPED)
def test_a_day_without_midnight_begins_at_its_first_moment(zone: str, day: str) -> None:
    midnight = datetime.fromisoformat(day)
    before = Instant.parse(f"{midnight - timedelta(days=7):%F}", zone_of(zone)).at(None)
    days, weeks = _local(Grid("daily", zone), before, 9), _local(Grid("weekly", zone), before, 2)
    after = [f"{midnight + timedelta(days=number):%F} 00:00" for number in range(1, 3)]
    assert days[-3:] == [f"{day} 01:00", *after]
    assert weeks[1:] == [f"{day} 01:00", f"{midnight + timedelta(days=7):%F} 00:00"]


def test_a_month_without_its_first_midnight_does_not_move_those_after_it() -> None:
    start = Instant.parse("2017-09-01", zone_of("America/Asuncion")).at(None)
    assert _local(Grid("monthly", "America/Asuncion"), start, 2) == [
        "2017-09-01 00:00",
        "2017-10-01 01:00",
        "2017-11-01 00:00",
    ]


@pytest.mark.parametrize(
    ("zone", "start", "at", "wanted"),
    [
        ("America/New_York", "2026-03-07T02:30:00", "02:30:00", ["03-08 03:30", "03-09 02:30", "03-10 02:30"]),
        ("America/New_York", "2026-03-07T03:00:00", "03:00:00", ["03-08 03:00", "03-09 03:00", "03-10 03:00"]),
        ("America/New_York", "2026-03-07T10:00:00", None, ["03-08 10:00", "03-09 10:00", "03-10 10:00"]),
        ("America/Sao_Paulo", "2018-11-03T01:00:00", "01:00:00", ["11-04 01:00", "11-05 01:00", "11-06 01:00"]),
        ("America/Sao_Paulo", "2018-11-04", None, ["11-05 00:00", "11-06 00:00", "11-07 00:00"]),
        # Half an hour around a midnight, so that the start of a day's window lies in the next day.
        ("America/Toronto", "1919-03-29T23:45:00", "23:45:00", ["03-31 00:45", "03-31 23:45", "04-01 23:45"]),
    ],
)  # fmt: skip
def test_windows_start_at_the_first_time(zone: str, start: str, at: str | None, wanted: list[str]) -> None:
    first = Instant.parse(start, zone_of(zone)).at(None)
    grid = Grid.starting_at("daily", zone, first)
    assert (grid.at and grid.at.isoformat(), Grid.parse(grid.text)) == (at, grid)
    assert [text[5:] for text in _local(grid, first, 3)[1:]] == wanted


def test_a_window_that_its_end_cuts_short_grows_unless_the_end_is_fixed() -> None:
    moving, fixed = _cut(Grid("daily"), 0, DAY + HOUR), _cut(Grid("daily"), 0, DAY + HOUR, fixed=True)
    assert (moving.cut, moving.open) == ({1: 2 * DAY}, frozenset({1}))
    assert (fixed.cut, fixed.open) == ({1: 2 * DAY}, frozenset())


def test_a_window_that_ends_with_its_stretch_is_whole() -> None:
    assert _cut(Grid("daily"), 0, 2 * DAY).cut == {}


def test_several_stretches_know_their_windows() -> None:
    windows = Windows.of(
        [Stretch(Grid("weekly"), 0, 8 * DAY, fixed_end=True), Stretch(Grid("daily"), 8 * DAY, 10 * DAY)]
    )
    assert list(windows) == [(0, 7 * DAY), (7 * DAY, 8 * DAY), (8 * DAY, 9 * DAY), (9 * DAY, 10 * DAY)]
    assert (windows.bounds, [windows.stretch(index) for index in range(4)]) == (
        ((0, 2), (2, 4)),
        [0, 0, 1, 1],
    )


@pytest.mark.parametrize(
    ("grain", "size"), [("hourly", HOUR), ("daily", DAY), ("weekly", 7 * DAY), ("monthly", None)]
)
def test_windows_of_one_length_are_known_without_stepping(grain: Grain, size: int | None) -> None:
    assert Grid(grain, "UTC").size == size
    assert Grid(grain, "+05:30").size == size
    assert Grid(grain, "Europe/Berlin").size == (HOUR if grain == "hourly" else None)


@given(grids)
def test_the_text_of_a_grid_reads_back(grid: Grid) -> None:
    found = Grid.parse(grid.text)
    assert found == (Grid(grid.grain) if grid.grain in ("none", "hourly") else grid)


@pytest.mark.parametrize("text", ["", "dayly", "daily Nowhere/City", "Daily UTC"])
def test_another_text_is_no_grid(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        Grid.parse(text)


def test_the_calendar_ends_with_the_year_9999() -> None:
    start = _ms("9999-12-31T00:00:00+00:00")
    assert list(_cut(Grid("monthly"), start, start + MINUTE)) == [(start, start + MINUTE)]
