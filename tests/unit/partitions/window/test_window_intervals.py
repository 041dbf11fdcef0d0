from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partitions.window.calendar_grid import Grid
from partitions.window.window_intervals import WindowInterval, WindowIntervals

DAY = 86_400_000
DAILY, WEEKLY = Grid("daily"), Grid("weekly")

days = st.integers(0, 40)


def _runs(*runs: WindowInterval) -> WindowIntervals:
    return WindowIntervals(runs, DAILY)


@given(st.permutations(range(12)))
def test_a_complete_unit_is_one_run_in_whatever_order_its_windows_were_loaded(order: list[int]) -> None:
    runs = _runs()
    for day in order:
        assert runs.raise_high(day * DAY, (day + 1) * DAY, DAILY) is None
    assert runs.items == [[0, 12 * DAY]]


@given(st.permutations(range(21)))
def test_overlapping_weeks_that_each_day_begins_are_seven_runs(order: list[int]) -> None:
    runs = WindowIntervals([], WEEKLY)
    for day in order:
        runs.raise_high(day * DAY, (day + 7) * DAY, WEEKLY)
    assert runs.items == [[day * DAY, (day + 21) * DAY] for day in range(7)]


@given(st.sets(days), st.sets(days))
def test_windows_that_are_added_and_dropped_are_a_set(added: set[int], dropped: set[int]) -> None:
    runs = _runs()
    for day in added:
        runs.add(day * DAY, (day + 1) * DAY, DAILY)
    for day in dropped:
        runs.drop(day * DAY)
    assert {day for day in range(50) if runs.high(day * DAY) is not None} == added - dropped


def test_ranges_that_touch_or_overlap_are_one() -> None:
    runs = _runs([0, 2 * DAY])
    runs.add(2 * DAY, 3 * DAY, DAILY)
    runs.add(DAY, 5 * DAY, DAILY)
    assert runs.items == [[0, 5 * DAY]]


def test_a_window_that_grows_stays_the_last_of_its_run() -> None:
    runs = _runs([0, DAY + 5])
    assert runs.raise_high(DAY, DAY + 9, DAILY) == DAY + 5
    assert runs.raise_high(DAY, DAY + 7, DAILY) == DAY + 9  # nothing falls
    assert runs.items == [[0, DAY + 9]]


def test_a_window_after_a_short_one_is_a_run_of_its_own_until_the_short_one_is_whole() -> None:
    runs = _runs([0, DAY + 5])
    runs.raise_high(2 * DAY, 3 * DAY, DAILY)
    assert runs.items == [[0, DAY + 5], [2 * DAY, 3 * DAY]]
    runs.raise_high(DAY, 2 * DAY, DAILY)
    assert runs.items == [[0, 3 * DAY]]


def test_a_window_that_begins_where_a_short_one_was_cut_is_no_part_of_its_run() -> None:
    runs = _runs([0, DAY + 5])
    runs.raise_high(DAY + 5, 2 * DAY + 5, DAILY)
    assert runs.items == [[0, DAY + 5], [DAY + 5, 2 * DAY + 5]]


def test_a_longer_window_is_known_beside_the_run_of_its_start() -> None:
    runs = _runs([0, 30 * DAY])
    assert runs.raise_high(28 * DAY, 33 * DAY, WEEKLY) == 29 * DAY
    assert runs.items == [[0, 30 * DAY], [28 * DAY, 33 * DAY, "weekly UTC"]]
    assert (runs.high(28 * DAY), runs.high(29 * DAY)) == (33 * DAY, 30 * DAY)
    assert runs.raise_high(28 * DAY, 35 * DAY, WEEKLY) == 33 * DAY


def test_runs_that_were_there_before_stay_as_they_are() -> None:
    before: list[WindowInterval] = [[0, DAY + 5], [3 * DAY, 4 * DAY]]
    runs = WindowIntervals(before, DAILY)
    runs.raise_high(DAY, 2 * DAY, DAILY)
    runs.raise_high(2 * DAY, 3 * DAY, DAILY)
    assert (runs.items, before) == ([[0, 4 * DAY]], [[0, DAY + 5], [3 * DAY, 4 * DAY]])


def test_a_dropped_window_leaves_those_around_it() -> None:
    runs = _runs([0, 3 * DAY])
    runs.drop(DAY)
    runs.drop(7 * DAY)
    runs.drop(DAY // 2)
    assert runs.items == [[0, DAY], [2 * DAY, 3 * DAY]]


@given(st.sets(days), st.sets(days))
def test_runs_cover_another_where_each_window_is_loaded(own: set[int], others: set[int]) -> None:
    runs, other = _runs(), _runs()
    for day in own:
        runs.raise_high(day * DAY, (day + 1) * DAY, DAILY)
    for day in others:
        other.raise_high(day * DAY, (day + 1) * DAY, DAILY)
    assert all(runs.covers(run, DAILY) for run in other.items) == (others <= own)


def test_a_longer_run_whose_windows_begin_elsewhere_does_not_cover() -> None:
    assert not WindowIntervals([[0, 28 * DAY]], WEEKLY).covers([DAY, 8 * DAY], WEEKLY)


def test_single_windows_cover_the_run_that_they_are_together() -> None:
    runs = _runs([0, DAY, "none"], [DAY, 2 * DAY, "none"])
    assert runs.covers([0, 2 * DAY], DAILY)
    assert not runs.covers([0, 2 * DAY + 1], DAILY)
