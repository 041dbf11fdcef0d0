"""Windows whose rows have changed in the lake table that they read: which are due, and what the state says of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.errors import ConfigurationError, CorruptWatermark
from partitions.instants import DAY, HOUR, MINUTE, as_datetime, milliseconds
from partitions.log_position import LogPosition
from partitions.plan import Plan
from partitions.request import DUE, Forced, Request, WorkUnitSelection
from partitions.window.awaited_windows import AwaitedWindows
from partitions.window.awaited_words import AwaitedWords
from partitions.window.definition import WindowWatermark
from partitions.window.expired import ExpiredRows
from partitions.window.ledger import ledger
from partitions.window.plan import plan
from partitions.window.slices import WindowSlice
from partitions.window.source_changes import ChangedStretch, SourceChanges, unit_key
from partitions.window.state import WindowState
from partitions.window.units import NO_UNIT
from partitions.window.upstream import UpstreamTables
from partitions.window.work_unit import FailedUnit

NOW = datetime(2026, 1, 11, tzinfo=UTC)
START = milliseconds(datetime(2026, 1, 1, tzinfo=UTC))
TABLE = "bronze/flights"
EWR, JFK = '{"airport":"EWR"}', '{"airport":"JFK"}'
UNITS = (EWR, JFK)


def definition(**keys: Any) -> WindowWatermark:
    range_ = {"from": "2026-01-01", "to": "-"}
    entries: list[dict[str, Any]] = [
        {"name": "day", "type": "datetime", "range": range_},
        {"name": "airport", "type": "unit", "units": "EWR,JFK"},
    ]
    return WindowWatermark.of({"definition": entries, "window": "daily", "refresh": "changed", **keys})


def position(version: int) -> LogPosition:
    return LogPosition("t", version, f"c{version}")


def stretch(day: float, airport: str = "EWR", version: int = 2) -> ChangedStretch:
    start = START + int(day * DAY)
    return ChangedStretch(unit_key({"airport": airport}, UTC), start, start + 1, f"version {version}")


def changes(version: int, *stretches: ChangedStretch) -> SourceChanges:
    return SourceChanges(TABLE, position(version), stretches, ("airport",), UTC)


def planned(
    state: WindowState,
    source: SourceChanges,
    now: datetime = NOW,
    request: Request = DUE,
    expired: ExpiredRows | None = None,
    **keys: Any,
) -> Plan[WindowSlice]:
    upstream = UpstreamTables((), UTC, (expired,) if expired else (), source, is_awaited=False)
    return plan(
        definition(**keys),
        state,
        UNITS,
        now,
        dataflow="f",
        state_number=1,
        request=request,
        upstream=upstream,
    )


def after(state: WindowState, plan_: Plan[WindowSlice], most: int | None = None) -> WindowState:
    watermark = state.watermark()
    for slice_ in plan_.slices[:most]:
        watermark = slice_.advance(watermark)
    return WindowState.of(watermark)


def due(plan_: Plan[WindowSlice]) -> list[tuple[int, str, str]]:
    works = (work for slice_ in plan_.slices for work in slice_.works)
    return sorted((((work.start or 0) - START) // DAY, work.unit[12:15], work.reason) for work in works)


def loaded(now: datetime = NOW, **keys: Any) -> WindowState:
    """Return the state after a first run at version 1."""
    return after(WindowState(), planned(WindowState(), changes(1), now, **keys))


def test_a_first_run_records_the_version_that_it_reads() -> None:
    assert loaded().read_at == {"table": "t", "version": 1, "commit": "c1"}


def test_only_the_day_and_the_unit_whose_rows_changed_are_due_and_are_read_as_a_whole() -> None:
    plan_ = planned(loaded(), changes(3, stretch(2.5), stretch(4.2, "JFK")))
    assert due(plan_) == [(2, "EWR", "changed"), (4, "JFK", "changed")]
    assert all(work.lower == work.start for slice_ in plan_.slices for work in slice_.works)
    assert all(slice_.replaces for slice_ in plan_.slices)
    assert plan_.why == "2 work units of 10 windows x 2 units due: 2 changed"
    state = after(loaded(), plan_)
    assert (state.changed, state.read_at["version"]) == ({}, 3)
    assert due(planned(state, changes(3))) == []


def test_rows_behind_the_end_of_a_window_that_grows_are_no_change_and_late_ones_are() -> None:
    noon = NOW - timedelta(hours=12)
    state, later = loaded(noon), NOW - timedelta(hours=1)
    assert due(planned(state, changes(2, stretch(9.6)), later)) == [(9, "EWR", "new"), (9, "JFK", "new")]
    late = planned(state, changes(2, stretch(9.4)), later)
    assert due(late) == [(9, "EWR", "changed"), (9, "JFK", "new")]
    (whole,) = (work for slice_ in late.slices for work in slice_.works if work.reason == "changed")
    assert (whole.lower, whole.end) == (START + 9 * DAY, milliseconds(later))


def test_an_unknown_position_makes_each_loaded_window_due_and_no_other_one() -> None:
    state = replace(loaded(NOW - timedelta(days=8)), read_at={})
    plan_ = planned(
        state, SourceChanges(TABLE, position(7), None, ("airport",), UTC), NOW - timedelta(days=7)
    )
    assert [reason for *_, reason in due(plan_)].count("changed") == 4
    assert [reason for *_, reason in due(plan_)].count("new") == 2


def test_a_plan_that_loads_a_part_notes_the_rest_with_the_version_that_it_was_read_at() -> None:
    state = loaded()
    first = after(state, planned(state, changes(3, stretch(2.5), stretch(4.5)), parallelism=1))
    assert first.changed == {EWR: [[START + 4 * DAY, START + 5 * DAY, "version 1"]]}
    second = planned(first, changes(5, stretch(4.7, version=5), stretch(6.5, version=5)), parallelism=1)
    assert due(second) == [(4, "EWR", "changed")]
    assert after(first, second).changed == {EWR: [[START + 6 * DAY, START + 7 * DAY, "version 3"]]}
    book = ledger(definition(), first, UNITS, NOW, dataflow="f")
    assert [(at.start, at.why) for at in book.units[0].read_at] == [
        (START, "version 3"),
        (START + 4 * DAY, "version 1"),
        (START + 5 * DAY, "version 3"),
    ]


def test_the_ledger_says_since_which_commit_a_window_is_out_of_date() -> None:
    source, state, current = changes(3, stretch(2.5, version=3)), loaded(), definition()
    tables = UpstreamTables((), UTC, (), source)
    windows = AwaitedWindows.of(tables, current, state, current.windows(NOW), NOW)
    book = ledger(current, state, UNITS, NOW, dataflow="f", outdated=AwaitedWords(windows).outdated)
    assert [tuple(gap) for gap in book.units[0].outdated] == [
        (START + 2 * DAY, START + 3 * DAY, f"out of date since version 3 of {TABLE}")
    ]


def test_a_forced_day_clears_its_change_and_keeps_the_others() -> None:
    state = loaded()
    source = changes(3, stretch(2.5), stretch(4.5))
    first = (START + 2 * DAY, START + 3 * DAY)
    plan_ = planned(state, source, request=Forced(WorkUnitSelection(ranges=(first,))))
    assert due(plan_) == [(2, "EWR", "forced"), (2, "JFK", "forced")]
    assert after(state, plan_).changed == {EWR: [[START + 4 * DAY, START + 5 * DAY, "version 1"]]}


def test_a_failed_day_keeps_its_change() -> None:
    state = loaded()
    (slice_,) = planned(state, changes(3, stretch(2.5))).slices
    failed = slice_.without([FailedUnit(slice_.works[0], "no answer")])
    state = WindowState.of(failed.advance(state.watermark()))
    assert list(state.changed) == [EWR]
    assert due(planned(state, changes(3))) == [(2, "EWR", "changed")]


def test_days_whose_rows_a_retention_upstream_has_deleted_stay_as_they_are() -> None:
    expired = ExpiredRows(TABLE, START + 3 * DAY)
    plan_ = planned(loaded(), changes(3, stretch(1.5), stretch(4.5)), expired=expired)
    assert due(plan_) == [(4, "EWR", "changed")]


def test_days_that_were_never_loaded_are_loaded_although_rows_have_expired() -> None:
    plan_ = planned(WindowState(), changes(1), expired=ExpiredRows(TABLE, START + 3 * DAY))
    assert len(due(plan_)) == 20


def test_a_day_that_rests_keeps_its_change_until_it_is_due() -> None:
    noon = NOW - timedelta(hours=12)
    keys: dict[str, Any] = {"abstinent": "PT6H", "abstinent_skips": True}
    state = loaded(noon, **keys)
    source = changes(2, stretch(9.4), stretch(3.5))
    resting = planned(state, source, noon + timedelta(hours=1), **keys)
    assert due(resting) == [(3, "EWR", "changed")]
    state = after(state, resting)
    later = planned(state, changes(2), noon + timedelta(hours=7), **keys)
    assert due(later) == [(9, "EWR", "changed"), (9, "JFK", "new")]


def test_windows_of_a_composite_definition_are_due_in_their_own_grains() -> None:
    window = {"weekly": ["2026-01-01", "2026-01-08"], "daily": ["2026-01-08", "-"]}
    plan_ = planned(loaded(window=window), changes(3, stretch(2.5), stretch(8.5)), window=window)
    spans = [((w.end or 0) - (w.start or 0)) // DAY for slice_ in plan_.slices for w in slice_.works]
    assert sorted(spans) == [1, 7]


def test_a_definition_without_time_cannot_refresh() -> None:
    with pytest.raises(ConfigurationError, match="expected a datetime entry"):
        WindowWatermark.of({"definition": [], "refresh": "changed"})


def test_a_state_with_another_position_is_refused() -> None:
    with pytest.raises(CorruptWatermark):
        WindowState.of({"grid": "none UTC", "units": {}, "read_at": {"version": 4}})


@st.composite
def _histories(draw: st.DrawFn) -> list[tuple[str, Any]]:
    change = st.tuples(
        st.just("commit"),
        st.lists(st.tuples(st.integers(0, 6 * 24 - 1), st.sampled_from(["EWR", "JFK"])), max_size=3),
    )
    hours = st.tuples(st.just("clock"), st.integers(1, 30))
    run = st.tuples(st.just("run"), st.tuples(st.integers(0, 3), st.booleans(), st.booleans()))
    return draw(st.lists(st.one_of(change, hours, run), min_size=1, max_size=14))


@given(
    _histories(),
    st.sampled_from(
        ["hourly", "daily", {"daily": ["2026-01-01", "2026-01-03"], "hourly": ["2026-01-03", "-"]}]
    ),
    st.sampled_from([None, 1, 3]),
    st.sampled_from(["P0D", "PT7H"]),
)
def test_each_loaded_window_is_as_the_table_was_at_the_version_that_the_state_names(
    history: list[tuple[str, Any]], window: Any, parallelism: int | None, grace: str
) -> None:
    keys: dict[str, Any] = {"window": window, "grace": grace, "checkpoint": {"interval_windows": 5}}
    keys |= {"parallelism": parallelism} if parallelism else {}
    now, state = as_datetime(START + 3 * HOUR), WindowState()
    commits: list[list[tuple[int, str]]] = []
    table: dict[tuple[int, str], int] = {}  # the version that each hour of each unit was read at
    for what, argument in history:
        if what == "commit":
            commits.append(argument)
        elif what == "clock":
            now += timedelta(hours=argument)
        else:
            most, forced, fails = argument
            known = state.position.version if state.position else 0
            behind = [
                ChangedStretch(
                    unit_key({"airport": unit}, UTC),
                    START + hour * HOUR,
                    START + hour * HOUR + MINUTE,
                    f"version {number}",
                )
                for number, commit in enumerate(commits, 1)
                if number > known
                for hour, unit in commit
            ]
            source = SourceChanges(TABLE, position(len(commits)), tuple(behind), ("airport",), UTC)
            plan_ = planned(state, source, now, Forced() if forced else DUE, **keys)
            for number, slice_ in enumerate(plan_.slices[: most + 1]):
                done = (
                    slice_.without([FailedUnit(slice_.works[0], "no")]) if fails and number == 0 else slice_
                )
                state = WindowState.of(done.advance(state.watermark()))
                for work in done.works:
                    for hour in range((work.lower or 0), (work.end or 0), HOUR):
                        table[(hour, work.unit)] = len(commits)
    base = state.position.version if state.position else 0
    for (hour, unit), read_at in table.items():
        parts = [part for part in state.changed.get(unit, ()) if part[0] < hour + HOUR and hour < part[1]]
        named = int(parts[0][2].split()[1]) if parts else base
        for version in range(min(read_at, named) + 1, max(read_at, named) + 1):
            assert ((hour - START) // HOUR, unit[12:15]) not in commits[version - 1], (
                hour,
                unit,
                read_at,
                named,
            )


@given(st.integers(0, 20 * 24), st.integers(1, 50))
def test_a_change_of_no_unit_touches_all_units(hour: int, length: int) -> None:
    everything = ChangedStretch(None, START + hour * HOUR, START + (hour + length) * HOUR, "version 2")
    source = SourceChanges(TABLE, position(2), (everything,), ("airport",), UTC)
    assert source.changed(EWR) == source.changed(JFK) == source.changed(NO_UNIT)
