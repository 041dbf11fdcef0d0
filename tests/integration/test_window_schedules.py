"""Any order of arrivals, corrections, deletions, runs, crashes, failures, backfills and refreshes: the table is what was read, once.

The oracle knows the source at each of its versions. From the log it takes only which stretch of which unit was read at which
version; so it says exactly which rows the table must hold. And it says what must have been read when.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from partitions.request import Forced, WorkUnitSelection
from resources.kinds import all_decisions as decisions
from resources.kinds.all_decisions import DraftBuilder
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from resources.watermarks.entry import Intent
from resources.watermarks.work_units import WORK_UNITS, loaded_units
from tests.support.feed import NAME, Row
from tests.support.steps import Killed
from tests.support.window_feed import REPLACED, LakeTable, Windows, event, instant, on_lake, watermark

START = instant("2020-01-01")
UNITS = "abc"
DAY = 86_400_000


@dataclass(frozen=True)
class Arrive:
    """Rows come, on time or late."""

    unit: str
    ages: tuple[int, ...]

    def __str__(self) -> str:
        return f"rows of {self.unit} come, {', '.join(map(str, self.ages))} hours old"


@dataclass(frozen=True)
class Change:
    """Rows at the source get another value, or are deleted; which ones is a share of them."""

    first: float
    last: float
    deletes: bool

    def __str__(self) -> str:
        return f"rows {self.first:.2f} to {self.last:.2f} {'vanish' if self.deletes else 'change'}"


@dataclass(frozen=True)
class Run:
    """Time goes on, and a run: it may die at a step, and a unit may be unreadable."""

    hours: int
    step: Step | None
    times: int
    broken: str | None

    def __str__(self) -> str:
        dies = f", dies at {self.step} {self.times}" if self.step else ""
        return (
            f"{self.hours} hours later a run{dies}{f', {self.broken} cannot be read' if self.broken else ''}"
        )


@dataclass(frozen=True)
class Backfill:
    """Some days of one unit, or of all, are asked for."""

    day: int
    days: int
    unit: str | None
    step: Step | None

    def __str__(self) -> str:
        return f"a backfill of {self.days} days from {self.day} on, of {self.unit or 'all'}{f', dies at {self.step}' if self.step else ''}"


@dataclass(frozen=True)
class Refresh:
    """Everything is read again: the table is emptied, or windows make room."""

    empties: bool

    def __str__(self) -> str:
        return f"a full refresh{' of an empty table' if self.empties else ''}"


@dataclass(frozen=True)
class List:
    """Other units are listed."""

    units: str

    def __str__(self) -> str:
        return f"units are {self.units}"


Action = Arrive | Change | Run | Backfill | Refresh | List

steps = st.none() | st.sampled_from(Step)
units = st.sampled_from(UNITS)
arrivals = st.builds(Arrive, units, st.lists(st.integers(0, 120), min_size=1, max_size=4).map(tuple))
runs = st.builds(Run, st.integers(0, 40), steps, st.integers(1, 2), st.none() | units)
others = (
    st.builds(Change, st.floats(0, 1), st.floats(0, 1), st.booleans())
    | st.builds(Backfill, st.integers(0, 4), st.integers(1, 3), st.none() | units, steps)
    | st.builds(Refresh, st.booleans())
    | st.builds(List, st.sampled_from(["a", "ab", "bc", "cab"]))
)


def schedules(most: int) -> st.SearchStrategy[list[Action]]:
    more = st.lists(arrivals | runs | others, min_size=1, max_size=most)
    return st.tuples(arrivals, runs, more).map(lambda parts: [parts[0], parts[1], *parts[2]])


@dataclass(frozen=True)
class Read:
    """A stretch of one unit, read at one version of the source."""

    unit: str
    lower: int
    end: int
    version: int

    def holds(self, row: Row) -> bool:
        return row["unit"] == self.unit and self.lower <= _ms(row["at"]) < self.end


@dataclass
class World:
    """A dataflow, its source at all of its versions, and what must be in the table.

    Attributes:
        grace: in days; without one rows are appended.
        due: of what a quiet run had to read: to which version at least.
    """

    made: Windows
    grace: int
    now: datetime = START + timedelta(days=2, hours=5)
    listed: str = "ab"
    snapshots: dict[int, dict[int, Row]] = field(default_factory=dict)
    due: dict[tuple[str, int], int] = field(default_factory=dict)
    broken: str | None = None
    _next: int = 0

    def __post_init__(self) -> None:
        self.made.table.put(event(0, START, "z"))
        self._snapshot()

    def act(self, action: Action) -> None:
        match action:
            case Arrive():
                self._arrive(action)
            case Change():
                self._change(action)
            case Run():
                self.now += timedelta(hours=action.hours)
                self._run(action)
            case Backfill():
                self._backfill(action)
            case Refresh():
                reset = decisions.reset("any", replace=True)
                self._decide(reset if action.empties else decisions.rewind("any", 0, replace=True))
            case List():
                self.relist(action.units)

    def relist(self, listed: str) -> None:
        self.listed = listed
        self.made.feed.define(watermark={"definition": watermark(units=",".join(listed))["definition"]})

    def quiet(self) -> None:
        """A run that nothing disturbs and nothing limits: it must read all that is due."""
        entry = self.made.feed.newest
        highest = (
            max((run[1] for runs in entry.state().get("units", {}).values() for run in runs), default=0)
            if entry
            else 0
        )
        outcome = self.made.feed.run(now=self.now)
        assert outcome.error is None, outcome.error
        for unit in self.listed:
            for start in range(_ms(START), _ms(self.now), DAY):
                if self.grace and min(start + DAY, _ms(self.now)) > highest - self.grace * DAY:
                    self.due[unit, start] = self.made.table.version

    def check(self) -> None:
        """The table is what was read; of a run that died its open slice may be there, too."""
        known, open_ = self._slices(), self.made.feed.open_intent
        wanted = [self._table(known)]
        if open_ is not None and not open_.is_decision:
            wanted.append(self._table([*known, self._slice(open_)]))
        assert self.made.rows in wanted

    def check_all(self) -> None:
        """Of every listed unit every instant was read, and what a grace held, as it was then or later."""
        reads = self._reads()
        for unit in self.listed:
            for start in range(_ms(START), _ms(self.now), DAY):
                end, reached = min(start + DAY, _ms(self.now)), start
                own = [read for read in reads if read.unit == unit and read.lower < end and start < read.end]
                for read in sorted(own, key=lambda one: one.lower):
                    reached = max(reached, read.end) if read.lower <= reached else reached
                assert reached >= end, f"{unit} {start} is read up to {reached}"
                whole = [read.version for read in own if read.lower <= start and read.end >= end]
                assert max(whole, default=-1) >= self.due.get((unit, start), -1)

    def _arrive(self, action: Arrive) -> None:
        rows = []
        for age in action.ages:
            self._next += 1
            at = max(START, self.now - timedelta(hours=age, seconds=self._next))
            rows.append(event(self._next, at, action.unit))
        self.made.table.put(*rows)
        self._snapshot()

    def _change(self, action: Change) -> None:
        ids = sorted(set(self.made.table.rows) - {0})
        first, last = sorted((action.first, action.last))
        chosen = ids[int(first * len(ids)) : int(last * len(ids)) + 1]
        if action.deletes:
            self.made.table.drop(*chosen)
        else:
            rows = [self.made.table.rows[number] for number in chosen]
            self.made.table.put(*[{**row, "value": row["value"] + 1} for row in rows])
        self._snapshot()

    def _snapshot(self) -> None:
        self.snapshots[self.made.table.version] = dict(self.made.table.rows)

    def _run(self, run: Run, **options: Any) -> None:
        seen: list[Step] = []

        def observer(step: Step, line: str) -> None:
            seen.append(step)
            if step is run.step and seen.count(step) == run.times:
                raise Killed

        table = self.made.table
        gone = [number for number, row in table.rows.items() if row["unit"] == run.broken]
        try:
            with table.without(*(gone or [-1])):
                outcome = self.made.feed.run(observer, now=self.now, **options)
        except Killed:
            return
        note(f"  {outcome.status}, {outcome.error}")
        assert outcome.error is None or (outcome.error.code == "failed_units" and run.broken)

    def _backfill(self, action: Backfill) -> None:
        start = _ms(START) + action.day * DAY
        chosen = frozenset([_identity(action.unit)]) if action.unit else None
        request = Forced(WorkUnitSelection(((start, start + action.days * DAY),), chosen))
        feed = self.made.feed

        def observer(step: Step, line: str) -> None:
            if step is action.step:
                raise Killed

        try:
            outcome = feed.platform.loop(feed.dataflow, self.now, request, observer=observer).run()
        except Killed:
            return
        assert outcome.error is None

    def _decide(self, making: DraftBuilder) -> None:
        feed = self.made.feed
        if feed.newest is not None:
            decisions.decide(feed.platform, feed.dataflow, making, "any")

    def _slices(self) -> list[tuple[Intent, list[Read]]]:
        log = self.made.feed.platform.log
        numbers = [entry.number for entry in self.made.feed.entries if entry.why == "run"]
        return [self._slice(intent) for number in numbers if (intent := log.intent(NAME, number))]

    def _slice(self, intent: Intent) -> tuple[Intent, list[Read]]:
        stored = self.made.feed.platform.log.get_list(intent.file_list, WORK_UNITS)
        version = stored.head["read_from"]
        return intent, [
            Read(_unit(one.unit), one.lower or 0, one.end or 0, version) for one in loaded_units(stored)
        ]

    def _reads(self) -> list[Read]:
        """What was read into the table since it was emptied last."""
        found: list[Read] = []
        for intent, reads in self._slices():
            found = [*reads] if intent.replaces == "table" else [*found, *reads]
        return found

    def _table(self, slices: Iterable[tuple[Intent, list[Read]]]) -> list[tuple[Any, ...]]:
        rows: list[Row] = []
        for intent, reads in slices:
            makes_room = self.grace or intent.replaces == "own"
            kept = [row for row in rows if not (makes_room and any(read.holds(row) for read in reads))]
            rows = [] if intent.replaces == "table" else kept
            rows += [
                row for read in reads for row in self.snapshots[read.version].values() if read.holds(row)
            ]
        return sorted((row["id"], row["value"]) for row in rows)


def _check(world: World, schedule: list[Action]) -> None:
    for action in schedule:
        note(str(action))
        world.act(action)
        world.check()
    world.made.feed.define(watermark={"parallelism": None})
    if world.made.feed.open_intent is not None:
        world._run(Run(0, None, 1, None))  # an unfinished slice is read as it was planned
        world.check()
    world.now += timedelta(hours=1)
    world.quiet()
    world.check()
    world.check_all()
    ids = [row[0] for row in world.made.rows]
    assert len(ids) == len(set(ids)), "nothing is there twice"
    entries = world.made.feed.entries
    assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
    assert entries[-1].total_rows == len(ids)
    assert world.made.feed.open_intent is None


def _world(home: Path, engine: SparkEngine, grace: int, parallelism: int | None) -> World:
    shutil.rmtree(home / "project", ignore_errors=True)
    limits: dict[str, Any] = {"parallelism": parallelism, "checkpoint": {"interval_windows": 4}}
    target = REPLACED if grace else {"load": "append"}
    made = on_lake(
        home / "project",
        engine,
        watermark=watermark(units="a,b", grace=f"P{grace}D", **limits),
        target=target,
    )
    return World(replace(made, table=LakeTable(made.table.path, partition_by=["unit"])), grace)


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _identity(unit: str) -> str:
    return f'{{"u":"{unit}"}}'


def _unit(identity: str) -> str:
    return identity[6:-2]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("window_schedules")


_SLOW: dict[str, Any] = {
    "phases": (
        Phase.explicit,
        Phase.reuse,
        Phase.generate,
    ),  # each try costs seconds, so a failure is shown as it was found
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
caps = st.sampled_from([None, 2, 5])


@pytest.mark.full
@given(grace=st.integers(0, 3), cap=caps, schedule=schedules(2))
@settings(max_examples=2, **_SLOW)
def test_any_schedule_leaves_what_was_read_last_once(
    home: Path, engine: SparkEngine, grace: int, cap: int | None, schedule: list[Action]
) -> None:
    _check(_world(home, engine, grace, cap), schedule)


@pytest.mark.full
@pytest.mark.timeout(3600)
@given(grace=st.integers(0, 3), cap=caps, schedule=schedules(12))
@settings(max_examples=20, **_SLOW)
def test_any_long_schedule_leaves_what_was_read_last_once(
    home: Path, engine: SparkEngine, grace: int, cap: int | None, schedule: list[Action]
) -> None:
    _check(_world(home, engine, grace, cap), schedule)
