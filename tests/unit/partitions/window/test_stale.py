"""Windows that are cut otherwise, where only a window's start tells its rows: no commit loses a row, and none doubles one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from partitions.instants import milliseconds
from partitions.sentinels import deserialise, serialise
from partitions.window.carrying import carried_over
from partitions.window.definition import WindowWatermark
from partitions.window.grid import Windows
from partitions.window.plan import Selection, plan
from partitions.window.slices import FailedUnit, WindowSlice
from partitions.window.stale import bounds, each, waits
from partitions.window.state import WindowState

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

    def _decide(self, state: WindowState, now: datetime) -> None:
        self.state = carried_over(state, self.definition, now, tagged=True, before=self.state)
        self.state = WindowState.of(deserialise(serialise(self.state.watermark())))
        self.history.append(self.state)

    def plan(self, now: datetime, asked: Selection | None = None) -> tuple[WindowSlice, ...]:
        return plan(
            self.definition, self.state, (A, B), now, dataflow="flow", number=0, whole=not self.append, ranged=self.ranged,
            selection=asked,
        ).slices  # fmt: skip

    def run(
        self,
        now: datetime,
        fails: frozenset[int] = frozenset(),
        dies_after: int = 10_000,
        asked: Selection | None = None,
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
        gone = [
            *((one.unit, one.start) for one in piece.works),
            *((one.unit, one.start) for one in piece.old),
        ]
        if not self.append or piece.replaces:
            for key in gone:
                self.rows.pop(key, None)
        for one in piece.works:
            read = list(range(-(-(one.lower - FIRST) // CELL), -(-(one.end - FIRST) // CELL)))
            self.rows.setdefault((one.unit, one.start), []).extend(read)
        self.state = WindowState.of(deserialise(serialise(piece.advance(self.state.watermark()))))
        self.history.append(self.state)
        after = self.cells()
        for unit in (A, B):
            assert not [cell for cell, count in after[unit].items() if count > 1], "a row is there twice"
            # A folder holds a whole window: where the first one begins within an old one, it is taken to hold that one's rows.
            begin = 0 if self.ranged else -(-(self.definition.from_at(None) - FIRST) // CELL)
            assert set(after[unit]) >= {cell for cell in before[unit] if cell >= begin}, "a row is lost"

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
            for part in (self.state.units, self.state.stale)
            for unit, runs in part.items()
            for start, *_ in each(runs, self.state.grid)
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
        old = sorted((start, end) for start, end, _ in each(self.state.stale.get(unit, ()), self.state.grid))
        found = () if self.ranged else bounds(old, windows)
        return {index for one in found for index in range(one.first, one.after) if waits(one, windows)}


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
            case ("force", day, length):
                start = ms("2020-01-01") + day * 4 * CELL
                table.run(now, asked=Selection(True, ((start, start + length * 4 * CELL),)))
    for day in range(3):
        table.run(now + timedelta(days=day))
    table.complete(now + timedelta(days=40))
