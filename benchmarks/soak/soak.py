"""Runs the product for minutes with arrivals, kills and store failures; then counts every row.

The last minutes are calm. If a row or anything else is wrong then, the exit code is 1 (docs/explanation/soak.md).
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measure import report
from benchmarks.soak.chaos import DISTURBANCES, Event, planned
from benchmarks.soak.counting import Compared, rows_of
from benchmarks.soak.product import Stopped
from benchmarks.soak.world import World, run_world
from tests.support.ready import NotReady

_STIRRED = 0.8
"""Share of the time with disturbances; the rest is calm."""

_CHORES = 10.0
"""Seconds between two rounds of an operator's commands."""

_LOOK = 5.0
"""Seconds between two checks for quiet."""

_KILLED = ("run", "late", "files")
"""Commands that may be killed; the others change nothing."""


@dataclass
class Soak:
    """One soak.

    Attributes:
        events: arrivals and disturbances, in order.
        patience: the minutes to wait for quiet.
        counts: how often each disturbance happened.
        away: when the store returns, by the clock of the soak, and how; None while it works.
    """

    world: World
    events: Sequence[Event]
    patience: float
    counts: Counter[str] = field(default_factory=Counter)
    started: float = field(default_factory=time.monotonic)
    away: tuple[float, Callable[[], None]] | None = None
    _waiting: list[Event] = field(default_factory=list)
    _to_kill: list[Event] = field(default_factory=list)
    _first_seen: dict[Any, float] = field(default_factory=dict)
    _calm: threading.Event = field(default_factory=threading.Event)

    @property
    def clock(self) -> float:
        """Return the seconds since the beginning."""
        return time.monotonic() - self.started

    def stir(self) -> None:
        """Let all events happen in their time; at the end the store works."""
        operator = threading.Thread(target=self._operate, name="operator")
        operator.start()
        try:
            coming = list(self.events)
            while coming or self.away:
                self.world.product.check()
                self._bring_back()
                while coming and coming[0].at <= self.clock:
                    self._meet(coming.pop(0))
                self._kill()
                time.sleep(0.2)
        finally:
            self._calm.set()
            if self.away:
                self.away[1]()
            operator.join()
        for event in self._waiting:
            self._arrive(event)

    def settle(self) -> tuple[float, list[str]]:
        """Wait until nothing is left to do; return the seconds, and what was left when the patience ended."""
        calm, last_told = time.monotonic(), ""
        while unsettled := self._unsettled():
            self.world.product.check()
            waited = time.monotonic() - calm
            if unsettled[0] != last_told:
                say(self.clock, f"not quiet: {unsettled[0]}")
            last_told = unsettled[0]
            if waited > self.patience * 60:
                return waited, [
                    f"not quiet {waited:.0f} s after the last change: {problem}" for problem in unsettled
                ]
            time.sleep(_LOOK)
        return time.monotonic() - calm, []

    def _meet(self, event: Event) -> None:
        if event.kind == "killed run":
            self._to_kill.append(event)
        elif event.kind == "killed engine":
            if self.world.product.kill_engine():
                self.counts[event.kind] += 1
                say(self.clock, event.kind)
            else:
                say(self.clock, "no engine to kill")
        elif event.kind in ("store paused", "store killed"):
            self._take_away(event)
        elif self.away and event.flow == self.world.arrivals.name:
            self._waiting.append(event)  # writers to the store wait, too
        else:
            self._arrive(event)

    def _arrive(self, event: Event) -> None:
        world = self.world
        if event.kind == "rows":
            world.events.arrive()
        elif event.kind == "correction":
            world.events.correct()
        else:
            files = world.arrivals if event.flow == world.arrivals.name else world.readings
            arrive = {"file": files.arrive, "late file": files.come_late, "bad file": files.come_bad}
            arrive[event.kind](event.at)

    def _take_away(self, event: Event) -> None:
        store = self.world.store
        if self.away:
            return
        if event.kind == "store paused":
            store.pause()
            self.away = self.clock + event.seconds, store.resume
        else:
            store.kill()
            self.away = self.clock + event.seconds, store.start
        self.counts["store outage"] += 1
        say(self.clock, f"{event.kind} for {event.seconds:.0f} s")

    def _bring_back(self) -> None:
        if self.away and self.clock >= self.away[0]:
            self.away[1]()
            self.away = None
            say(self.clock, "the store is back")
            waiting, self._waiting = self._waiting, []
            for event in waiting:
                self._arrive(event)

    def _kill(self) -> None:
        """Kill a run that has reached the age of the next event."""
        if not self._to_kill:
            self._first_seen = {}
            return
        commands = [
            command
            for command in list(self.world.commands.going.values())
            if command[1].split()[0] in _KILLED
        ]
        runs = [*self.world.product.running(), *commands]
        self._first_seen = {run: self._first_seen.get(run, self.clock) for run in runs}
        for run, since in self._first_seen.items():
            age = self.clock - since
            if age >= self._to_kill[0].seconds and run[0].kill():
                self._to_kill.pop(0)
                self.counts["killed run"] += 1
                say(self.clock, f"killed run: {run[1]}, {age:.1f} s after it was seen")
                return

    def _operate(self) -> None:
        """Do an operator's work: look for late files, repair and release quarantined files."""
        while not self._calm.wait(_CHORES):
            self._chores()

    def _chores(self) -> list[str]:
        """Do one round; return the findings and failures."""
        questions, readings = self.world.questions, self.world.readings
        problems = [
            late for name in (self.world.arrivals.name, readings.name) if (late := questions.late(name))
        ]
        if quarantined := questions.quarantined_paths(readings.name):
            for path in quarantined:
                readings.repair(path)
            code = questions.release(readings.name, quarantined).code
            self.counts["released file"] += 0 if code else len(quarantined)
            problems.append(f"{readings.name}: {len(quarantined)} files in quarantine, release: exit {code}")
        return problems

    def _unsettled(self) -> list[str]:
        """Return what is left to do; the cheapest check first."""
        world, questions = self.world, self.world.questions
        if datetime.now(UTC) < world.events.end:
            return [f"the last window ends at {world.events.end:%H:%M} UTC"]
        if to_do := self._chores() or questions.planned(world.names):
            return to_do
        if open_intents := [
            intent
            for name in world.names
            if (intent := questions.open_intent(name, again=name == world.events.name))
        ]:
            return open_intents
        since = max(world.events.changed, world.events.end).isoformat(timespec="milliseconds")
        read = questions.newest_intent_time(world.events.name)
        return [] if read > since else [f"{world.events.name}: read last at {read}, changed at {since}"]

    def judge(self) -> tuple[dict[str, Compared], list[str]]:
        """Count every row and check the product's reports; return all problems."""
        world, questions = self.world, self.world.questions
        compared = {
            files.name: Compared.of(files.expected, rows_of(world.lake, files.name, ["id"]))
            for files in (world.arrivals, world.readings)
        }
        columns = ["id", "at", "unit", "value"]
        compared[world.events.name] = Compared.of(
            world.events.expected, rows_of(world.lake, world.events.name, columns)
        )
        wrong = [
            f"{name}: {problem}" for name, comparison in compared.items() for problem in comparison.problems
        ]
        wrong += [problem for name in world.names for problem in questions.numbers(name)]
        for files in (world.arrivals, world.readings):
            wrong += questions.files(files.name, files.files, len(files.ids))
        wrong += questions.windows(world.events.name, world.events.end.isoformat())
        if unshown := world.product.unshown(world.events.name):
            wrong.append(f"{world.events.name}: Dagster: {unshown}")
        return compared, wrong


def main(arguments: Sequence[str]) -> int:
    """Soak, and report.

    Returns:
        0; 1 if a row or anything else is wrong; 2 if the soak could not continue.
    """
    options = _options(arguments)
    folder = Path(tempfile.mkdtemp(prefix="strandline-soak-"))
    stirred = options.minutes * _STIRRED
    events = planned(options.seed, stirred, options.rate, frozenset(options.spare))
    say(0, f"seed {options.seed}: {len(events):,} events in {stirred:.1f} minutes; all files are in {folder}")
    try:
        with run_world(folder, options.seed, stirred, by_hand=options.cli) as world:
            wrong = _soaked(world, events, options)
    except (Stopped, NotReady) as stopped:
        print(f"soak: {stopped}\nsoak: everything is kept in {folder}")
        return 2
    except KeyboardInterrupt:
        print(f"soak: stopped by the user; everything is kept in {folder}")
        return 130
    for problem in wrong:
        print(f"soak: {problem}")
    if wrong or options.keep:
        print(f"soak: everything is kept in {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if wrong else 0


def _soaked(world: World, events: Sequence[Event], options: argparse.Namespace) -> list[str]:
    ended: list[str] = []
    try:
        world.product.start()
        soak = Soak(world, events, options.patience)
        say(soak.clock, "everything is started")
        soak.stir()
        say(soak.clock, "calm from here on")
        seconds, unsettled = soak.settle()
        compared, wrong = soak.judge()
        runs = world.product.runs()
    finally:
        ended += world.product.stop()
    title = "strandline run --all in a loop" if options.cli else "strandline dev"
    report("soak", _table(soak, compared, seconds, runs), [f"{title}; seed {options.seed}"])
    return unsettled + wrong + ended


def _table(
    soak: Soak, compared: dict[str, Compared], seconds: float, runs: tuple[int, int]
) -> list[dict[str, Any]]:
    """Return a row per count and a column per dataflow; the last column is the sum."""
    world, counts = soak.world, soak.counts
    files = (world.arrivals, world.readings)
    by_flow: dict[str, list[int | None]] = {
        "files": [*(file_source.files for file_source in files), None],
        "late files, late rows": [*(file_source.late for file_source in files), world.events.late],
        "bad files": [*(file_source.bad for file_source in files), None],
        "released files": [None, counts["released file"], None],
        "corrections": [None, None, world.events.corrections],
        "rows expected": [compared[name].expected for name in world.names],
        "rows found": [compared[name].actual for name in world.names],
    }
    rows: list[dict[str, Any]] = [
        {"": name, **dict(zip(world.names, values, strict=True)), "all": sum(count or 0 for count in values)}
        for name, values in by_flow.items()
    ]
    of_all = {
        "killed runs": counts["killed run"],
        "killed engines": counts["killed engine"],
        "store outages": counts["store outage"],
        "runs": runs[0],
        "failed runs": runs[1],
        "seconds until quiet": round(seconds),
    }
    return rows + [{"": name, "all": count} for name, count in of_all.items()]


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5, help="total minutes; the last fifth is calm (5)")
    parser.add_argument("--seed", type=int, default=1, help="seed of all events (1)")
    parser.add_argument(
        "--rate", type=float, default=40, help="arrivals a minute for each dataflow, approximately (40)"
    )
    parser.add_argument(
        "--cli", action="store_true", help="a loop of strandline run --all instead of strandline dev"
    )
    parser.add_argument("--patience", type=float, default=15, help="minutes to wait for quiet (15)")
    parser.add_argument(
        "--spare", action="append", default=[], choices=DISTURBANCES, help="a disturbance to leave out"
    )
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    return parser.parse_args(arguments)


def say(clock: float, text: str) -> None:
    """Print a line of progress."""
    print(f"{clock:6.0f} s  {text}", flush=True)
