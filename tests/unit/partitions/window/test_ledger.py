"""The ledger: covered, missing and why, overlapping, complete up to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from partitions.instants import DAY, as_datetime, milliseconds
from partitions.ledger_bounds import LedgerBounds
from partitions.window.calendar_grid import Grid
from partitions.window.definition import WindowWatermark
from partitions.window.ledger import ABSTINENT, GROWS, LEFT_OUT, NEVER, Gap, Ledger, UnitLedger, ledger
from partitions.window.state import WindowState
from partitions.window.work_outcomes import Failure, LoadedUnit, WindowSpan

A, B = '{"u":"a"}', '{"u":"b"}'
DAILY = Grid("daily")
START = milliseconds(datetime(2020, 1, 1, tzinfo=UTC))


def day(number: float) -> int:
    return START + int(number * DAY)


def definition(**more: Any) -> WindowWatermark:
    system = {"name": "system", "type": "datetime", "range": {"from": "2020-01-01", "to": "-"}}
    return WindowWatermark.of({"definition": [system], "window": "daily", **more})


def loaded(*days: float, unit: str = A, **more: Any) -> WindowState:
    done = [LoadedUnit(day(one), day(one + 1), day(one), unit, False, DAILY) for one in days]
    return WindowState().rebased(DAILY).after(done, **more)


def of(state: WindowState, now: float = 5, units: tuple[str, ...] = (A,), **more: Any) -> Ledger:
    clock = datetime.fromtimestamp(day(now) / 1000, UTC)
    return ledger(definition(**more), state, units, clock, dataflow="flow")


def only(found: Ledger) -> UnitLedger:
    (one,) = found.units
    return one


def test_a_complete_unit_has_one_interval_and_no_gap() -> None:
    found = only(of(loaded(0, 1, 2, 3, 4)))
    assert (found.covered, found.gaps, found.complete_up_to) == ([(day(0), day(5))], [], day(5))


def test_what_was_never_loaded_is_a_gap_and_completeness_ends_before_it() -> None:
    found = only(of(loaded(0, 1, 3)))
    assert found.gaps == [Gap(day(2), day(3), NEVER), Gap(day(4), day(5), NEVER)]
    assert found.complete_up_to == day(2)


def test_bounds_cut_stretches_and_leave_completeness() -> None:
    bounds = LedgerBounds(as_datetime(day(0.5)), as_datetime(day(2.5)))
    found = of(loaded(0, 1, 3)).within(bounds)
    assert (only(found).covered, only(found).gaps) == ([(day(0.5), day(2))], [Gap(day(2), day(2.5), NEVER)])
    assert found.complete_up_to == day(2)


def test_a_unit_without_anything_is_complete_up_to_nowhere_and_so_is_the_whole() -> None:
    found = of(loaded(0, 1, 2, 3, 4), units=(A, B))
    assert [one.complete_up_to for one in found.units] == [day(5), None]
    assert found.complete_up_to is None


def test_the_whole_is_complete_up_to_the_lowest_of_its_units() -> None:
    state = loaded(0, 1, 2, 3, 4).after([LoadedUnit(day(0), day(2), day(0), B, False, Grid("none"))])
    assert of(state, units=(A, B)).complete_up_to == day(2)


def test_a_window_that_failed_says_how_often_and_why() -> None:
    state = loaded(0, 2, failed=[(A, day(1), "no answer")]).after([], [(A, day(1), "no answer")])
    assert only(of(state, now=3)).gaps == [Gap(day(1), day(2), "failed 2 times: no answer")]


def test_the_rest_of_a_window_that_goes_on_is_told_from_what_was_never_loaded() -> None:
    half = LoadedUnit(day(1), day(1.5), day(1), A, True, DAILY)
    state = loaded(0).after([half])
    assert only(of(state, now=1.75)).gaps == [Gap(day(1.5), day(1.75), GROWS)]
    assert only(of(state, now=3)).gaps == [Gap(day(1.5), day(3), NEVER)]


def test_a_window_that_goes_on_is_not_missing_although_nothing_of_it_is_loaded() -> None:
    assert only(of(loaded(0), now=1.25)).gaps == [Gap(day(1), day(1.25), GROWS)]


def test_the_rest_of_a_window_that_the_cap_left_out_waits() -> None:
    state = loaded(0).after([LoadedUnit(day(1), day(1.5), day(1), A, True, DAILY)])
    state = state.after([], [], [WindowSpan(A, day(1), day(2), "daily UTC")])
    assert only(of(state, now=2)).gaps == [Gap(day(1.5), day(2), LEFT_OUT)]


def test_what_abstinence_has_skipped_is_a_gap() -> None:
    state = (
        WindowState().rebased(Grid("none")).after([LoadedUnit(day(0), day(2), day(0), A, True, Grid("none"))])
    )
    state = state.after([LoadedUnit(day(0), day(5), day(3), A, True, Grid("none"))])
    found = only(of(state, window="none", abstinent=1))
    assert found.covered == [(day(0), day(2)), (day(3), day(5))]
    assert (found.gaps, found.complete_up_to) == ([Gap(day(2), day(3), ABSTINENT)], day(2))


def test_windows_of_two_grids_over_the_same_time_overlap() -> None:
    month = LoadedUnit(day(0), day(31), day(0), A, False, Grid("monthly"))
    state = loaded(30, 31).after([month])
    found = only(of(state, now=32))
    assert (found.overlaps, found.gaps) == ([(day(30), day(31))], [])


def test_a_unit_that_is_gone_stays_with_what_is_loaded_and_misses_nothing() -> None:
    state = loaded(0, 1).after([LoadedUnit(day(0), day(1), day(0), B, False, DAILY)])
    found = of(state, units=(A,), now=2)
    assert [(one.unit, one.is_removed, one.gaps) for one in found.units] == [(A, False, []), (B, True, ())]
    assert found.complete_up_to == day(2)


def test_with_partial_false_the_day_that_goes_on_is_not_missing() -> None:
    assert only(of(loaded(0, 1), now=2.5, partial=False)).gaps == []


def test_the_json_form_has_instants_of_the_definition_s_zone() -> None:
    found = of(loaded(0), now=2, timezone="Europe/Berlin")
    document = found.as_json()
    assert document["units"][0]["unit"] == {"u": "a"}
    assert document["units"][0]["gaps"][1:] == [
        {"start": "2020-01-02T01:00:00+01:00", "end": "2020-01-03T00:00:00+01:00", "why": NEVER},
        {"start": "2020-01-03T00:00:00+01:00", "end": "2020-01-03T01:00:00+01:00", "why": GROWS},
    ]


@given(st.sets(st.integers(0, 20)), st.sets(st.integers(0, 20)))
def test_gaps_and_coverage_are_what_a_list_of_days_says(days: set[int], failed: set[int]) -> None:
    state = loaded(*sorted(days), failed=[(A, day(one), "no") for one in failed - days])
    found = only(of(state, now=21))
    covered = {
        number for number in range(21) if any(start <= day(number) < end for start, end in found.covered)
    }
    assert covered == days
    whys = {
        number: gap.why for gap in found.gaps for number in range(21) if gap.start <= day(number) < gap.end
    }
    expected = {number: "failed once: no" if number in failed else NEVER for number in set(range(21)) - days}
    assert whys == expected
    first = min(set(range(22)) - days)
    assert found.complete_up_to == (day(first) if first else None)


def test_a_left_out_work_unit_that_was_never_tried_is_never_loaded() -> None:
    state = WindowState(DAILY, {A: [[day(0), day(1)]]}, failed={A: {day(1): Failure(0)}})
    assert only(of(state, now=2)).gaps == [Gap(day(1), day(2), NEVER)]


HOUR = DAY // 24
WEEKLY = Grid("weekly")


def _part(number: int, unit: str, grid: Grid, hours: int) -> LoadedUnit:
    end = day(number) + hours * HOUR if hours else grid.end(day(number))
    return LoadedUnit(day(number), end, day(number), unit, bool(hours), grid)


loads = st.lists(
    st.builds(
        _part, st.integers(0, 8), st.sampled_from([A, B]), st.sampled_from([DAILY, DAILY, WEEKLY]), st.sampled_from([0, 0, 5, 20])
    ),
    max_size=9,
)  # fmt: skip
failures = st.lists(
    st.tuples(st.sampled_from([A, B]), st.integers(0, 11).map(day), st.just("no")), max_size=4
)
lefts = st.lists(
    st.builds(lambda at, whole: WindowSpan(A, day(at), day(at + 2), "daily UTC", whole), st.integers(0, 9), st.booleans()), max_size=2
)  # fmt: skip
skips = st.dictionaries(
    st.sampled_from([A, B]),
    st.lists(
        st.tuples(st.integers(0, 200), st.integers(1, 30)).map(
            lambda one: [START + one[0] * HOUR, START + sum(one) * HOUR]
        ),
        max_size=3,
    ),
)


@settings(max_examples=200, deadline=None)
@given(loads, failures, lefts, skips, st.integers(0, 11 * 24), st.booleans())
def test_the_ledger_is_what_a_bitmap_of_hours_says(
    done: list[LoadedUnit], failed: Any, left: list[WindowSpan], skipped: Any, hours: int, partial: bool
) -> None:
    made = WindowState(DAILY).after(done, failed, left)
    state = WindowState(
        made.grid, made.units, made.open, made.failed, skipped, made.over_cap, made.reread_whole
    )
    windows = list(definition(partial=partial).windows(datetime.fromtimestamp(day(hours / 24) / 1000, UTC)))
    for one in of(state, hours / 24, (A, B), partial=partial).units:
        now = day(hours / 24)  # nothing above it is there yet, whatever was loaded
        runs = [range(run[0], min(run[1], now), HOUR) for run in state.units.get(one.unit, ())]
        unread = {at for lower, upper in skipped.get(one.unit, ()) for at in range(lower, upper, HOUR)}
        read = {at for run in runs for at in run} - unread
        wanted = [at for window in windows for at in range(*window, HOUR)]
        assert set(_hours(one.covered)) == read
        assert set(_hours(one.overlaps)) == {
            at for run in runs for at in run if sum(at in other for other in runs) > 1
        }
        whys = {at: gap.why for gap in one.gaps for at in range(gap.start, gap.end, HOUR)}
        assert whys == {at: _why(state, windows, one.unit, at, unread) for at in wanted if at not in read}
        missing = [at for at in wanted if at not in read]
        reached = missing[0] if missing else (windows[-1][1] if windows else START)
        assert one.complete_up_to == (reached if reached > START else None)


def _hours(found: Iterable[tuple[int, int]]) -> list[int]:
    return [at for start, end in found for at in range(start, end, HOUR)]


def _why(state: WindowState, windows: Sequence[tuple[int, int]], unit: str, at: int, unread: set[int]) -> str:
    window = next((start, end) for start, end in windows if start <= at < end)
    if failure := state.failed.get(unit, {}).get(window[0]):
        return f"failed {'once' if failure.attempts == 1 else f'{failure.attempts} times'}: no"
    if any(
        run[0] <= at < run[1] for runs in (state.over_cap, state.reread_whole) for run in runs.get(unit, ())
    ):
        return LEFT_OUT
    if at in unread:
        return ABSTINENT
    return GROWS if window[1] - window[0] < DAY else NEVER
