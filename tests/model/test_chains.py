"""Chains of windows: whatever happens, what a ledger counts as loaded equals the batch query, and nothing stays stale.

What is modelled: hours of up to three units, of which one is late, days of all units or of each, and weeks of days. Hours cannot be
read for a while, change at the source, and are read again by a grace, by force, or after a rewind or a reset. Units come and go. The days may wait for hours of the
weather, too. Logs are compacted. Each process may die before or
after anything that it puts beside the log, or around its commit; the hours may load while a run of the days is planned.

What is real, and what stands in for Spark: :mod:`tests.support.chained`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from partitions.errors import StrandlineError
from partitions.instants import HOUR
from partitions.request import DUE, Forced, WorkUnitSelection
from partitions.sentinels import canonical
from partitions.window.units import NO_UNIT
from partitions.window.units import unit_of as unit_from
from partitions.window.work_unit import WorkUnit
from resources.kinds import all_decisions as decisions
from resources.watermarks import holder
from resources.watermarks.compaction import RetentionPolicy, compact_log
from resources.watermarks.entry import Entry
from resources.watermarks.work_units import WORK_UNITS, loaded_units
from tests.model.world import MEMORY
from tests.support.chained import Chain, at, cell_of, cells_of, key_of, start_of

UNITS = ("EWR", "JFK", "LGA")
CHAIN = ("hours", "days", "weeks")
WEATHER = "weather"
"""An input that the days may wait for: a dataflow, and its unit here."""

NAMES = (*CHAIN, WEATHER)
_LAST = 24 * 9
_PUTS = ("files", "intents", "commit", "entries")

kills = st.none() | st.tuples(st.sampled_from(["before", "after"]), st.sampled_from(_PUTS), st.integers(1, 2))
_back = st.integers(1, 60)
_units = st.sampled_from(UNITS)
_broken = st.sampled_from((*UNITS, WEATHER))


@dataclass(frozen=True)
class Wait:
    """Time passes, in hours."""

    hours: int


@dataclass(frozen=True)
class Change:
    """An hour of a unit has another value at the source; hours long ago, too."""

    unit: str
    back: int


@dataclass(frozen=True)
class Break:
    """Some hours of a unit cannot be read until they are mended."""

    unit: str
    back: int
    count: int


@dataclass(frozen=True)
class Mend:
    """All hours can be read."""


@dataclass(frozen=True)
class Run:
    """A dataflow runs; its process may die."""

    name: str
    kill: tuple[str, str, int] | None = None


@dataclass(frozen=True)
class Cycle:
    """A day passes, and all run in their order; the process of one may die."""

    hours: int = 24
    dies: str = ""
    kill: tuple[str, str, int] | None = None


@dataclass(frozen=True)
class Correct:
    """An hour changes at the source and is read again."""

    unit: str
    back: int
    kill: tuple[str, str, int] | None = None


@dataclass(frozen=True)
class Force:
    """Loaded windows are read again."""

    name: str
    back: int
    count: int
    kill: tuple[str, str, int] | None = None


@dataclass(frozen=True)
class Decide:
    """The state of a dataflow goes back: by some entries, or to nothing."""

    name: str
    what: str
    back: int = 1


@dataclass(frozen=True)
class Units:
    """Another list of units is declared for the hours."""

    count: int


@dataclass(frozen=True)
class Compact:
    """All entries of a log are deleted but for the newest ones."""

    name: str
    keep: int


@dataclass(frozen=True)
class Between:
    """A day passes; its hours change while a run of the days looks up the version to read.

    Attributes:
        back: the hour that changes, before now.
        empties: whether all hours are loaded anew into an emptied table, but for that hour; else only that
            hour is loaded again.
    """

    back: int
    empties: bool = False
    kill: tuple[str, str, int] | None = None


actions = st.one_of(
    st.builds(Wait, st.integers(1, 40)),
    st.builds(Cycle, st.integers(20, 50), st.sampled_from(("", *CHAIN)), kills),
    st.builds(Cycle, st.integers(20, 50), st.sampled_from(("", *CHAIN)), kills),
    st.builds(Correct, _units, _back, kills),
    st.builds(Correct, _units, _back, kills),
    st.builds(Change, _units, _back),
    st.builds(Break, _broken, st.integers(-24, 30), st.integers(1, 30)),
    st.builds(Compact, st.sampled_from(NAMES), st.integers(1, 3)),
    st.just(Mend()),
    st.builds(Run, st.just("hours"), kills),
    st.builds(Run, st.sampled_from(NAMES), kills),
    st.builds(Run, st.sampled_from(("days", "weeks")), kills),
    st.builds(Force, st.sampled_from(NAMES), _back, st.integers(1, 30), kills),
    st.builds(Decide, st.sampled_from(NAMES), st.sampled_from(["rewind", "reset", "replace"]), st.integers(1, 3)),
    st.builds(Units, st.integers(1, 3)),
    st.builds(Between, st.integers(1, 24), st.booleans(), kills),
)  # fmt: skip

configs = st.fixed_dictionaries(
    {
        "days": st.sampled_from(
            [
                {},
                {},
                {"incomplete": "load"},
                {"incomplete": {"load_after": "PT6H"}},
                {"parallelism": 2},
                {"checkpoint": {"interval_windows": 1}},
            ]
        ),
        "waits_for_weather": st.sampled_from([False, False, True]),
        "day_units": st.sampled_from([(), UNITS]),
        "hours": st.sampled_from([{}, {"grace": "P1D"}, {"parallelism": 20}]),
    }
)


@dataclass
class World:
    """A chain, and all that is promised of it."""

    chain: Chain
    changed: int = 0
    trace: list[str] = field(default_factory=list)
    checked: set[str] = field(default_factory=set)

    def act(self, action: Any) -> None:
        """Let something happen, and check everything."""
        if getattr(action, "name", "") == WEATHER and not self.chain.waits_for_weather:
            action = replace(action, name="hours")
        self.trace.append(f"{action!r}: {self._act(action)}")
        note(self.trace[-1])
        self.check()

    def _act(self, action: Any) -> object:
        chain = self.chain
        match action:
            case Wait(hours):
                return self._pass(hours)
            case Change(unit, back):
                self._change(unit, self._ago(back))
            case Break(unit, back, count):
                first = self._ago(back)
                chain.scene.broken |= {source_key(unit, hour) for hour in range(first, first + count)}
            case Mend():
                chain.scene.broken.clear()
            case Run(name, kill):
                chain.scene.kill = kill
                return self._run(name)
            case Cycle(hours, dies, kill):
                self._pass(hours)
                return ", ".join(self._run_dying(name, kill if name == dies else None) for name in self.names)
            case Correct(unit, back, kill):
                self._change(unit, self._ago(back))
                chain.scene.kill = kill
                return self._run("hours", self._forced(back, 1))
            case Force(name, back, count, kill):
                chain.scene.kill = kill
                return self._run(name, self._forced(back, count))
            case Decide():
                return self._decide(action)
            case Compact(name, keep):
                policy = RetentionPolicy(keep, timedelta(0))
                compact_log(chain.platform().log, name, chain.newest(name), policy, datetime.now(UTC))
            case Units(count):
                chain.units = UNITS[:count]
            case Between(back, empties, kill):
                self._pass(24)
                self._run("hours")
                self._change("EWR", self._ago(back))
                again = self._anew if empties else self._again
                chain.scene.meanwhile = lambda: again(back, kill)
                done = self._run("days")
                chain.scene.meanwhile = None
                return done
        return "done"

    @property
    def names(self) -> tuple[str, ...]:
        """The dataflows, each after those that it reads."""
        return ("hours", WEATHER, "days", "weeks") if self.chain.waits_for_weather else CHAIN

    def _pass(self, hours: int) -> str:
        self.chain.now = min(self.chain.now + (at(hours) - at(0)), at(_LAST + 1))
        return f"it is {self.chain.now:%d %H:%M}"

    def _run_dying(self, name: str, kill: tuple[str, str, int] | None) -> str:
        self.chain.scene.kill = kill
        return self._run(name)

    def _ago(self, back: int) -> int:
        passed = int((self.chain.now - at(0)).total_seconds() // 3600)
        return max(0, passed - back)

    def _change(self, unit: str, hour: int) -> None:
        self.changed += 1
        self.chain.arrive(unit, hour, 10_000 + self.changed)

    def _forced(self, back: int, count: int) -> Forced:
        _, start = key_of("EWR", self._ago(back))
        return Forced(WorkUnitSelection(((start, start + count * HOUR),)))

    def _again(self, back: int, kill: tuple[str, str, int] | None) -> None:
        self.chain.scene.kill = kill
        self._run("hours", self._forced(back, 1))

    def _anew(self, back: int, kill: tuple[str, str, int] | None) -> None:
        self._decide(Decide("hours", "replace"))
        self.chain.scene.broken.add(key_of("EWR", self._ago(back)))
        self.chain.scene.kill = kill
        self._run("hours")

    def _run(self, name: str, request: Any = DUE) -> str:
        outcome = self.chain.run(name, request)
        if outcome is None:
            return "killed"
        if outcome.error is not None:
            assert name in ("hours", WEATHER), outcome.error.message
            assert outcome.error.code == "failed_units", outcome.error.message
        return f"{outcome.status}, {[commit.entry.number for commit in outcome.committed]}"

    def _decide(self, action: Decide) -> str:
        flow, newest = self.chain.flows[action.name], self.chain.newest(action.name)
        to = max(0, newest.number - action.back) if newest else 0
        make = {
            "rewind": decisions.rewind("any", to, replace=True),
            "reset": decisions.reset("any"),
            "replace": decisions.reset("any", replace=True),
        }[action.what]
        try:
            return f"entry {decisions.decide(self.chain.platform(), flow, make, 'any').number}"
        except StrandlineError as error:
            return f"refused: {error.message}"

    # What is promised

    def check(self) -> None:
        """Hold tables and ledgers against the batch query."""
        self._check_ledger("days", "hours")
        self._check_ledger("weeks", "days")
        if self.chain.days.get("incomplete", "wait") == "wait":
            self._check_complete()

    def _check_ledger(self, name: str, upstream: str) -> None:
        """What a ledger counts as loaded equals the batch query over the table above."""
        rows = dict(self.chain.rows(name))
        assert len(rows) == len(self.chain.rows(name)), "a row is there twice"
        recorded = self.chain.expected(name, self.chain.rows(upstream))
        newest = self.chain.expected(name, self.chain.newest_rows(upstream))
        for unit, cells in recorded.items():
            for cell, total in cells.items():
                # A run may have read a commit whose process died before its entry.
                assert rows.get(cell, 0) in (total, newest[unit][cell]), (name, cell)

    def _check_complete(self) -> None:
        """No new slice of days or weeks has read a window of which the table above lacked a part."""
        log = self.chain.platform().log
        for name, upstream in (("days", "hours"), ("weeks", "days")):
            entry = self.chain.newest(name)
            if entry is None or entry.why != "run" or entry.file_list is None or entry.id in self.checked:
                continue
            self.checked.add(entry.id)
            stored = log.get_list(entry.file_list, WORK_UNITS)
            table = self.chain.root / "lake" / self.chain.flows[upstream].table
            cells = {cell for cell, _ in cells_of(table, stored.head["read_from"])}
            for work in loaded_units(stored):
                assert self._needed(name, work) <= cells, (name, work)
                if name == "days" and self.chain.waits_for_weather:
                    self._check_weather(entry, work)

    def _check_weather(self, entry: Entry, work: WorkUnit) -> None:
        """A day has read a version of the weather with all of its hours."""
        version = (entry.inputs or {})[WEATHER]
        assert isinstance(version, int)
        cells = {cell for cell, _ in cells_of(self.chain.root / "lake/bronze/weather", version)}
        hours = range(work.start or 0, work.end or 0, HOUR)
        assert {cell_of("{}", hour) for hour in hours} <= cells, work

    def _needed(self, name: str, work: WorkUnit) -> set[str]:
        """Return the cells above that a window needs; hours that may have no row are left out."""
        start, end = work.start or 0, work.end or 0
        if name == "weeks":
            units = self.chain.day_units or ("",)
            return {cell_of(unit_of(unit), day) for unit in units for day in range(start, end, 24 * HOUR)}
        own = unit_from(work.unit).get("airport")
        units = (own,) if own else self.chain.units
        first = key_of("EWR", 0)[1]
        return {
            cell_of(unit_of(unit), hour)
            for unit in units
            for hour in range(start, end, HOUR)
            if has_row(unit, (hour - first) // HOUR)
        }

    def rest(self) -> None:
        """Mend everything and run until nothing is due: then nothing is stale and nothing waits."""
        chain = self.chain
        chain.scene.broken.clear()
        chain.units = UNITS
        for name in self.names:
            for _ in range(60):
                plan = chain.plan(name)
                if not [work for slice_ in plan.slices for work in slice_.works if work.reason != "grace"]:
                    break
                self._run(name)
                self.check()
            else:
                raise AssertionError(f"{name} never comes to rest: {plan.why}")
            if plan.slices:
                self._run(name)
        self.check()
        if any(chain.plan(name).slices for name in ("days", "weeks")):
            for name in ("days", "weeks"):
                while chain.plan(name).slices:
                    self._run(name)
        for name in ("days", "weeks"):
            assert chain.plan(name).waiting_for_upstream == 0, chain.plan(name).why
            assert (chain.ledger(name).missing, chain.ledger(name).outdated) == ([], []), name
        self.check()
        self._check_whole("days", "hours")
        self._check_whole("weeks", "days")

    def _check_whole(self, name: str, upstream: str) -> None:
        """A table holds the batch query over all windows, and nothing else."""
        expected = {
            cell: total
            for cells in self.chain.expected(name, self.chain.rows(upstream)).values()
            for cell, total in cells.items()
            if total
        }
        assert {cell: total for cell, total in self.chain.rows(name) if start_of(cell) >= 0} == expected


def has_row(unit: str, hour: int) -> bool:
    """Return whether an hour has a row from the beginning; a change may add one to others."""
    return (hour + UNITS.index(unit)) % 5 != 0


def source_key(unit: str, hour: int) -> tuple[str, int]:
    """Return the key of an hour at the source, of a unit or of the weather, which has none."""
    _, start = key_of(unit, hour)
    return (NO_UNIT if unit == WEATHER else key_of(unit, hour)[0], start)


def unit_of(name: str) -> str:
    """Return the identity of a unit; of the days without units, if it has no name."""
    return canonical({"airport": name} if name else {})


@contextmanager
def world(config: dict[str, Any]) -> Iterator[World]:
    """Yield a world in memory whose processes count as dead once they are killed."""
    root = Path(mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
    chain = Chain(root, UNITS, **config)
    for hour in range(_LAST):
        for number, unit in enumerate(UNITS):
            if has_row(unit, hour):
                chain.arrive(unit, hour, number + 1)
        chain.scene.values[source_key(WEATHER, hour)] = [1]
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(holder, "is_alive", lambda *asked: False)
            yield World(chain)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def play(schedule: Sequence[Any], config: dict[str, Any]) -> None:
    """Play a schedule, and come to rest."""
    with world(config) as played:
        for action in schedule:
            played.act(action)
        played.rest()


_HEALTH: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}


@given(schedule=st.lists(actions, min_size=4, max_size=10), config=configs)
@settings(max_examples=12, **_HEALTH)
def test_a_ledger_of_a_chain_counts_what_equals_the_batch_query(
    schedule: list[Any], config: dict[str, Any]
) -> None:
    play(schedule, config)


@pytest.mark.full
@pytest.mark.timeout(900)
@given(schedule=st.lists(actions, min_size=6, max_size=25), config=configs)
@settings(max_examples=150, **_HEALTH)
def test_a_long_chain_comes_to_rest_without_a_stale_window(
    schedule: list[Any], config: dict[str, Any]
) -> None:
    play(schedule, config)
