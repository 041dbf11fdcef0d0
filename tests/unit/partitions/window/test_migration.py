"""A changed definition forgets nothing that waits to be read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitions.intervals import union
from partitions.request import DUE, Forced, Request, WorkUnitSelection
from partitions.window.definition import WindowWatermark
from partitions.window.migration import migrate_state
from partitions.window.plan import plan
from partitions.window.state import WindowState
from partitions.window.work_unit import FailedUnit, WorkUnit

NOW = datetime(2020, 3, 20, tzinfo=UTC)
A, B = '{"id":1}', '{"id":2}'


def defined(window: Any, begin: str = "2020-01-01", **more: Any) -> WindowWatermark:
    entry = {"name": "t", "type": "datetime", "range": {"from": begin, "to": "-"}}
    return WindowWatermark.of({"definition": [entry], "window": window, "max_slices": 10_000, **more})


def run(
    definition: WindowWatermark,
    state: WindowState,
    now: datetime,
    fails: frozenset[int] = frozenset(),
    asked: Request = DUE,
) -> tuple[WindowState, list[WorkUnit]]:
    """One run; work units of some numbers fail. Returns what was read."""
    made = plan(definition, state, (A, B), now, dataflow="flow", state_number=0, request=asked)
    works = sorted(one for piece in made.slices for one in piece.works)
    bad = [FailedUnit(one, "no") for number, one in enumerate(works) if number in fails]
    for piece in made.slices:
        mine = [one for one in bad if one.work in piece.works]
        state = WindowState.of(piece.without(mine).advance(state.watermark()))
    return state, [one for number, one in enumerate(works) if number not in fails]


def read(works: list[WorkUnit], unit: str) -> list[tuple[int, int]]:
    return union(sorted((one.lower or 0, one.end or 0) for one in works if one.unit == unit))


def day(text: str) -> int:
    return int(datetime.fromisoformat(f"2020-{text}T00:00:00+00:00").timestamp()) * 1000


def test_a_day_that_failed_within_a_month_has_the_month_read_anew() -> None:
    daily, monthly = defined("daily"), defined("monthly")
    state, _ = run(daily, WindowState(), datetime(2020, 3, 1, tzinfo=UTC), frozenset({28}))
    assert list(state.failed[A]) == [day("01-15")]

    carried = migrate_state(state, monthly, NOW)
    assert (carried.failed, carried.reread_whole) == ({}, {A: [[day("01-01"), day("02-01")]]})
    after, works = run(monthly, carried, NOW)
    assert [(one.unit, one.start, one.lower, one.reason) for one in works] == [
        (A, day("01-01"), day("01-01"), "forced"),
        (A, day("03-01"), day("03-01"), "new"),
        (B, day("03-01"), day("03-01"), "new"),
    ]
    assert after.reread_whole == {}


@pytest.mark.parametrize(("window", "changed"), [("weekly", "daily"), ("daily", "weekly")])
def test_a_step_makes_a_window_that_is_cut_otherwise_be_read_from_its_start(
    window: str, changed: str
) -> None:
    """The sum of a week is no sum of its first day, and the other way round."""
    begin = datetime(2020, 1, 13, tzinfo=UTC)
    state, _ = run(defined(window, "2020-01-06"), WindowState(), begin)
    without = migrate_state(state, defined(changed, "2020-01-06"), begin)
    migrated = migrate_state(state, defined(changed, "2020-01-06"), begin, has_step=True)
    first = day("01-07") if changed == "daily" else day("01-13")
    assert (without.reread_whole, migrated.reread_whole) == (
        {},
        {unit: [[day("01-06"), first]] for unit in (A, B)},
    )
    _, works = run(defined(changed, "2020-01-06"), migrated, begin)
    assert read(works, A) == [(day("01-06"), day("01-13"))]
    same = migrate_state(state, defined(window, "2020-01-06"), begin, has_step=True)
    assert same.reread_whole == {}


def test_days_that_were_never_loaded_within_a_month_have_it_read_anew() -> None:
    daily, monthly = defined("daily"), defined("monthly")
    state, _ = run(daily, WindowState(), datetime(2020, 1, 11, tzinfo=UTC))
    asked = Forced(WorkUnitSelection(((day("03-05"), day("03-06")),)))
    state, _ = run(daily, state, NOW, asked=asked)
    carried = migrate_state(state, monthly, NOW)
    assert carried.reread_whole == {unit: [[day("01-01"), day("02-01")]] for unit in (A, B)}


def test_a_state_whose_windows_are_all_there_is_taken_over_as_it_is() -> None:
    daily = defined("daily")
    state, _ = run(daily, WindowState(), NOW, frozenset({4, 7, 30}))
    assert migrate_state(state, daily, NOW) == state
    assert migrate_state(state, defined("daily", "2020-02-01"), NOW) == state


def test_a_day_open_two_definitions_ago_is_read_to_its_end() -> None:
    daily, weekly, now = defined("daily"), defined("weekly"), datetime(2020, 1, 11, 1, tzinfo=UTC)
    state, _ = run(daily, WindowState(), now)
    state, _ = run(weekly, migrate_state(state, weekly, now), now)
    state = migrate_state(state, daily, now)
    asked = Forced(WorkUnitSelection(((day("01-01"), day("02-05")),), frozenset({A})))
    state, _ = run(daily, state, datetime(2020, 1, 12, 2, tzinfo=UTC), asked=asked)
    _, works = run(daily, state, NOW)
    (first,) = [one for one in works if one.unit == B and one.start == day("01-11")]
    assert (first.end, first.reason) == (day("01-12"), "new")


def test_a_week_that_days_follow_for_good_is_complete_with_its_own_days() -> None:
    now = datetime(2020, 1, 6, tzinfo=UTC)
    state, _ = run(defined("daily"), WindowState(), now)
    once_weekly = defined({"weekly": ["2020-01-01", "2020-01-03"], "daily": ["2020-01-03", "-"]})
    carried = migrate_state(state, once_weekly, now)
    assert (carried.open, carried.reread_whole) == ({}, {})
    assert run(once_weekly, carried, now)[1] == []


def test_what_is_complete_in_smaller_windows_is_not_read_anew() -> None:
    state, _ = run(defined("daily"), WindowState(), NOW)
    assert migrate_state(state, defined("monthly"), NOW).reread_whole == {}


definitions = st.builds(
    lambda window, begin, grace: defined(window, begin, grace=grace),
    st.sampled_from(
        [
            "daily",
            "weekly",
            "monthly",
            "none",
            {"weekly": ["P400D", "2020-02-10"], "daily": ["2020-02-10", "-"]},
        ]
    ),
    st.sampled_from(["2020-01-01", "2020-01-08", "2020-02-01", "2020-01-01T12:00:00"]),
    st.sampled_from(["P0D", "P3D"]),
)
asked = st.one_of(
    st.just(DUE),
    st.builds(
        lambda first, last, units: Forced(
            WorkUnitSelection(((first * 86_400_000 + day("01-01"), last),), units)
        ),
        st.integers(0, 80),
        st.sampled_from([day("01-09"), day("02-05"), day("03-19")]),
        st.sampled_from([None, frozenset({A})]),
    ),
)
runs = st.lists(
    st.tuples(st.integers(0, 20), st.frozensets(st.integers(0, 40), max_size=6), asked), max_size=5
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(definitions, runs), min_size=2, max_size=3))
def test_whatever_was_loaded_before_at_the_end_all_of_the_last_definition_was_read(
    chain: list[tuple[WindowWatermark, list[tuple[int, frozenset[int], Request]]]],
) -> None:
    state, works, now = WindowState(), list[WorkUnit](), datetime(2020, 1, 10, tzinfo=UTC)
    for definition, of_definition in chain:
        state = migrate_state(state, definition, now)
        for days, fails, request in of_definition:
            now = min(now + timedelta(days=days, hours=days % 3), NOW)
            state, found = run(definition, state, now, fails, request)
            works += found
    last = chain[-1][0]
    for _ in range(2):
        state, found = run(last, state, NOW)
        works += found
    windows = last.windows(NOW)
    for unit in (A, B):
        covered = read(works, unit)
        for start, end in windows:
            assert any(first <= start and end <= after for first, after in covered), (unit, start, end)
    assert not state.failed.get(A) or not set(state.failed[A]) & set(windows.index)


@pytest.mark.parametrize("change", [{"timezone": "America/New_York"}, {"window": "weekly"}])
def test_appended_windows_of_another_cut_replace_the_rows_that_old_ones_have_loaded(
    change: dict[str, str],
) -> None:
    """Their rows were there twice."""
    days = {
        "definition": [{"name": "t", "type": "datetime", "range": {"from": "2020-01-01", "to": "-"}}],
        "window": "daily",
    }
    before, now = WindowWatermark.of(days), datetime(2020, 1, 20, 12, tzinfo=UTC)
    first = plan(
        before, WindowState(), ("{}",), datetime(2020, 1, 11, 0, tzinfo=UTC), dataflow="f", state_number=0
    )
    state = WindowState()
    for slice_ in first.slices:
        state = WindowState.of(slice_.advance(state.watermark()))
    after = WindowWatermark.of({**days, **change})
    loaded = [interval[:2] for interval in state.units["{}"]]
    ((start, end),) = loaded
    for slice_ in plan(
        after,
        migrate_state(state, after, now),
        ("{}",),
        now,
        dataflow="f",
        state_number=1,
        only_adds=True,
    ).slices:
        for work in slice_.works:
            assert slice_.replaces == ((work.lower or 0) < end and start < (work.end or 0)), work
