"""A clock that ran ahead: what it has loaded is seen, and read again once its time has come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from partitions.instants import milliseconds
from partitions.plan import Plan
from partitions.request import DUE, Forced, Request, WorkUnitSelection
from partitions.sentinels import deserialise, serialise
from partitions.window.definition import WindowWatermark
from partitions.window.ledger import ledger
from partitions.window.plan import plan
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState
from partitions.window.units import NO_UNIT
from partitions.window.wake_rule import select_waking_work

DAY = 86_400_000


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2020-{text}").replace(tzinfo=UTC)


def ms(text: str) -> int:
    return milliseconds(at(text))


def defined(to: str = "P0D", window: Any = "daily", **more: Any) -> WindowWatermark:
    given = {"name": "t", "type": "datetime", "range": {"from": "2020-01-01", "to": to}}
    return WindowWatermark.of({"definition": [given], "window": window, **more})


def planned(
    definition: WindowWatermark,
    state: WindowState,
    now: str,
    since: str | None = None,
    asked: Request = DUE,
) -> Plan[WindowSlice]:
    return plan(
        definition, state, (NO_UNIT,), at(now), dataflow="flow", state_number=0, request=asked, early_since=None if since is None else ms(since)
    )  # fmt: skip


def after(made: Plan[WindowSlice], state: WindowState) -> WindowState:
    for piece in made.slices:
        state = WindowState.of(deserialise(serialise(piece.advance(state.watermark()))))
    return state


def reads(made: Plan[WindowSlice]) -> Sequence[tuple[str, str]]:
    return [
        (datetime.fromtimestamp((one.start or 0) / 1000, UTC).isoformat()[5:10], one.reason)
        for piece in made.slices
        for one in piece.works
    ]


def ahead(definition: WindowWatermark, really: str, clock: str) -> WindowState:
    """Loaded at an instant, then again by a clock that ran ahead."""
    state = WindowState()
    for now in (really, clock):
        state = after(planned(definition, state, now), state)
    return state


def test_windows_loaded_early_are_named_and_read_again_when_over() -> None:
    definition = defined()
    state = ahead(definition, "01-10T12:00:00", "01-20T12:00:00")
    made = planned(definition, state, "01-10T13:00:00", since="01-10T12:30:00")
    assert made.slices == ()
    (warning,) = made.warnings
    assert warning.startswith(
        "[2020-01-10T00:00:00+00:00, 2020-01-20T00:00:00+00:00) was loaded before its end, because a clock ran ahead"
    )
    seen: list[tuple[str, str]] = []
    for day in range(11, 23):
        made = planned(
            definition,
            state,
            f"01-{day}T12:00:00",
            since=None if state.early else "01-10T12:30:00" if day < 20 else None,
        )
        seen += reads(made)
        assert all(piece.replaces for piece in made.slices if piece.works[0].reason == "forced")
        state = after(made, state)
    assert seen == [(f"01-{day}", "forced") for day in range(10, 20)] + [("01-20", "new"), ("01-21", "new")]
    assert state.early == {}


def test_what_was_over_although_the_clock_ran_ahead_stays_loaded() -> None:
    definition = defined()
    state = ahead(definition, "01-05T12:00:00", "01-20T12:00:00")
    made = planned(definition, state, "01-12T12:00:00", since="01-08T12:00:00")
    assert reads(made) == [(f"01-{day:02}", "forced") for day in range(8, 12)]
    state = after(made, state)
    assert state.early == {NO_UNIT: [[ms("01-12"), ms("01-20")]]}
    assert planned(definition, state, "01-12T12:00:00").slices == ()


def test_a_high_above_now_does_not_keep_grace_from_reading_again() -> None:
    definition = defined(grace="P2D")
    state = ahead(definition, "01-10T12:00:00", "03-20T12:00:00")
    made = planned(definition, state, "01-12T12:00:00", since="01-10T12:30:00")
    assert reads(made) == [("01-10", "forced"), ("01-11", "forced")]
    state = after(made, state)
    assert reads(planned(definition, state, "01-12T12:00:00")) == [("01-10", "grace"), ("01-11", "grace")]


@pytest.mark.parametrize("window", ["monthly", "none"])
def test_a_window_that_goes_on_waits_until_it_has_come_as_far_as_it_was_loaded(window: str) -> None:
    definition = defined("-", window)
    state = ahead(definition, "01-10T12:00:00", "01-20T12:00:00")
    for now in ("01-12T12:00:00", "01-20T11:00:00"):
        assert planned(definition, state, now, since="01-10T12:30:00").slices == ()
    state = after(planned(definition, state, "01-19T12:00:00", since="01-10T12:30:00", asked=Forced()), state)
    assert state.early, "what is asked for meanwhile is no end of it"
    made = planned(definition, state, "01-21T12:00:00")
    assert [(one.lower, one.reason) for piece in made.slices for one in piece.works] == [
        (ms("01-01"), "forced")
    ]
    assert after(made, state).early == {}


def test_the_ledger_counts_nothing_above_now_or_early() -> None:
    definition = defined()
    state = ahead(definition, "01-10T12:00:00", "01-20T12:00:00")
    told = ledger(definition, state, (NO_UNIT,), at("01-12T12:00:00"), dataflow="flow").units[0]
    assert told.covered[-1][1] == ms("01-12T12:00:00")
    asked = Forced(WorkUnitSelection(((ms("01-01"), ms("01-02")),)))
    state = after(planned(definition, state, "01-12T12:00:00", since="01-10T12:30:00", asked=asked), state)
    told = ledger(definition, state, (NO_UNIT,), at("01-12T12:00:00"), dataflow="flow").units[0]
    assert (told.complete_up_to, [gap.why for gap in told.gaps]) == (
        ms("01-10"),
        ["loaded before its end, because a clock ran ahead: read again once it is over"],
    )


def test_what_has_come_wakes_a_run() -> None:
    definition = defined()
    state = ahead(definition, "01-10T12:00:00", "01-20T12:00:00")
    made = planned(definition, state, "01-12T12:00:00", since="01-10T12:30:00")
    due = [one for piece in made.slices for one in piece.works]
    assert len(select_waking_work(definition, state, due, at("01-12T12:00:00"))) == 2


def test_clocks_that_differ_by_less_than_an_hour_are_no_reason_to_warn() -> None:
    definition = defined("-", "hourly")
    state = after(planned(definition, WindowState(), "01-02T12:30:00"), WindowState())
    assert planned(definition, state, "01-02T11:45:00").warnings == ()
    assert len(planned(definition, state, "01-02T10:45:00").warnings) == 1


def test_a_changed_definition_carries_it_over() -> None:
    from partitions.window.migration import migrate_state

    definition = defined()
    state = ahead(definition, "01-10T12:00:00", "01-20T12:00:00")
    asked = Forced(WorkUnitSelection(((ms("01-01"), ms("01-02")),)))
    state = after(planned(definition, state, "01-10T13:00:00", since="01-10T12:30:00", asked=asked), state)
    weekly = defined("-", "weekly")
    carried = migrate_state(state, weekly, at("01-16T12:00:00"))
    made = planned(weekly, carried, "01-30T12:00:00")
    assert ("01-08", "forced") in reads(made)
