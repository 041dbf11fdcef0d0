"""Windows that are cut otherwise, where only a window's start tells its rows: no commit loses a row, and none doubles one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitions.errors import ConfigurationError
from partitions.instants import milliseconds
from partitions.request import DUE, Forced, Request, WorkUnitSelection
from partitions.sentinels import deserialise, serialise
from partitions.window.calendar_grid import Grid
from partitions.window.definition import WindowWatermark
from partitions.window.migration import migrate_state
from partitions.window.old_windows import missing_stretches, split_windows, tie_windows
from partitions.window.plan import plan
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState
from partitions.window.windows import Stretch, Windows
from partitions.window.work_unit import FailedUnit

A, B = '{"u":"a"}', '{"u":"b"}'
CELL = 6 * 3_600_000
FIRST = milliseconds(datetime(2019, 12, 1, tzinfo=UTC))


def defined(
    window: Any = "daily", begin: str = "2020-01-01", zone: str = "UTC", **more: Any
) -> WindowWatermark:
    given = {"name": "t", "type": "datetime", "range": {"from": begin, "to": more.pop("to", "-")}}
    return WindowWatermark.of({"definition": [given], "window": window, "timezone": zone, **more})


def ms(text: str) -> int:
    return milliseconds(datetime.fromisoformat(text).replace(tzinfo=UTC))


def now_at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@dataclass
class Table:
    """Rows by unit and by the start of their window: one for each six hours that were read. Its source holds all of them, always."""

    definition: WindowWatermark
    append: bool = False
    ranged: bool = True
    state: WindowState = field(default_factory=WindowState)
    rows: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    history: list[WindowState] = field(default_factory=list)

    def accept(self, definition: WindowWatermark, now: datetime) -> None:
        self.definition = definition
        self._decide(self.state, now)

    def rewind(self, number: int, now: datetime) -> None:
        if self.history:
            self._decide(self.history[number % len(self.history)], now)

    def reset(self, now: datetime) -> None:
        self._decide(WindowState(), now)

    def _decide(self, state: WindowState, now: datetime) -> None:
        self.state = migrate_state(state, self.definition, now, tagged=True, before=self.state)
        self.state = WindowState.of(deserialise(serialise(self.state.watermark())))
        self.history.append(self.state)

    def plan(self, now: datetime, asked: Request = DUE) -> tuple[WindowSlice, ...]:
        return plan(
            self.definition, self.state, (A, B), now, dataflow="flow", state_number=0, rereads_whole_windows=not self.append, reads_any_stretch=self.ranged,
            request=asked,
        ).slices  # fmt: skip

    def run(
        self,
        now: datetime,
        fails: frozenset[int] = frozenset(),
        dies_after: int = 10_000,
        asked: Request = DUE,
        halved: bool = False,
    ) -> None:
        """Load all that is due, and look at the table after every commit."""
        for number, piece in enumerate(self.plan(now, asked)):
            for part in piece.halve() if halved else (piece,):
                if number < dies_after:
                    self.commit(
                        part.without([FailedUnit(one, "no") for one in part.works if _number(one) in fails])
                    )

    def commit(self, piece: WindowSlice) -> None:
        before = self.cells()
        gone = [(one.unit, one.start or 0) for one in piece.works]
        gone += [(one.unit, one.start) for one in piece.old]
        held = self._held(piece)
        if not self.append or piece.replaces:
            for key in gone:
                self.rows.pop(key, None)
        for one in piece.works:
            read = _cells(one.lower or 0, one.end or 0)
            self.rows.setdefault((one.unit, one.start or 0), []).extend(read)
        self.state = WindowState.of(deserialise(serialise(piece.advance(self.state.watermark()))))
        self.history.append(self.state)
        after = self.cells()
        for unit in (A, B):
            assert not [cell for cell, count in after[unit].items() if count > 1], "a row is there twice"
            assert set(after[unit]) >= set(before[unit]) - held[unit], "a row is lost"

    def _held(self, piece: WindowSlice) -> dict[str, set[int]]:
        """A folder holds a whole window: where the first of those that are bound begins within an old one, it is taken to hold that one's rows."""
        held: dict[str, set[int]] = {A: set(), B: set()}
        for one in piece.old if not self.ranged else ():
            first = -(-((one.group_start or 0) - FIRST) // CELL)
            held[one.unit] |= {cell for cell in self.rows.get((one.unit, one.start), ()) if cell < first}
        return held

    def cells(self) -> dict[str, Counter[int]]:
        made: dict[str, Counter[int]] = {A: Counter(), B: Counter()}
        for (unit, _), cells in self.rows.items():
            made[unit].update(cells)
        return made

    def complete(self, now: datetime) -> None:
        """What is there at the end: all that the windows hold, each row once."""
        for _ in range(400):
            pieces = self.plan(now)
            if not any(one.reason != "grace" for piece in pieces for one in piece.works):
                break
            self.run(now)
        else:
            raise AssertionError("it never comes to rest")
        known = {
            (unit, start)
            for part in (self.state.units, self.state.old)
            for unit, runs in part.items()
            for start, *_ in split_windows(runs, self.state.grid)
        }
        assert {key for key, cells in self.rows.items() if cells} <= known, (
            "the state knows all that is there"
        )
        windows = self.definition.windows(now)
        for unit in (A, B):
            waiting = self._waiting(unit, windows)
            for index, (start, end) in enumerate(windows):
                if index in waiting:
                    continue
                there = self.cells()[unit]
                assert all(
                    there[cell] == 1 for cell in range(-(-(start - FIRST) // CELL), -(-(end - FIRST) // CELL))
                )

    def _waiting(self, unit: str, windows: Windows) -> set[int]:
        """Windows that are bound to what a folder cannot give."""
        old = sorted(
            (start, end) for start, end, _ in split_windows(self.state.old.get(unit, ()), self.state.grid)
        )
        found = () if self.ranged else tie_windows(old, windows)
        return {
            index for one in found for index in range(one.first, one.after) if missing_stretches(one, windows)
        }


def _cells(start: int, end: int) -> range:
    return range(-(-(start - FIRST) // CELL), -(-(end - FIRST) // CELL))


def _number(one: Any) -> int:
    return hash((one.start, one.unit)) % 23


GRAINS: list[Any] = ["daily", "weekly", "monthly", "none", {"weekly": ["2019-12-01", "2020-02-03"], "daily": ["2020-02-03", "-"]},
    {"monthly": ["2019-12-01", "2020-02-20"], "daily": ["2020-02-25", "-"]}]  # fmt: skip
definitions = st.builds(
    lambda window, begin, zone, more: defined(window, begin, zone, **more),
    st.sampled_from(GRAINS),
    st.sampled_from(["2020-01-01", "2020-01-08", "2020-02-01", "2020-01-15T12:00:00", "2019-12-20"]),
    st.sampled_from(["UTC", "+06:00", "-06:00"]),
    st.fixed_dictionaries(
        {"partial": st.booleans()},
        optional={
            "parallelism": st.sampled_from([1, 5]),
            "checkpoint": st.sampled_from([{"interval_windows": 1}, {"interval_windows": 7}]),
            "to": st.sampled_from(["P0D", "2020-02-24", "-"]),
        },
    ),
)
runs = st.tuples(
    st.just("run"),
    st.integers(0, 15),
    st.frozensets(st.integers(0, 22), max_size=4),
    st.sampled_from([10_000, 10_000, 0, 1, 2]),
    st.booleans(),
)
events = st.one_of(
    runs,
    runs,
    st.tuples(st.just("accept"), definitions),
    st.tuples(st.just("rewind"), st.integers(0, 30)),
    st.tuples(st.just("reset")),
    st.tuples(st.just("force"), st.integers(0, 60), st.integers(1, 20)),
)


@settings(max_examples=150, deadline=None)
@given(definitions, st.lists(events, max_size=9), st.booleans(), st.booleans())
def test_whatever_changes_and_fails_every_commit_leaves_each_row_once_and_loses_none(
    definition: WindowWatermark, happens: list[tuple[Any, ...]], append: bool, ranged: bool
) -> None:
    table, now = Table(definition, append, ranged), datetime(2020, 1, 20, tzinfo=UTC)
    for event in happens:
        match event:
            case ("run", days, fails, dies_after, halved):
                now = min(now + timedelta(days=days, hours=6 * (days % 3)), datetime(2020, 3, 20, tzinfo=UTC))
                table.run(now, fails, dies_after, halved=halved)
            case ("accept", changed):
                table.accept(changed, now)
            case ("rewind", number):
                table.rewind(number, now)
            case ("reset",):
                table.reset(now)
            case ("force", day, length):
                start = ms("2020-01-01") + day * 4 * CELL
                table.run(now, asked=Forced(WorkUnitSelection(((start, start + length * 4 * CELL),))))
    for day in range(3):
        table.run(now + timedelta(days=day))
    table.complete(now + timedelta(days=40))


def days(*starts: str) -> list[tuple[int, int]]:
    return [(ms(start), ms(start) + 4 * CELL) for start in starts]


def cut(start: str, end: str) -> Windows:
    return Windows.of([Stretch(Grid("daily"), ms(start), ms(end))])


def test_windows_that_share_an_old_one_are_bound_and_the_next_old_one_begins_anew() -> None:
    old = [(ms("2020-01-01"), ms("2020-02-01")), (ms("2020-02-01"), ms("2020-03-01"))]
    found = tie_windows(old, cut("2020-01-01", "2020-03-01"))
    assert [one[:2] for one in found] == [(0, 31), (31, 60)]
    assert [one.rest for one in found] == [(), ()]


def test_old_windows_that_lie_across_new_ones_bind_all_of_them() -> None:
    windows = cut("2020-01-01T06:00:00", "2020-01-05T06:00:00")
    (one,) = tie_windows(days("2020-01-01", "2020-01-02", "2020-01-03"), windows)
    assert (one.first, one.after, len(one.old)) == (0, 3, 3)
    assert one.rest == ((ms("2020-01-01"), ms("2020-01-01T06:00:00")),), (
        "what no window holds is read beside them"
    )


def test_an_old_window_that_no_window_touches_binds_nothing() -> None:
    windows = cut("2020-01-10", "2020-01-12")
    assert tie_windows(days("2020-01-01", "2020-01-09", "2020-01-12"), windows) == []


def test_a_month_makes_room_in_the_commit_of_its_days() -> None:
    table, now = Table(defined("monthly")), now_at("2020-02-10")
    table.run(now)
    table.accept(defined("daily", "2020-01-30"), now)
    assert (table.state.units, table.state.old[A]) == (
        {},
        [[ms("2020-01-01"), ms("2020-02-10"), "monthly UTC"]],
    )
    (piece,) = table.plan(now)
    january = [one for one in piece.works if one.unit == A and (one.end or 0) <= ms("2020-02-01")]
    assert [(one.start, one.reason) for one in january] == [
        (ms("2020-01-30"), "new"),
        (ms("2020-01-31"), "new"),
        (ms("2020-01-01"), "rest"),
    ]
    assert sorted((one.unit, one.start) for one in piece.old) == [
        (unit, ms(start)) for unit in (A, B) for start in ("2020-01-01", "2020-02-01")
    ]
    table.run(now)
    assert table.state.old[A] == [[ms("2020-01-01"), ms("2020-01-30"), "none"]], "which stays as it is"
    assert table.state.units[A] == [[ms("2020-01-30"), ms("2020-02-10")]]


def test_one_that_cannot_be_read_leaves_all_that_are_bound_to_it_as_they_are() -> None:
    table, now, torn = Table(defined("monthly", to="2020-03-01")), now_at("2020-03-01"), ms("2020-01-17")
    table.run(now)
    table.accept(defined("daily", to="2020-03-01"), now)
    for piece in table.plan(now):
        table.commit(piece.without([FailedUnit(one, "torn") for one in piece.works if one.key == (torn, A)]))
    assert sorted(table.rows)[:2] == [(A, ms("2020-01-01")), (A, ms("2020-02-01"))]
    assert len(table.state.failed[A]) == 31
    assert "one commit reads it together with [2020-01-17" in (
        table.state.failed[A][ms("2020-01-02")].error or ""
    )
    table.run(now + timedelta(hours=1))
    assert (table.state.failed, table.state.old) == ({}, {})


def test_groups_that_fail_leave_places_to_others_and_take_turns() -> None:
    table, now = Table(defined("monthly", to="2020-02-01", parallelism=10)), now_at("2020-02-01")
    table.run(now)
    table.accept(defined("daily", parallelism=10), now)
    tried = 0
    for day in range(8):
        for piece in table.plan(now + timedelta(days=day)):
            bad = [FailedUnit(one, "no") for one in piece.works if one.group_start is not None]
            tried += bool(bad)
            table.commit(piece.without(bad))
    assert tried >= 4
    february = [ms(f"2020-02-0{day}") for day in range(1, 8)]
    assert sorted(table.rows) == [(unit, start) for unit in (A, B) for start in [ms("2020-01-01"), *february]]


def test_a_slice_is_halved_between_what_is_bound() -> None:
    table, now = Table(defined("weekly", to="2020-01-22")), now_at("2020-01-22")
    table.run(now)
    table.accept(defined("daily", to="2020-01-22"), now)
    (piece,) = table.plan(now)
    assert (len(piece.works), len(piece.old)) == (42, 6)
    halves = piece.halve()
    assert [(len(one.works), len(one.old)) for one in halves] == [(21, 3), (21, 3)]
    (least,) = halves[0].halve()[0].halve()
    assert (len(least.works), len(least.old)) == (7, 1)


def test_a_folder_waits_for_the_windows_that_hold_the_rest_of_an_old_one() -> None:
    table, now = Table(defined(partial=False, to="P0D"), ranged=False), now_at("2020-01-06T12:00:00")
    table.run(now)
    table.accept(defined(zone="+06:00", partial=False, to="P0D"), now)
    made = plan(
        table.definition,
        table.state,
        (A,),
        now,
        dataflow="flow",
        state_number=0,
        rereads_whole_windows=True,
        reads_any_stretch=False,
    )
    assert made.slices == ()
    assert (
        "waits for windows that cover [2020-01-06T00:00:00+06:00, 2020-01-06T06:00:00+06:00)"
        in made.skips[0].why
    )
    table.run(now + timedelta(days=1))
    assert [start for unit, start in sorted(table.rows) if unit == A] == [
        ms(f"2020-01-0{day}") - CELL for day in range(1, 7)
    ]


def test_back_before_anything_was_read_again_replaces_each_window_by_itself() -> None:
    table, now = Table(defined()), now_at("2020-01-10")
    table.run(now)
    table.accept(defined("monthly"), now)
    table.accept(defined(), now)
    (piece,) = table.plan(now)
    starts = [ms(f"2020-01-0{day}") for day in range(1, 10)]
    assert [(one.start, one.group_start) for one in piece.works if one.unit == A] == [
        (one, one) for one in starts
    ]
    table.run(now)
    assert table.state.old == {}


def test_a_rewind_over_the_change_replaces_what_was_read_since() -> None:
    table, now = Table(defined(), append=True), now_at("2020-01-10")
    table.run(now)
    loaded = len(table.history) - 1
    table.accept(defined("weekly"), now)
    table.run(now)
    assert sorted(start for unit, start in table.rows if unit == A) == [ms("2020-01-01"), ms("2020-01-08")]
    table.rewind(loaded, now)
    assert table.state.units == {}
    table.run(now)
    assert table.state.units[A] == [[ms("2020-01-01"), ms("2020-01-10")]]


def test_rows_without_a_window_cannot_be_told_apart_by_windows() -> None:
    timeless = WindowWatermark.of({"definition": [{"name": "u", "type": "unit", "units": "a,b"}]})
    state = WindowState(units={A: [], B: []})
    with pytest.raises(ConfigurationError, match="reset NAME --replace"):
        migrate_state(state, defined(), now_at("2020-01-10"), tagged=True, before=state)
    with pytest.raises(ConfigurationError, match="reset NAME --replace"):
        migrate_state(WindowState(), defined(), now_at("2020-01-10"), tagged=True, before=state)
    table, now = Table(defined()), now_at("2020-01-03")
    table.run(now)
    table.accept(timeless, now)
    assert (table.state.units, set(table.state.old)) == ({}, {A, B})
    (piece,) = table.plan(now)
    assert WindowState.of(piece.advance(table.state.watermark())).old == {}


def test_a_reset_to_no_time_and_back_keeps_windows_of_the_table() -> None:
    timeless = WindowWatermark.of({"definition": [{"name": "u", "type": "unit", "units": "a,b"}]})
    table, now = Table(defined(), append=True), now_at("2020-01-03")
    table.run(now)
    table.definition = timeless
    table.reset(now)
    table.accept(defined("weekly"), now)
    table.run(now)
    assert table.rows[A, ms("2020-01-01")] == [*_cells(ms("2020-01-01"), ms("2020-01-03"))]
    assert (A, ms("2020-01-02")) not in table.rows
