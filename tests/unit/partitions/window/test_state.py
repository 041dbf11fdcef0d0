from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitions.errors import CorruptWatermark, shorten_to_line
from partitions.sentinels import deserialise, serialise
from partitions.window.calendar_grid import Grid
from partitions.window.state import WindowState
from partitions.window.work_outcomes import Failure, LoadedUnit, WindowSpan
from tests.support.naive_windows import highs

DAY = 86_400_000
HOUR = DAY // 24
DAILY, WEEKLY, NONE = Grid("daily"), Grid("weekly"), Grid("none")
EMPTY = WindowState(DAILY)


def _done(
    day: int, unit: str = "a", *, end: int | None = None, lower: int | None = None, grid: Grid = DAILY
) -> LoadedUnit:
    start = day * DAY
    end = grid.end(start) if end is None else end
    return LoadedUnit(start, end, start if lower is None else lower, unit, end < grid.end(start), grid)


loads = st.lists(
    st.builds(
        lambda day, unit, grid, short: _done(day, unit, grid=grid, end=grid.end(day * DAY) - short),
        st.integers(0, 20),
        st.sampled_from("ab"),
        st.sampled_from([DAILY, WEEKLY]),
        st.sampled_from([0, 0, HOUR]),
    ),
    max_size=12,
)
changes = st.tuples(
    loads,
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 20).map(lambda day: day * DAY), st.just("no")), max_size=3),
    st.lists(st.builds(lambda day, whole: WindowSpan("a", day * DAY, (day + 2) * DAY, "daily UTC", whole), st.integers(0, 20), st.booleans()), max_size=3),
)  # fmt: skip


def _after(change: tuple[Any, Any, Any], state: WindowState = EMPTY) -> WindowState:
    return state.after(*change, at=7)


@given(changes)
def test_a_state_survives_its_text(change: tuple[Any, Any, Any]) -> None:
    state = _after(change)
    found = WindowState.of(deserialise(serialise(state.watermark())))
    assert found == (
        state
        if state.units or state.failed
        else WindowState(over_cap=found.over_cap, reread_whole=found.reread_whole)
    )


@given(changes, changes)
def test_no_high_ever_falls(first: tuple[Any, Any, Any], second: tuple[Any, Any, Any]) -> None:
    before = _after(first)
    after = _after(second, before)
    known = highs(after)
    assert all(known[key] >= high for key, high in highs(before).items())
    assert after.covers(before)


@settings(max_examples=300)
@given(loads, loads)
def test_covers_says_that_a_high_fell_if_it_did(one: list[LoadedUnit], other: list[LoadedUnit]) -> None:
    left, right = EMPTY.after(one), EMPTY.after(other).rebased(WEEKLY)
    known = highs(left)
    assert left.covers(right) == all(known.get(key, 0) >= high for key, high in highs(right).items())


@given(changes)
def test_another_grid_of_its_own_changes_nothing_that_a_state_knows(change: tuple[Any, Any, Any]) -> None:
    state = _after(change)
    moved = state.rebased(WEEKLY)
    assert highs(moved) == highs(state)
    assert moved.rebased(DAILY) == state
    assert moved.grid == WEEKLY


@given(loads)
def test_the_order_of_windows_does_not_matter_to_what_is_known(done: list[LoadedUnit]) -> None:
    assert highs(EMPTY.after(done)) == highs(EMPTY.after(reversed(done)))


def test_units_of_a_thousand_complete_days_have_one_run_each() -> None:
    units = [f'{{"id":{number}}}' for number in range(50)]
    state = EMPTY
    for first in range(0, 1000, 250):
        state = state.after([_done(day, unit) for day in range(first, first + 250) for unit in units])
    assert state.units == {unit: [[0, 1000 * DAY]] for unit in units}


@pytest.mark.parametrize(
    "watermark",
    [
        {"path": "a"},
        {"grid": "daily UTC"},
        {"grid": "dayly", "units": {}},
        {"grid": "daily Nowhere", "units": {}},
        {"grid": "daily UTC", "units": [1]},
        {"grid": "daily UTC", "units": {"a": [[1]]}},
        {"grid": "daily UTC", "units": {"a": [[2, 1]]}},
        {"grid": "daily UTC", "units": {"a": [[1, "2"]]}},
        {"grid": "daily UTC", "units": {"a": [[1, 2, 3]]}},
        {"grid": "daily UTC", "units": {"a": [[5, 6], [1, 2]]}},
        {"grid": "daily UTC", "units": {"a": [[True, 2]]}},
        {"grid": "daily UTC", "units": {}, "failed": {"a": {"x": [1]}}},
        {"grid": "daily UTC", "units": {}, "failed": {"a": {"1": 1}}},
        {"grid": "daily UTC", "units": {}, "left": {"a": [[2, 1]]}},
    ],
)
def test_another_form_is_corrupt_and_never_no_watermark(watermark: dict[str, Any]) -> None:
    with pytest.raises(CorruptWatermark, match="expected"):
        WindowState.of(watermark)


def test_a_success_stores_the_planned_end() -> None:
    state = EMPTY.after([_done(3), _done(3, "b", end=3 * DAY + HOUR)])
    assert (state.high("a", 3 * DAY), state.high("b", 3 * DAY), state.high("a", 4 * DAY)) == (
        4 * DAY,
        3 * DAY + HOUR,
        None,
    )
    assert (state.open, state.highest) == ({"b": [3 * DAY]}, 4 * DAY)


def test_a_failure_is_counted_and_moves_no_high() -> None:
    once = EMPTY.after([_done(0)], [("a", DAY, "gone " * 200)], at=7)
    twice = once.after([], [("a", DAY, "no")], at=8)
    assert once.failed == {"a": {DAY: Failure(1, shorten_to_line("gone " * 200, 500), 7)}}
    assert twice.failed == {"a": {DAY: Failure(2, "no", 8)}}
    assert twice.units == {"a": [[0, DAY]]}
    assert twice.after([_done(1)]).failed == {}


def test_what_a_success_has_closed_is_no_longer_open() -> None:
    state = EMPTY.after([_done(0, end=HOUR)])
    assert (state.open, state.after([_done(0)]).open) == ({"a": [0]}, {})


def test_what_the_cap_left_out_waits_until_it_is_loaded() -> None:
    state = EMPTY.after([_done(0), _done(1), _done(2)], [], [WindowSpan("a", 0, 3 * DAY, "daily UTC")])
    assert state.over_cap == {"a": [[0, 3 * DAY]]}
    state = state.after([_done(1, lower=DAY + HOUR)])
    assert state.over_cap == {"a": [[0, DAY], [2 * DAY, 3 * DAY]]}
    assert state.after([_done(0), _done(2)]).over_cap == {}


def test_without_time_a_unit_is_known_and_waits_since_it_was_left_out_first() -> None:
    done = LoadedUnit(None, None, None, "a", open=False, grid=NONE)
    state = EMPTY.after([done], [], [WindowSpan("b", None, None, "none")], at=7)
    state = state.after([done], [], [WindowSpan("b", None, None, "none")], at=9)
    assert (state.units, state.failed) == ({"a": []}, {"b": {None: Failure(0, None, 7)}})
    assert WindowState.of(deserialise(serialise(state.watermark()))) == state


def test_what_abstinence_leaves_unread_stays_known_until_somebody_reads_it() -> None:
    state = EMPTY.after([_done(0, end=6 * HOUR)]).after([_done(0, end=20 * HOUR, lower=12 * HOUR)])
    assert state.skipped == {"a": [[6 * HOUR, 12 * HOUR]]}
    assert state.after([_done(0, lower=8 * HOUR)]).skipped == {"a": [[6 * HOUR, 8 * HOUR]]}
    assert state.after([_done(0)]).skipped == {}


def test_runs_stay_ascending() -> None:
    state = EMPTY.after([_done(day, grid=grid) for day in (9, 3, 7, 0) for grid in (DAILY, WEEKLY)])
    assert all(one[0] <= other[0] for one, other in pairwise(state.units["a"]))
