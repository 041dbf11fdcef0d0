from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from partitions.instants import as_datetime, zone_of
from partitions.sentinels import Watermark
from partitions.window.extent import Extent
from partitions.window.reasons import Reason
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState
from partitions.window.work_outcomes import Failure, WindowSpan
from partitions.window.work_unit import FailedUnit, WorkUnit, extents

DAY = 86_400_000
HALF = DAY // 2
LA = zone_of("America/Los_Angeles")
UTC = zone_of("UTC")


def _work(day: int, unit: str = "a", *, lower: int | None = None, reason: Reason = "new") -> WorkUnit:
    start = day * DAY
    return WorkUnit(
        start, start + DAY, f'{{"id":"{unit}"}}', start if lower is None else lower, reason, grid="daily UTC"
    )


def _state(*works: WorkUnit) -> WindowState:
    return WindowState.of(WindowSlice(works, UTC, grid="daily UTC").advance({}))


@given(st.sets(st.tuples(st.integers(0, 6), st.sampled_from("abc"), st.booleans())))
def test_extents_hold_exactly_what_the_work_units_read(chosen: set[tuple[int, str, bool]]) -> None:
    latest = {(day, unit): part for day, unit, part in chosen}
    works = [_work(day, unit, lower=day * DAY + part * HALF) for (day, unit), part in sorted(latest.items())]
    found = [(at, unit["id"]) for one in extents(works) for at, unit in product(_halves(one), one.units)]
    wanted = [(at, unit) for (day, unit), part in latest.items() for at in range(day * 2 + part, day * 2 + 2)]
    assert sorted(found) == sorted(wanted)


def _halves(one: Extent) -> range:
    return range((one.lower or 0) // HALF, (one.upper or 0) // HALF)


def test_neighbouring_windows_of_the_same_units_are_one_extent() -> None:
    rows = [_work(day, unit) for day in (0, 1, 3) for unit in "ab"]
    units = ({"id": "a"}, {"id": "b"})
    assert extents(rows) == (Extent(0, 2 * DAY, units), Extent(3 * DAY, 4 * DAY, units))


def test_windows_of_other_units_and_parts_of_windows_stand_apart() -> None:
    assert extents([_work(0, "a"), _work(0, "b", lower=5), _work(1, "a")]) == (
        Extent(0, DAY, ({"id": "a"},)),
        Extent(5, DAY, ({"id": "b"},)),
        Extent(DAY, 2 * DAY, ({"id": "a"},)),
    )


def test_without_time_all_units_are_one_extent() -> None:
    works = [WorkUnit(None, None, f'{{"id":{number}}}', None, "new") for number in (1, 2)]
    assert extents(works) == (Extent(None, None, ({"id": 1}, {"id": 2})),)
    piece = WindowSlice(tuple(works), UTC)
    assert (piece.lower, piece.upper, piece.since) == (None, {}, None)


def test_bounds_are_the_earliest_and_the_latest_instant_that_is_read_in_the_zone() -> None:
    piece = WindowSlice((_work(0, lower=5), _work(1)), LA, "daily UTC", "system")
    assert piece.lower == {"system": as_datetime(5, LA)}
    assert piece.upper == {"system": as_datetime(2 * DAY, LA)}


def test_a_work_unit_is_described_with_its_window_its_unit_what_is_read_and_why() -> None:
    assert WindowSlice((_work(0, lower=DAY // 2, reason="grace"),), UTC).describe() == [
        {
            "window": {"start": "1970-01-01T00:00:00+00:00", "end": "1970-01-02T00:00:00+00:00"},
            "unit": {"id": "a"},
            "read": {"start": "1970-01-01T12:00:00+00:00", "end": "1970-01-02T00:00:00+00:00"},
            "reason": "grace",
        }
    ]
    assert WorkUnit(None, None, "{}", None, "new").describe(UTC) == {
        "window": {"start": None, "end": None},
        "unit": {},
        "read": {"start": None, "end": None},
        "reason": "new",
    }


def test_a_label_leaves_out_what_there_is_none_of() -> None:
    assert _work(0).label(UTC) == "[1970-01-01T00:00:00+00:00, 1970-01-02T00:00:00+00:00) id a"
    assert _work(0)._replace(unit="{}").label(UTC) == "[1970-01-01T00:00:00+00:00, 1970-01-02T00:00:00+00:00)"
    assert WorkUnit(None, None, "{}", None, "new").label(UTC) == "everything"


def test_the_state_after_a_slice_holds_its_highs_on_the_grid_of_the_definition() -> None:
    assert WindowSlice((_work(0), _work(1)), UTC, grid="daily UTC").advance({}) == {
        "grid": "daily UTC",
        "units": {'{"id":"a"}': [[0, 2 * DAY]]},
    }


def test_a_unit_that_could_not_be_read_is_recorded_as_failed_in_the_same_entry() -> None:
    piece = WindowSlice((_work(0), _work(0, "b")), UTC, at=7, grid="daily UTC")
    found = piece.without([FailedUnit(_work(0, "b"), "no such table")])
    assert found.works == (_work(0),)
    state = WindowState.of(found.advance({}))
    assert state.failed == {'{"id":"b"}': {0: Failure(1, "no such table", 7)}}
    assert (state.units, state.reread_whole) == ({'{"id":"a"}': [[0, DAY]]}, {})


def test_what_was_asked_for_and_failed_is_asked_for_still() -> None:
    asked = _work(0, reason="forced")
    piece = WindowSlice((asked,), UTC, grid="daily UTC").without([FailedUnit(asked, "no")])
    state = WindowState.of(piece.advance(_state(_work(0)).watermark()))
    assert (state.units, state.reread_whole) == ({'{"id":"a"}': [[0, DAY]]}, {'{"id":"a"}': [[0, DAY]]})


def test_only_what_somebody_has_asked_for_replaces() -> None:
    assert not WindowSlice((_work(0, reason="grace"),), UTC).replaces
    assert WindowSlice((_work(0), _work(1, reason="forced")), UTC).replaces


@given(st.integers(1, 9))
def test_halves_do_the_same_in_two_commits(count: int) -> None:
    left = (WindowSpan('{"id":"z"}', 0, DAY, "daily UTC"),)
    piece = WindowSlice(
        tuple(_work(day) for day in range(count)),
        UTC,
        failed=(FailedUnit(_work(0, "f"), "no"),),
        deferred=left,
        grid="daily UTC",
    )
    halves = piece.halve()
    assert len(halves) == min(count, 2)
    state: Watermark = {}
    for half in halves:
        state = half.advance(state)
    assert state == piece.advance({})
