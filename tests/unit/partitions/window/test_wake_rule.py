from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from partitions.request import DUE, Forced, Request
from partitions.window.definition import WindowWatermark
from partitions.window.plan import plan
from partitions.window.state import WindowState
from partitions.window.wake_rule import select_waking_work
from partitions.window.work_unit import FailedUnit, WorkUnit

UNITS = ('{"id":1}', '{"id":2}', '{"id":3}')


def _definition(**changes: Any) -> WindowWatermark:
    entry = {"name": "t", "type": "datetime", "range": {"from": "2020-01-01", "to": "P0D"}}
    return WindowWatermark.of({"definition": [entry], "window": "daily", **changes})


def _run(
    definition: WindowWatermark,
    state: WindowState,
    now: str,
    *,
    fails: bool = False,
    asked: Request = DUE,
) -> WindowState:
    """Load what is due, or fail at all of it."""
    clock = datetime.fromisoformat(now).replace(tzinfo=UTC)
    made = plan(definition, state, UNITS, clock, dataflow="flow", state_number=0, request=asked)
    for piece in made.slices:
        bad = [FailedUnit(one, "no") for one in piece.works] if fails else []
        state = WindowState.of(piece.without(bad).advance(state.watermark()))
    return state


def _asked(definition: WindowWatermark, state: WindowState, now: str) -> tuple[WorkUnit, ...]:
    clock = datetime.fromisoformat(now).replace(tzinfo=UTC)
    made = plan(definition, state, UNITS, clock, dataflow="flow", state_number=0)
    return select_waking_work(definition, state, [one for piece in made.slices for one in piece.works], clock)


def test_a_window_that_is_over_wakes_a_run_and_what_lies_within_the_grace_goes_along() -> None:
    definition = _definition(grace="P1D")
    state = _run(definition, WindowState(), "2020-01-02")
    assert _asked(definition, state, "2020-01-02T12:00:00") == ()
    assert [one.reason for one in _asked(definition, state, "2020-01-03")] == ["grace"] * 3 + ["new"] * 3


def test_what_failed_wakes_a_run_after_a_pause_that_doubles() -> None:
    definition = _definition()
    state = _run(definition, WindowState(), "2020-01-02T00:00:00", fails=True)
    assert _asked(definition, state, "2020-01-02T00:00:59") == ()
    assert len(_asked(definition, state, "2020-01-02T00:01:00")) == 3
    state = _run(definition, state, "2020-01-02T00:01:00", fails=True)
    assert _asked(definition, state, "2020-01-02T00:02:59") == ()
    assert len(_asked(definition, state, "2020-01-02T00:03:00")) == 3


def test_what_a_cap_left_out_wakes_runs_until_it_is_read_once_its_grace_is_over() -> None:
    definition, state = _definition(grace="P2D", parallelism=3), WindowState()
    for day in ("2020-01-02", "2020-01-03"):
        state = _run(definition, state, day)
    assert len(state.over_cap) == 3
    assert _asked(definition, state, "2020-01-03T01:00:00") == ()  # the next run reads it anyway
    state = _run(definition, state, "2020-01-04")
    runs = 0
    while found := _asked(definition, state, "2020-01-04T01:00:00"):
        assert len(found) == 3
        state, runs = _run(definition, state, "2020-01-04T01:00:00"), runs + 1
    assert runs == 1


def test_what_somebody_has_asked_for_beyond_the_cap_wakes_runs_until_it_is_read() -> None:
    definition = _definition(parallelism=3)
    state = _run(definition, WindowState(), "2020-01-02")
    state = _run(_definition(parallelism=1), state, "2020-01-02", asked=Forced())
    assert [one.reason for one in _asked(definition, state, "2020-01-02")] == ["forced", "forced"]
    assert _asked(definition, _run(definition, state, "2020-01-02"), "2020-01-02") == ()


def test_without_time_units_that_were_never_read_wake_a_run_and_others_do_not() -> None:
    definition = WindowWatermark.of({"definition": [], "parallelism": 2})
    state = _run(definition, WindowState(), "2020-01-02")
    assert [one.unit for one in _asked(definition, state, "2020-01-02")] == [UNITS[0], UNITS[2]]
    state = _run(definition, state, "2020-01-02")
    assert _asked(definition, state, "2020-01-03") == ()
