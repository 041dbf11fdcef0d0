"""Any order of arrivals, late arrivals, runs, crashes, overlaps, broken files, sweeps and rewinds: every row is there once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from partitions.errors import ConfigurationError, StrandlineError
from resources.kinds import all_decisions as decisions
from resources.kinds.path.late import late_step
from resources.listing import Budget
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from resources.watermarks import holder
from tests.support.feed import NOW, Feed
from tests.support.steps import Killed

pytestmark = pytest.mark.full

_PARTITIONS = ("date=2026-01-01", "date=2026-01-02")


@dataclass(frozen=True)
class Arrive:
    """Files come, each after the last one in order."""

    files: int
    broken: bool

    def __str__(self) -> str:
        return f"{self.files} files arrive{', and a broken one' if self.broken else ''}"


@dataclass(frozen=True)
class Run:
    """A run; it may die at a step, or another one may run in it there, which may take it for dead.

    Attributes:
        step: where something happens; None is a quiet run.
        times: at which occurrence of the step.
        other: whether another run runs there, instead of the crash.
        mistaken: whether that one takes this one for dead.
    """

    step: Step | None
    times: int
    other: bool
    mistaken: bool

    def __str__(self) -> str:
        where = f" at {self.step} {self.times}" if self.step else ""
        what = (
            "a run"
            if not self.step
            else "another run takes over"
            if self.mistaken and self.other
            else "another run"
            if self.other
            else "a crash"
        )
        return f"{what}{where}"


@dataclass(frozen=True)
class ArriveLate:
    """Files come that sort before others that are there."""

    files: int

    def __str__(self) -> str:
        return f"{self.files} files arrive late"


@dataclass(frozen=True)
class Sweep:
    """A step of the late-file sweep; it may die at a step of the load that it starts."""

    pages: int | None
    step: Step | None

    def __str__(self) -> str:
        return f"a sweep of {self.pages or 'all'} pages{f', which dies at {self.step}' if self.step else ''}"


@dataclass(frozen=True)
class Rewind:
    """Back to an older entry, with replace; how far is a share of the history."""

    share: float

    def __str__(self) -> str:
        return f"a rewind over {self.share:.0%} of the history"


Action = Arrive | ArriveLate | Run | Sweep | Rewind

arrivals = st.builds(Arrive, st.integers(1, 3), st.sampled_from([False, False, True]))
runs = st.builds(Run, st.none() | st.sampled_from(Step), st.integers(1, 2), st.booleans(), st.booleans())


others = (
    st.builds(ArriveLate, st.integers(1, 2))
    | st.builds(Sweep, st.none() | st.integers(1, 2), st.none() | st.sampled_from(Step))
    | st.builds(Rewind, st.floats(0, 1))
)


def schedules(most: int) -> st.SearchStrategy[list[Action]]:
    """Something comes, something runs, and then whatever may come."""
    more = st.lists(arrivals | runs | others, min_size=1, max_size=most)
    return st.tuples(arrivals, runs, more).map(lambda parts: [parts[0], parts[1], *parts[2]])


@dataclass
class World:
    """A dataflow, and what should be in its table in the end."""

    feed: Feed
    _ids: Iterator[int] = field(default_factory=lambda: count(1))
    _broken: list[str] = field(default_factory=list)
    put: list[int] = field(default_factory=list)

    def arrive(self, arrival: Arrive) -> None:
        """Put files above all that are there."""
        for _ in range(arrival.files):
            number = self._next()
            self.feed.put(self._path(number), number)
        if arrival.broken:
            number = self._next()
            path = f"{self._path(number)}.gz"
            self.feed.put_bytes(path, b"not gzip")
            self._broken.append(path)

    def arrive_late(self, arrival: ArriveLate) -> None:
        """Put files whose names sort between others."""
        for _ in range(arrival.files):
            number = next(self._ids)
            self.put.append(number)
            at = self.put[0] if len(self.put) < 3 else self.put[len(self.put) // 2]
            self.feed.put(f"{self._path(at)[:-7]}-late-{number:03}.ndjson", number)

    def sweep(self, sweep: Sweep) -> bool:
        """Go a step of the sweep; returns whether a round is over."""

        def observer(step: Step, line: str) -> None:
            if step is sweep.step:
                raise Killed

        feed = self.feed
        try:
            return late_step(
                feed.platform, feed.dataflow, NOW, Budget(pages=sweep.pages), observer=observer
            ).step.complete
        except Killed:
            return False
        except StrandlineError as error:
            note(f"  {error}")
            if error.code not in ("bad_file", "held", "conflict"):
                raise
            return False

    def rewind(self, rewind: Rewind) -> None:
        """Rewind, where there is a state."""
        entries = self.feed.entries
        if entries:
            to = int((1 - rewind.share) * len(entries))
            feed = self.feed
            making = decisions.rewind("any", to, replace=True)
            try:
                decisions.decide(feed.platform, feed.dataflow, making, "any")
            except ConfigurationError as error:  # nothing was written yet, so no table tells its columns
                note(f"  {error}")
                if "no table" not in error.message:
                    raise

    def mend(self) -> None:
        """Put what the broken files should have held."""
        for path in self._broken:
            self.feed.put(path, int(Path(path).name.split(".")[0]))

    def run(self, run: Run) -> None:
        """Run, and let happen what shall."""
        seen: list[Step] = []

        def observer(step: Step, line: str) -> None:
            seen.append(step)
            if step is run.step and seen.count(step) == run.times:
                if not run.other:
                    raise Killed
                self._beside(run.mistaken)

        try:
            outcome = self.feed.run(observer)
        except Killed:
            return
        note(f"  {outcome.status}, {outcome.error}")
        assert outcome.error is None or outcome.error.code in ("bad_file", "held", "conflict")

    def _beside(self, mistaken: bool) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if mistaken:
                patch.setattr(holder, "is_alive", lambda *asked: False)
            self.feed.run()

    def _next(self) -> int:
        self.put.append(next(self._ids))
        return self.put[-1]

    def _path(self, number: int) -> str:
        return f"{_PARTITIONS[number > 4]}/{number:03}.ndjson"


def _check(feed: Feed, schedule: list[Action]) -> None:
    world = World(feed)
    for action in schedule:
        note(str(action))
        match action:
            case Arrive():
                world.arrive(action)
            case ArriveLate():
                world.arrive_late(action)
            case Run():
                world.run(action)
            case Sweep():
                world.sweep(action)
            case Rewind():
                world.rewind(action)
        ids = feed.ids
        assert len(ids) == len(set(ids)), "nothing is there twice"
        assert set(ids) <= set(world.put)
    world.mend()
    assert feed.run().error is None
    for _ in range(2):  # a round that is on its way may have passed what came behind it
        while not world.sweep(Sweep(None, None)):
            pass
    assert feed.run().error is None
    assert feed.ids == sorted(world.put)
    assert feed.open_intent is None
    assert feed.run().status == "nothing"
    entries = feed.entries
    assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
    assert (entries[-1].total_rows if entries else 0) == len(world.put)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("schedules")


def _feed(home: Path, engine: SparkEngine, scope: str) -> Feed:
    shutil.rmtree(home / "project", ignore_errors=True)
    definition = {"watermark": {"scope": scope, "checkpoint": {"interval_files": 2}}}
    return Feed(home / "project", engine, definition)


_SLOW: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}


@given(schedule=schedules(4))
@settings(max_examples=4, **_SLOW)
def test_any_schedule_loads_every_row_once(home: Path, engine: SparkEngine, schedule: list[Action]) -> None:
    _check(_feed(home, engine, "global"), schedule)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scope", ["global", "partition"])
@given(schedule=schedules(10))
@settings(max_examples=10, **_SLOW)
def test_any_long_schedule_loads_every_row_once(
    home: Path, engine: SparkEngine, scope: str, schedule: list[Action]
) -> None:
    _check(_feed(home, engine, scope), schedule)
