from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from partitions.instants import DAY, HOUR, milliseconds
from partitions.window.coverage import Cause, Coverage
from partitions.window.definition import WindowWatermark
from partitions.window.grid import Grid
from partitions.window.ledger import Ledger, ledger
from partitions.window.state import Done, LeftOut, WindowState
from partitions.window.units import NO_UNIT

A, B, C = '{"id":"a"}', '{"id":"b"}', '{"id":"c"}'
START = datetime(2020, 1, 1, tzinfo=UTC)
FIRST = milliseconds(START)
DAILY, WEEKLY = Grid("daily"), Grid("weekly")
EMPTY = WindowState(DAILY)


def _definition(to: str = "-", **changes: Any) -> WindowWatermark:
    entry = {"name": "t", "type": "datetime", "range": {"from": "2020-01-01", "to": to}}
    return WindowWatermark.of({"definition": [entry], "window": "daily", **changes})


def _ledger(
    state: WindowState,
    units: tuple[str, ...] = (A,),
    days: float = 10,
    definition: WindowWatermark | None = None,
) -> Ledger:
    return ledger(definition or _definition(), state, units, START + timedelta(days=days), dataflow="flow")


def _done(day: float, unit: str = A, grid: Grid = DAILY, *, hours: float = 0, skip: float = 0) -> Done:
    start = FIRST + int(day * DAY)
    end = grid.end(start) if not hours else start + int(hours * HOUR)
    return Done(start, end, start + int(skip * HOUR), unit, bool(hours), grid)


def _days(found: Coverage) -> list[tuple[float, float, str]]:
    return [((start - FIRST) / DAY, (end - FIRST) / DAY, cause.why) for start, end, cause in found.gaps]


loads = st.lists(
    st.builds(
        _done,
        st.integers(0, 8),
        st.sampled_from([A, B]),
        st.sampled_from([DAILY, DAILY, WEEKLY]),
        hours=st.sampled_from([0, 0, 5, 20]),
    ),
    max_size=9,
)
failures = st.lists(
    st.tuples(st.sampled_from([A, B]), st.integers(0, 11).map(lambda day: FIRST + day * DAY), st.just("no")),
    max_size=4,
)
skips = st.dictionaries(
    st.sampled_from([A, B]),
    st.lists(
        st.tuples(st.integers(0, 200), st.integers(1, 30)).map(
            lambda one: [FIRST + one[0] * HOUR, FIRST + sum(one) * HOUR]
        ),
        max_size=3,
    ),
)
lefts = st.lists(
    st.builds(lambda day, whole: LeftOut(A, FIRST + day * DAY, FIRST + (day + 2) * DAY, "daily UTC", whole), st.integers(0, 9), st.booleans()),
    max_size=2,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(loads, failures, lefts, skips, st.integers(0, 11 * 24), st.booleans())
def test_the_ledger_is_what_a_bitmap_of_hours_says(
    done: list[Done], failed: list[Any], left: list[LeftOut], skipped: Any, hours: int, partial: bool
) -> None:
    made = EMPTY.after(done, failed, left)
    state = WindowState(made.grid, made.units, made.open, made.failed, skipped, made.left, made.whole)
    definition, now = _definition(partial=partial), START + timedelta(hours=hours)
    found = ledger(definition, state, (A, B), now, dataflow="flow")
    windows = [(start, end) for start, end in definition.windows(now)]
    assert (found.start, found.end) == (FIRST, FIRST + hours * HOUR)
    for one in found.units:
        runs = [range(run[0], run[1], HOUR) for run in state.units.get(one.unit, ())]
        unread = {at for a, b in skipped.get(one.unit, ()) for at in range(a, b, HOUR)}
        loaded = {at for run in runs for at in run} - unread
        assert set(_hours(one.coverage.covered)) == loaded
        assert set(_hours(one.coverage.overlaps)) == {
            at for run in runs for at in run if sum(at in other for other in runs) > 1
        }
        bare = [at for at in range(FIRST, FIRST + hours * HOUR, HOUR) if at not in loaded]
        causes = {at: cause.why for start, end, cause in one.coverage.gaps for at in range(start, end, HOUR)}
        assert causes == {at: _why(state, windows, one.unit, at, unread) for at in bare}
        reached = bare[0] if bare else FIRST + hours * HOUR
        assert one.coverage.complete_up_to == (reached if reached > FIRST else None)


def _hours(found: Any) -> list[int]:
    return [at for start, end, *_ in found for at in range(start, end, HOUR)]


def _why(state: WindowState, windows: list[tuple[int, int]], unit: str, at: int, unread: set[int]) -> str:
    window = next(((start, end) for start, end in windows if start <= at < end), None)
    if window and window[0] in state.failed.get(unit, {}):
        return "failed"
    if any(run[0] <= at < run[1] for runs in (state.left, state.whole) for run in runs.get(unit, ())):
        return "left_out"
    if at in unread:
        return "abstinence"
    if window is None:
        return "no_window"
    cut = window == windows[-1] and window[1] - window[0] < DAY
    return "open" if cut or window[0] in state.open.get(unit, ()) else "never_loaded"


def test_a_gap_says_why() -> None:
    state = EMPTY.after(
        [_done(0), _done(1), _done(4), _done(5, hours=6), _done(8)],
        [(A, FIRST + 2 * DAY, "gone"), (A, FIRST + 2 * DAY, "gone")],
    )
    state = state.after([_done(9, hours=3)]).after([_done(9, hours=9, skip=6)])
    (one,) = _ledger(state, days=9.5).units
    assert _days(one.coverage) == [
        (2, 3, "failed"), (3, 4, "never_loaded"), (5.25, 6, "open"), (6, 8, "never_loaded"), (9.125, 9.25, "abstinence"),
        (9.375, 9.5, "open"),
    ]  # fmt: skip
    assert one.coverage.gaps[0][2] == Cause("failed", 2, "gone")


def test_an_overlap_is_what_windows_cover_that_were_cut_in_different_ways() -> None:
    state = EMPTY.after([_done(day) for day in range(8)]).after([_done(7, grid=WEEKLY)])
    (one,) = _ledger(state, days=14).units
    assert one.coverage.overlaps == ((FIRST + 7 * DAY, FIRST + 8 * DAY),)
    assert (one.coverage.covered, one.coverage.gaps) == (((FIRST, FIRST + 14 * DAY),), ())


def test_a_unit_that_is_gone_is_known_and_nothing_more_is_expected_of_it() -> None:
    state = EMPTY.after([_done(day) for day in range(10)] + [_done(0, B), _done(2, B)])
    found = _ledger(state, (A, C))
    assert [(one.unit, one.gone, _days(one.coverage)) for one in found.units] == [
        (A, False, []),
        (C, False, [(0, 10, "never_loaded")]),
        (B, True, [(1, 2, "never_loaded")]),
    ]
    assert found.complete_up_to is None
    assert _ledger(state, (A,)).complete_up_to == FIRST + 10 * DAY
    assert found.counts == {"units": 2, "gone": 1, "complete": 1, "failed": 0, "gaps": 1, "overlaps": 0}


def test_a_dataflow_is_complete_as_far_as_its_lowest_unit() -> None:
    state = EMPTY.after([_done(day, unit) for unit, last in ((A, 4), (B, 2)) for day in range(last)])
    assert _ledger(state, (A, B)).complete_up_to == FIRST + 2 * DAY
    assert _ledger(state, ()).complete_up_to is None


def test_gaps_between_the_ranges_of_a_composite_have_no_window() -> None:
    window = {"daily": ["2020-01-01", "2020-01-03"], "weekly": ["2020-01-04", "-"]}
    (one,) = _ledger(EMPTY, days=5, definition=_definition(window=window)).units
    assert _days(one.coverage) == [(0, 2, "never_loaded"), (2, 3, "no_window"), (3, 5, "open")]


def test_units_that_are_alike_are_looked_at_once_and_shown_as_one() -> None:
    state = EMPTY.after([_done(day, unit) for unit in (A, B) for day in range(3)])
    found = _ledger(state, (A, B, C))
    assert [names for _, names in found.groups] == [[A, B], [C]]
    assert found.units[0].coverage is found.units[1].coverage


def test_without_time_units_are_known_and_nothing_is_covered() -> None:
    definition = WindowWatermark.of({"definition": []})
    state = WindowState().after([Done(None, None, None, NO_UNIT, False, Grid("none"))])
    found = _ledger(state, (NO_UNIT,), definition=definition)
    assert found.units[0].coverage == Coverage((), (), (), None)
    assert found.as_json()["from"] is None


def test_from_in_the_future_is_no_gap() -> None:
    (one,) = _ledger(EMPTY, days=-5).units
    assert (one.coverage.gaps, one.coverage.complete_up_to) == ((), None)


def test_the_json_form_has_instants_with_the_offset_of_the_zone() -> None:
    definition = _definition("2020-01-04", timezone="+01:00")
    start = FIRST - HOUR
    done = Done(start, start + DAY, start, A, False, Grid("daily", "+01:00"))
    state = WindowState().after([done], [(A, start + DAY, "gone")])
    found = _ledger(state, days=4, definition=definition)
    assert found.as_json() == {
        "dataflow": "flow",
        "now": "2020-01-05T00:00:00+00:00",
        "from": "2020-01-01T00:00:00+01:00",
        "to": "2020-01-04T00:00:00+01:00",
        "complete_up_to": "2020-01-02T00:00:00+01:00",
        "counts": {"units": 1, "gone": 0, "complete": 0, "failed": 1, "gaps": 2, "overlaps": 0},
        "units": [
            {
                "unit": {"id": "a"},
                "gone": False,
                "covered": [{"start": "2020-01-01T00:00:00+01:00", "end": "2020-01-02T00:00:00+01:00"}],
                "gaps": [
                    {
                        "start": "2020-01-02T00:00:00+01:00",
                        "end": "2020-01-03T00:00:00+01:00",
                        "why": "failed",
                        "attempts": 1,
                        "error": "gone",
                    },
                    {
                        "start": "2020-01-03T00:00:00+01:00",
                        "end": "2020-01-04T00:00:00+01:00",
                        "why": "never_loaded",
                    },
                ],
                "overlaps": [],
                "complete_up_to": "2020-01-02T00:00:00+01:00",
            }
        ],
    }
