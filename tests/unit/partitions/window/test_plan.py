from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.plan import Plan
from partitions.request import DUE, Due, Forced, LateOnly, Request, WorkUnitSelection
from partitions.window import packing
from partitions.window.definition import WindowWatermark
from partitions.window.plan import plan
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState
from partitions.window.units import NO_UNIT, unit_of
from partitions.window.work_unit import FailedUnit, WorkUnit

NO_FAILURES: frozenset[str] = frozenset()


def _definition(start: str = "2020-01-01", to: str = "P0D", **changes: Any) -> WindowWatermark:
    system = {"name": "system", "type": "datetime", "range": {"from": start, "to": to}}
    return WindowWatermark.of({"definition": [system], "window": "daily", **changes})


def _plan(
    definition: WindowWatermark,
    state: WindowState,
    now: str,
    units: Sequence[str] = (NO_UNIT,),
    asked: Request = DUE,
) -> Plan[WindowSlice]:
    clock = datetime.fromisoformat(now).replace(tzinfo=UTC)
    ids = tuple(map(_id, units))
    return plan(definition, state, ids, clock, dataflow="flow", state_number=0, request=asked)


def _id(name: str) -> str:
    return name if name.startswith("{") else f'{{"id":"{name}"}}'


def _name(unit: str) -> str:
    return unit if unit == NO_UNIT else str(unit_of(unit)["id"])


def _works(made: Plan[WindowSlice]) -> list[WorkUnit]:
    return [one for piece in made.slices for one in piece.works]


def _after(made: Plan[WindowSlice], state: WindowState, failing: frozenset[str] = NO_FAILURES) -> WindowState:
    """The state after all slices; units of these names cannot be read."""
    for piece in made.slices:
        bad = [FailedUnit(one, "no") for one in piece.works if _name(one.unit) in failing]
        state = WindowState.of(piece.without(bad).advance(state.watermark()))
    return state


def _days(works: Sequence[WorkUnit]) -> list[str]:
    return [_text(one.start)[:10] for one in works]


def _text(instant: int | None) -> str:
    return datetime.fromtimestamp((instant or 0) / 1000, UTC).isoformat()


def _reads(works: Sequence[WorkUnit]) -> list[tuple[str, str, str, str]]:
    return [
        (_text(one.start)[5:16], _text(one.end)[5:16], _text(one.lower)[5:16], one.reason) for one in works
    ]


def test_nothing_is_due_twice_without_grace() -> None:
    definition = _definition("2020-02-01", "-")
    state = _after(_plan(definition, WindowState(), "2020-02-05T06:00:00"), WindowState())
    made = _plan(definition, state, "2020-02-05T06:00:30")
    assert (made.due, made.why) == (False, "no work unit is due")


def test_an_empty_secondary_input_plans_nothing() -> None:
    made = _plan(_definition(), WindowState(), "2020-02-01", units=())
    assert (made.slices, made.why) == ((), "the secondary input lists no unit, so nothing is planned")


def test_windows_to_come_are_skips_and_the_one_that_holds_now_is_open() -> None:
    made = _plan(_definition("2020-02-01", "2020-02-10"), WindowState(), "2020-02-02T06:00:30")
    assert _reads(_works(made))[-1][:2] == ("02-02T00:00", "02-02T06:00")
    assert _works(made)[-1].open
    assert [(skip.subject, skip.why) for skip in made.skips] == [
        (
            "[2020-02-02T06:00:00+00:00, 2020-02-10T00:00:00+00:00)",
            "future: later runs plan these windows",
        )
    ]


def test_before_the_first_whole_window_has_ended_there_is_none() -> None:
    made = _plan(_definition("2020-02-01", "2020-02-10", partial=False), WindowState(), "2020-02-01T06:00")
    assert (made.slices, made.why) == ((), "there is no window yet: the first one has not ended")


def test_from_at_or_after_to_is_no_window_and_no_error() -> None:
    made = _plan(_definition("2030-01-01"), WindowState(), "2020-02-01")
    assert (made.slices, made.why) == ((), "there is no window yet: `from` lies at or after `to`")


def test_a_unit_that_is_gone_and_what_is_loaded_are_skips() -> None:
    definition = _definition("2020-02-01")
    state = _after(_plan(definition, WindowState(), "2020-02-03", units=("a", "b")), WindowState())
    made = _plan(definition, state, "2020-02-04", units=("a",))
    assert [(skip.subject, skip.why) for skip in made.skips] == [
        ("id b", "no longer a unit; the state keeps its loaded windows"),
        ("[2020-02-01T00:00:00+00:00, 2020-02-03T00:00:00+00:00) of id a", "2 windows loaded"),
    ]


def test_a_failed_work_unit_is_tried_again_in_a_slice_of_its_own() -> None:
    definition = _definition("2020-02-01")
    state = _after(
        _plan(definition, WindowState(), "2020-02-02", units=("a", "b", "c")), WindowState(), frozenset("b")
    )
    made = _plan(definition, state, "2020-02-03", units=("a", "b", "c"))
    assert [[(_name(one.unit), one.reason) for one in piece.works] for piece in made.slices] == [
        [("a", "new"), ("b", "new"), ("c", "new")],
        [("b", "failed")],
    ]
    assert made.why == "4 work units of 2 windows x 3 units due: 3 new, 1 failed"


def test_a_cap_takes_what_was_never_loaded_first_and_keeps_what_it_leaves_out() -> None:
    definition = _definition("2020-02-01", grace=2, parallelism=2)
    state = _after(_plan(definition, WindowState(), "2020-02-03"), WindowState())
    assert state.units == {NO_UNIT: [[1580515200000, 1580688000000]]}
    made = _plan(definition, state, "2020-02-04")
    assert [(_days([one])[0], one.reason) for one in _works(made)] == [
        ("2020-02-01", "grace"),
        ("2020-02-03", "new"),
    ]
    assert (
        made.why
        == "3 work units of 3 windows x 1 unit due: 2 grace, 1 new; 1 left for later runs (parallelism 2)"
    )
    state = _after(made, state)
    assert state.over_cap == {NO_UNIT: [[1580601600000, 1580688000000]]}
    later = _plan(
        _definition("2020-02-01", parallelism=2), state, "2020-02-04"
    )  # by the cutoffs nothing is due
    assert _reads(_works(later)) == [("02-02T00:00", "02-03T00:00", "02-03T00:00", "grace")]


@pytest.mark.parametrize(
    "limits", [{"max_slices": 4, "checkpoint": {"interval_windows": 10}}, {"parallelism": 40}]
)
def test_grace_does_not_keep_new_windows_waiting(limits: dict[str, Any]) -> None:
    """With the order of windows alone, 7 days of grace times 10 units would fill each plan of 40 for ever."""
    units = [f"u{number}" for number in range(10)]
    definition, state = _definition("2020-01-01", grace=7, **limits), WindowState()
    for day in range(1, 9):
        state = _after(_plan(definition, state, f"2020-01-0{day}T12:00:00", units=units), state)
    assert {unit: runs[0][1] for unit, runs in state.units.items()} == dict.fromkeys(
        map(_id, units), 1578441600000
    )


@pytest.mark.parametrize(
    "limits", [{"max_slices": 6, "checkpoint": {"interval_windows": 10}}, {"parallelism": 60}]
)
def test_nothing_that_a_cap_leaves_out_is_forgotten(limits: dict[str, Any]) -> None:
    units = [f"u{number}" for number in range(10)]
    definition, state = _definition("2020-01-01", grace=2, **limits), WindowState()
    for day in range(2, 6):
        state = _after(_plan(definition, state, f"2020-01-0{day}", units=units), state)
    for _ in range(9):
        state = _after(_plan(definition, state, "2020-01-06", units=units), state)
    assert sum(1 for runs in state.over_cap.values() for _ in runs) == 0


def test_what_fails_again_and_again_leaves_room_for_others_and_gets_some() -> None:
    units = [f"u{number}" for number in range(40)]
    definition, state = (
        _definition("2020-01-01", max_slices=10, checkpoint={"interval_windows": 2}),
        WindowState(),
    )
    for _ in range(4):
        state = _after(_plan(definition, state, "2020-01-02", units=units), state, frozenset(units[:20]))
    made = _plan(definition, state, "2020-01-03", units=units)
    reasons = [[one.reason for one in piece.works] for piece in made.slices]
    assert reasons == [["new", "new"]] * 9 + [["failed"]]


@given(st.integers(1, 9), st.integers(1, 7), st.integers(1, 7), st.sampled_from([None, 1, 5, 30]), st.data())
def test_a_plan_holds_no_more_slices_and_no_larger_ones_than_allowed(
    units: int, slices: int, limit: int, most: int | None, data: st.DataObject
) -> None:
    names = [f"u{number}" for number in range(units)]
    definition = _definition(
        "2020-01-01", grace=2, max_slices=slices, checkpoint={"interval_windows": limit}, parallelism=most
    )
    state = WindowState()
    for day in range(2, 6):
        made = _plan(definition, state, f"2020-01-0{day}", units=names)
        works = _works(made)
        assert 0 < len(made.slices) <= slices
        assert all(len(piece.works) <= limit for piece in made.slices)
        assert len(works) <= min(most or 99, slices * limit)
        assert len({one.key for one in works}) == len(works)
        state = _after(made, state, data.draw(st.frozensets(st.sampled_from(names))))


def test_whole_windows_share_a_slice_where_they_fit() -> None:
    definition = _definition("2020-01-01", checkpoint={"interval_windows": 5})
    made = _plan(definition, WindowState(), "2020-01-04", units=("a", "b"))
    assert [_days(piece.works) for piece in made.slices] == [
        ["2020-01-01"] * 2 + ["2020-01-02"] * 2,
        ["2020-01-03"] * 2,
    ]


def test_with_pacing_each_work_unit_is_a_slice() -> None:
    made = _plan(_definition("2020-01-01", pacing="PT1S"), WindowState(), "2020-01-04")
    assert [len(piece.works) for piece in made.slices] == [1, 1, 1]


def test_a_source_that_can_only_be_read_by_whole_windows_is() -> None:
    definition = _definition("2020-02-01", "-")
    state = _after(_plan(definition, WindowState(), "2020-02-01T06:00:00"), WindowState())
    now = datetime(2020, 2, 1, 9, tzinfo=UTC)
    made = plan(
        definition, state, (NO_UNIT,), now, dataflow="flow", state_number=3, rereads_whole_windows=True
    )
    assert _reads(_works(made)) == [("02-01T00:00", "02-01T09:00", "02-01T00:00", "new")]
    assert (made.state_number, made.kind, made.dataflow) == (3, "window", "flow")


def _ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def test_what_is_asked_for_is_read_whole_and_no_high_falls() -> None:
    definition = _definition("2020-02-01")
    state = _after(_plan(definition, WindowState(), "2020-02-06", units=("a", "b")), WindowState())
    asked = Forced(
        WorkUnitSelection(((_ms("2020-02-02T12:00:00"), _ms("2020-02-04")),), frozenset([_id("a")]))
    )
    made = _plan(definition, state, "2020-02-06", units=("a", "b"), asked=asked)
    assert _reads(_works(made)) == [
        ("02-02T00:00", "02-03T00:00", "02-02T00:00", "forced"),
        ("02-03T00:00", "02-04T00:00", "02-03T00:00", "forced"),
    ]
    assert made.slices[0].replaces
    assert _after(made, state).units == state.units


def test_what_was_asked_for_and_failed_is_read_whole_the_next_time() -> None:
    definition = _definition("2020-02-01")
    state = _after(_plan(definition, WindowState(), "2020-02-04"), WindowState())
    asked = Forced(WorkUnitSelection(((_ms("2020-02-02"), _ms("2020-02-03")),)))
    state = _after(_plan(definition, state, "2020-02-04", asked=asked), state, frozenset([NO_UNIT]))
    made = _plan(definition, state, "2020-02-04")
    assert _reads(_works(made)) == [("02-02T00:00", "02-03T00:00", "02-02T00:00", "forced")]
    assert not _plan(definition, _after(made, state), "2020-02-04").due


def test_what_was_asked_for_beyond_the_cap_is_read_whole_by_later_runs() -> None:
    definition = _definition("2020-02-01", parallelism=2)
    state = WindowState()
    for _ in range(3):
        state = _after(_plan(definition, state, "2020-02-06"), state)
    made = _plan(definition, state, "2020-02-06", asked=Forced())
    seen = _days(_works(made))
    for _ in range(2):
        state = _after(made, state)
        made = _plan(definition, state, "2020-02-06")
        seen += _days(_works(made))
        assert all(one.reason == "forced" and one.lower == one.start for one in _works(made))
    assert seen == ["2020-02-01", "2020-02-02", "2020-02-03", "2020-02-04", "2020-02-05"]
    assert not _plan(definition, _after(made, state), "2020-02-06").due


def test_a_part_that_is_not_forced_takes_only_what_is_due() -> None:
    definition = _definition("2020-02-01")
    state = _after(_plan(definition, WindowState(), "2020-02-03"), WindowState())
    asked = Due(WorkUnitSelection(((_ms("2020-02-02"), _ms("2020-02-04")),)))
    made = _plan(definition, state, "2020-02-06", asked=asked)
    assert _days(_works(made)) == ["2020-02-03"]
    assert not _plan(definition, state, "2020-02-06", asked=Due(WorkUnitSelection(((5, 5),)))).due


def test_what_abstinence_leaves_unread_is_warned_of() -> None:
    definition = _definition("2020-02-01", "-", abstinent="PT2H", abstinent_skips=True)
    state = _after(_plan(definition, WindowState(), "2020-02-01T06:00:00"), WindowState())
    made = _plan(definition, state, "2020-02-01T09:00:00")
    assert _reads(_works(made)) == [("02-01T00:00", "02-01T09:00", "02-01T08:00", "new")]
    assert list(_plan(definition, _after(made, state), "2020-02-01T09:00:00").warnings) == [
        "abstinence left a gap that no run has read: [2020-02-01T06:00:00+00:00, 2020-02-01T08:00:00+00:00)"
    ]


def test_gaps_and_overlaps_between_the_ranges_of_a_composite_are_warned_of() -> None:
    window = {
        "monthly": ["2020-01-01", "2020-03-15"],
        "weekly": ["2020-03-10", "2020-04-01"],
        "daily": ["2020-04-03", "-"],
    }
    made = _plan(_definition("2020-01-01", "-", window=window), WindowState(), "2020-04-05")
    assert list(made.warnings) == [
        "the sub-ranges of window leave a gap: [2020-04-01T00:00:00+00:00, 2020-04-03T00:00:00+00:00)",
        "the sub-ranges of window overlap, and the earlier one counts: [2020-03-10T00:00:00+00:00, 2020-03-15T00:00:00+00:00)",
    ]
    assert [(read[0][:5], read[1][:5]) for read in _reads(_works(made))] == [
        ("01-01", "02-01"), ("02-01", "03-01"), ("03-01", "03-15"), ("03-15", "03-22"), ("03-22", "03-29"), ("03-29", "04-01"),
        ("04-03", "04-04"), ("04-04", "04-05"),
    ]  # fmt: skip


def test_without_time_and_units_there_is_one_read() -> None:
    made = _plan(WindowWatermark.of({"definition": []}), WindowState(), "2020-02-01")
    assert _works(made) == [WorkUnit(None, None, NO_UNIT, None, "new")]
    assert made.why == "1 work unit due: 1 new"


def test_no_more_work_units_are_made_than_a_plan_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    original = packing.SlicePacker._work_unit

    def counting(self: Any, *arguments: Any) -> WorkUnit:
        made.append(1)
        return original(self, *arguments)

    monkeypatch.setattr(packing.SlicePacker, "_work_unit", counting)
    units = [f"u{number}" for number in range(10_000)]
    end = (datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=1000)).isoformat()[:19]
    found = _plan(_definition("2020-01-01", grace=3), WindowState(), end, units=units)
    assert len(made) == len(_works(found)) == 100 * 100
    assert found.why.startswith(
        "10,000,000 work units of 1,000 windows x 10,000 units due: 10,000,000 new; 9,990,000 left"
    )
    state = WindowState().rebased(_definition().default_grid)
    state = WindowState(state.grid, {_id(unit): [[_ms("2020-01-01"), _ms("2022-09-27")]] for unit in units})
    made.clear()
    found = _plan(_definition("2020-01-01", grace=30), state, end, units=units)
    assert len(made) == len(_works(found)) == 100 * 100
    assert sum(1 for one in _works(found) if one.reason == "new") == 0


def test_the_rest_of_many_skips_is_told_in_one() -> None:
    units = [f"u{number}" for number in range(300)]
    definition = _definition("2020-02-01")
    state = WindowState(
        definition.default_grid, {_id(unit): [[_ms("2020-02-01"), _ms("2020-02-03")]] for unit in units}
    )
    made = _plan(definition, state, "2020-02-03", units=units)
    assert len(made.skips) == 201
    assert made.skips[-1].subject == "more"


def _daily_runs(
    definition: WindowWatermark, units: Sequence[str], days: int, dead: Callable[[WorkUnit], bool]
) -> Iterator[tuple[datetime, list[WorkUnit], WindowState]]:
    """A run each day, of which some work units can never be read."""
    state, now = WindowState(), datetime(2020, 1, 1, 12, tzinfo=UTC)
    for _ in range(days):
        now += timedelta(days=1)
        made = plan(definition, state, tuple(map(_id, units)), now, dataflow="flow", state_number=0)
        works = _works(made)
        for piece in made.slices:
            bad = [FailedUnit(one, "no") for one in piece.works if dead(one)]
            state = WindowState.of(piece.without(bad).advance(state.watermark()))
        yield now, works, state


@pytest.mark.parametrize("places", [1, 2, 3, 10])
def test_a_unit_that_fails_for_ever_never_stops_the_others(places: int) -> None:
    """With the order of windows alone its old windows filled all places after two weeks."""
    definition = _definition("2020-01-01", parallelism=places)
    units = ("a", "b", "dead") if places > 2 else ("a", "dead")
    loaded, runs = 0, 60
    for now, works, _ in _daily_runs(definition, units, runs, lambda one: _name(one.unit) == "dead"):
        assert len(works) <= places
        healthy = [one for one in works if _name(one.unit) != "dead"]
        loaded += len(healthy)
        if places == 10:
            assert _days(healthy) == [(now - timedelta(days=1)).isoformat()[:10]] * 2
    # Windows of the dead unit that were never tried count among the others.
    assert loaded >= {1: 14, 2: 29, 3: 80, 10: 2 * runs}[places]


def test_holes_that_stay_never_stop_what_is_new() -> None:
    """One in twenty work units is a hole; on day 67 they filled all 50 places."""
    units = [f"u{number}" for number in range(15)]

    def hole(one: WorkUnit) -> bool:
        return zlib.crc32(f"{one.key}".encode()) % 20 == 0

    definition, seen = _definition("2020-01-01", parallelism=50), set[tuple[int | None, str]]()
    tried: Counter[tuple[int | None, str]] = Counter()
    for now, works, _ in _daily_runs(definition, units, 200, hole):
        new = [one for one in works if one.reason == "new"]
        assert _days(new) == [(now - timedelta(days=1)).isoformat()[:10]] * len(units)
        assert sum(one.reason == "failed" for one in works) <= 35
        tried.update(one.key for one in works if one.reason == "failed")
        seen |= {one.key for one in new if hole(one) and (one.end or 0) < _ms("2020-06-01")}
    assert len(seen) > 100
    assert min(tried[key] for key in seen) > 10, "and each hole is looked at again and again"


def test_of_what_failed_the_oldest_attempt_goes_first_and_takes_half_of_the_places() -> None:
    definition, units = _definition("2020-01-01", parallelism=5), "abcdefghijkl"
    state, taken = WindowState(), []
    for hour, failing in ((9, "abcde"), (10, "afgh"), (11, "")):
        made = _plan(definition, state, f"2020-01-02T{hour:02}:00:00", units=units)
        state = _after(made, state, frozenset(failing))
        taken.append("".join(_name(one.unit) for one in _works(made)))
    assert taken == ["abcde", "fghab", "ijkcd"]


def test_what_failed_a_moment_ago_takes_no_place_from_others() -> None:
    definition, units = _definition("2020-01-01", parallelism=2), "abcd"
    first = _plan(definition, WindowState(), "2020-01-02T09:00:00", units=units)
    state = _after(first, WindowState(), frozenset("ab"))
    made = _plan(definition, state, "2020-01-02T09:00:30", units=units)
    assert [_name(one.unit) for one in _works(made)] == ["c", "d"]
    made = _plan(definition, state, "2020-01-02T09:01:00", units=units)
    assert [_name(one.unit) for one in _works(made)] == ["c", "a"]


def test_windows_have_no_late_files() -> None:
    made = _plan(_definition("2020-02-01"), WindowState(), "2020-02-03", asked=LateOnly())
    assert (made.slices, made.why) == ((), "windows have no late files")


def _plan_with_step(
    definition: WindowWatermark, state: WindowState, now: str, *, only_adds: bool = False
) -> Plan[WindowSlice]:
    clock = datetime.fromisoformat(now).replace(tzinfo=UTC)
    return plan(
        definition,
        state,
        (NO_UNIT,),
        clock,
        dataflow="flow",
        state_number=0,
        has_step=True,
        only_adds=only_adds,
    )


@pytest.mark.parametrize("only_adds", [False, True])
def test_with_reread_whole_a_growing_window_is_read_from_its_start_and_replaces_its_rows(
    only_adds: bool,
) -> None:
    definition = _definition(to="-", reread="whole")
    first = _plan_with_step(definition, WindowState(), "2020-01-02T10:00", only_adds=only_adds)
    again = _plan_with_step(definition, _after(first, WindowState()), "2020-01-03T07:00", only_adds=only_adds)
    reads = {
        _text(work.lower)[:13]: (_text(work.end)[:13], slice_.replaces)
        for slice_ in again.slices
        for work in slice_.works
    }
    assert reads == {
        "2020-01-02T00": ("2020-01-03T00", only_adds),
        "2020-01-03T00": ("2020-01-03T07", False),
    }
    assert len(again.slices) == (2 if only_adds else 1), (
        "work units that only append are not in a slice that deletes"
    )
    assert [slice_.replaces for slice_ in first.slices] == [False]


def test_with_reread_whole_windows_within_the_grace_are_read_from_their_start() -> None:
    definition = _definition(to="-", reread="whole", grace="PT6H", partial=False)
    state = _after(_plan_with_step(definition, WindowState(), "2020-01-03T01:00"), WindowState())
    again = _works(_plan_with_step(definition, state, "2020-01-04T01:00"))
    assert {_text(work.lower)[:13]: work.reason for work in again} == {
        "2020-01-02T00": "grace",
        "2020-01-03T00": "new",
    }


def test_after_partial_false_a_window_that_a_step_has_summed_in_part_is_read_as_a_whole() -> None:
    """Its rows are replaced: the sum of its rest would stand beside that of its first part."""
    growing, whole = _definition(to="-"), _definition(to="-", partial=False)
    state = _after(_plan_with_step(growing, WindowState(), "2020-01-02T10:00"), WindowState())
    (slice_,) = _plan_with_step(whole, state, "2020-01-03T01:00", only_adds=True).slices
    (work,) = slice_.works
    assert (_text(work.lower)[:13], _text(work.end)[:13], slice_.replaces) == (
        "2020-01-02T00",
        "2020-01-03T00",
        True,
    )
    (rest,) = _works(_plan(whole, state, "2020-01-03T01:00"))
    assert _text(rest.lower)[:13] == "2020-01-02T10", "rows as they are read need no second read"
