"""``strandline watch``: one process that stays, looks for new work every few seconds, and runs it in itself."""

from __future__ import annotations

import json
import math
import os
import select
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from socket import socket
from threading import Condition, Thread
from typing import TYPE_CHECKING, NamedTuple

import click

from partitions.dataflow import Dataflow
from partitions.errors import SourceError, StrandlineError, in_one_line
from partitions.pauses import RetryBackoff
from partitions.plan import lasting
from platform_assets.cli import resident
from platform_assets.cli.context import Context, shared
from platform_assets.cli.main import report
from platform_assets.cli.run import load
from platform_assets.cli.running import Runner, Turns, instance, print_outcome, say
from platform_assets.cli.signals import signalled
from platform_assets.dagster_home import at_home
from platform_assets.factory.in_flight import in_flight
from platform_assets.factory.sensors import NO_PROGRESS
from platform_assets.kinds import profile_of
from platform_assets.kinds.profile import ListsNewFiles
from platform_assets.project import Project, load_project
from resources.spark.errors import EngineLost

if TYPE_CHECKING:
    from dagster import DagsterInstance
    from watchdog.events import FileSystemEvent

    from resources.outcome import Outcome
    from resources.watermarks.entry import Entry

_SETTLED = 0.1
"""Seconds after a file's event in which others may come that are loaded with it."""

_LOOKERS, _PATIENCE, _SLOW = 8, 1.0, 30.0
"""Sources that are looked at beside each other; seconds that a look waits for them, and after which one that has not answered, or a run of others that is not over, is told of."""

_CALLERS = 8
"""Calls of `strandline run` that are answered beside each other."""


@click.command("watch")
@click.argument("names", nargs=-1)
@click.option(
    "--every", default=2.0, show_default=True, type=click.FloatRange(0.1), help="Seconds between two looks."
)
@click.option(
    "--runs",
    default=4,
    show_default=True,
    type=click.IntRange(1),
    help="Dataflows that are loaded beside each other, at most.",
)
@shared
def command(context: Context, names: tuple[str, ...], every: float, runs: int) -> int:
    """Load what arrives, seconds after it came. Ctrl-C ends it, after the runs that are under way."""
    if context.now is not None:
        raise click.UsageError("--now: a process that stays goes by this machine's clock")
    context.dataflows(names)  # what is wrong with the names or the settings is told before anything is opened
    folder = context.project.folder
    with ExitStack() as stack:
        bell = stack.enter_context(_bell())
        ended = stack.enter_context(signalled(bell.ring))
        # Before Dagster's tables are made: two that make them in the same moment break each other's.
        stack.enter_context(resident.alone(folder))
        home = stack.enter_context(at_home(folder))
        # Its tables are there before anybody is answered.
        dagster = stack.enter_context(instance(folder, captures=False))
        assert dagster is not None, "at_home has set DAGSTER_HOME"
        stack.enter_context(resident.speaking_by_threads())
        listener = stack.enter_context(resident.listening(folder))
        watch = Watch(context, names, dagster, runs, bell.ring)
        stack.callback(watch.end)
        events = stack.enter_context(_FileEvents.ringing(bell))
        with suppress(OSError):
            click.echo(f"watching {', '.join(watch.names)}, every {every:g} s; Dagster's runs: {home}")

        def stay() -> None:
            while not ended.is_set():
                looked = time.monotonic()
                watch.look(ended.is_set)
                events.follow(watch.folders)
                while not ended.is_set() and (left := looked + every - time.monotonic()) > 0:
                    called, rang = bell.wait(left, listener)
                    if called and listener is not None:
                        watch.take(listener.accept()[0])
                    if rang:
                        time.sleep(_SETTLED)
                        break

        stay()
    return 0


@dataclass
class Watch:
    """Looks for work of some dataflows of a project, and runs it; pauses after failures as sensors do.

    Runs are made in threads of their own, so that a long one holds up no other dataflow, but those downstream of it.

    Attributes:
        context: of the command.
        asked: the names of the dataflows; none are all.
        instance: Dagster's, which the runs are told.
        at_once: dataflows that are loaded beside each other.
        ring: called when a run is over, or has loaded something: there may be work that has waited for it.
    """

    context: Context
    asked: Sequence[str]
    instance: DagsterInstance
    at_once: int
    ring: Callable[[], None]
    _turns: Turns = field(default_factory=Turns)
    _under_way: dict[str, _Run] = field(default_factory=dict)
    _attempts: dict[str, RetryBackoff] = field(default_factory=dict)
    _said: dict[str, str] = field(default_factory=dict)
    _awaited: dict[str, tuple[str, float]] = field(default_factory=dict)
    _wakes: Iterator[int] = field(default_factory=partial(count, 1))
    _woken: dict[str, int] = field(default_factory=dict)
    _taken: tuple[object, Project, Runner] = field(init=False)
    _seen: object = None
    _refused: object = None

    def __post_init__(self) -> None:
        """Load the project once more: its files may have changed since the command began."""
        # Not in the main thread: Dagster would take signals for itself while it runs something, and break that off.
        self._workers = ThreadPoolExecutor(self.at_once, thread_name_prefix="strandline-run")
        self._callers = ThreadPoolExecutor(_CALLERS, thread_name_prefix="strandline-call")
        folder = self.context.project.folder
        self._seen = _state_of(folder)
        self._looks = _Looks(self._find)
        self._take(self._seen, load_project(folder))

    @property
    def _project(self) -> Project:
        return self._taken[1]

    @property
    def _runner(self) -> Runner:
        return self._taken[2]

    @property
    def names(self) -> list[str]:
        """Return the names of the dataflows that are watched, each after those whose tables it reads."""
        return self._runner.platform.lineage.in_order(list(self._flows))

    @property
    def folders(self) -> set[Path]:
        """Return the folders of this machine in which files may appear."""
        places = [
            self._place(flow) for flow in self._flows.values() if isinstance(profile_of(flow), ListsNewFiles)
        ]
        return {place for place in places if place is not None and _is_folder(place)}

    def look(self, ended: Callable[[], bool] = lambda: False) -> None:
        """Look once at each dataflow that is not being loaded, and begin to run what is worth a run, until the user ends the command.

        A source that does not answer is left to a later look, so that it keeps no other dataflow waiting.
        """
        self._read_again()
        self._take_back()
        found = self._looks.ask([flow for name, flow in self._flows.items() if name not in self._under_way])
        for name in self.names:
            if ended():
                return
            if name in found and not self._waits(name):
                self._take_up(self._flows[name], found[name])
        for name, seconds in self._looks.slow():
            self._say_once(
                name,
                f"its source has not answered for {lasting(_doubled(seconds))}; the other dataflows continue",
            )

    def take(self, caller: socket) -> None:
        """Answer a call of ``strandline run`` beside all else; one that has given up runs alone."""
        if resident.hear(caller):
            self._callers.submit(resident.serve, caller, self._answer)
        else:
            caller.close()

    def end(self) -> None:
        """Wait for what is under way, and tell of it."""
        self._callers.shutdown()
        self._workers.shutdown(cancel_futures=True)  # of those that have not begun
        self._take_back()

    def _answer(self, context: Context, names: Sequence[str]) -> int | None:
        """Do what a call of ``strandline run`` asks for, and return its exit code; None if it asks for what is not watched, whose jars Spark may lack here."""
        if self.asked and not (names and set(names) <= set(self.asked)):
            return None
        taken, project, runner = self._taken
        try:
            if _state_of(project.folder) != taken:  # edited just now: what is asked for is what is there
                project = load_project(project.folder)
                runner = self._runner_of(project, list(project.dataflows.values()))
            context.__dict__["project"] = project
            flows = context.dataflows(names)
            return load(context, runner, flows, everything=not names)
        except Exception as error:  # noqa: BLE001 - whoever asked is told, and this process stays
            return report(error, context)

    def _find(self, flow: Dataflow) -> _Found:
        """Look at one dataflow; of what cannot be seen now the error is the answer."""
        runner, now, woken = self._runner, datetime.now(UTC), self._woken.get(flow.name, 0)
        try:
            entry = runner.platform.log.newest(flow.name)
            what = self._work(runner, flow, now, woken)
            waits = runner.platform.waits_for_upstream(flow) if what and flow.run_after_upstream else ""
            return _Found(now, entry, what, SourceError(waits) if waits else None, woken)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one source, the others are looked at
            return _Found(now, error=error)

    def _take_up(self, flow: Dataflow, found: _Found) -> None:
        """Run what a look has found, unless it is to wait, or a sensor's run has it. What goes wrong is told, and ends nothing."""
        try:
            self._run(flow, found)
        except StrandlineError as error:
            self._say_once(flow.name, error.message)
        except Exception as error:  # noqa: BLE001 - Dagster's storage may be locked or full, say
            self._say_once(flow.name, f"{type(error).__name__}: {in_one_line(str(error))}")

    def _waits(self, name: str) -> bool:
        """Return whether a dataflow is to be loaded after one that is being loaded now: what it reads is about to change."""
        above = self._runner.platform.lineage.all_upstream_dataflows(name)
        return self._flows[name].run_after_upstream and not self._under_way.keys().isdisjoint(above)

    def _run(self, flow: Dataflow, found: _Found) -> None:
        if found.error is not None:
            raise found.error
        if not found.what:
            self._calm(flow.name, found.woken)
            return
        now, entry = found.time, found.entry
        before = self._attempts.get(flow.name, RetryBackoff())
        progress = entry.id if entry and entry.why not in NO_PROGRESS else before.done
        if before.wait(progress, found.what, now.timestamp()) > 0:
            return
        busy = in_flight(self.instance, self._runner.platform.log, flow.name, now.timestamp())
        if busy is not None:
            # A sensor's, say, or one that was asked for: it loads this, or the next look finds it again.
            self._await(flow.name, busy.reason)
            return
        outcome = self._workers.submit(self._runner.run, flow)
        attempts = before.next(progress, found.what, now.timestamp())
        self._under_way[flow.name] = _Run(outcome, attempts, found.woken)
        outcome.add_done_callback(lambda _: self.ring())

    def _await(self, name: str, reason: str) -> None:
        """Wait for a run in flight; one that takes long is told of: it may wait for a daemon that is gone."""
        before, since = self._awaited.get(name, ("", 0.0))
        if reason != before:
            self._awaited[name] = reason, time.monotonic()
        elif time.monotonic() - since >= _SLOW:
            self._say_once(
                name,
                f"{reason}, and what is new waits for its end; if nothing works on it, terminate it in Dagster's UI",
            )

    def _take_back(self) -> None:
        """Take note of runs that are over, and tell of them.

        Raises:
            EngineLost: if this process has no engine any more.
        """
        for name in [name for name, run in self._under_way.items() if run.outcome.done()]:
            run = self._under_way.pop(name)
            if run.outcome.cancelled():
                continue
            try:
                self._take_note(name, run.outcome.result(), run)
            except EngineLost:
                raise
            except Exception as error:  # noqa: BLE001 - Dagster's storage may be locked or full, say
                self._attempts[name] = run.attempts
                self._say_once(name, f"{type(error).__name__}: {in_one_line(str(error))}")

    def _take_note(self, name: str, outcome: Outcome, run: _Run) -> None:
        if outcome.status != "held":
            self._attempts[name] = run.attempts
        if outcome.error is None or outcome.committed:
            # What fails of a run that has loaded something must not have all else read again.
            self._calm(name, run.woken)
        if self.context.as_json:
            line = self._project.hide(json.dumps(outcome.as_json(), allow_nan=False))
            with suppress(OSError):  # whoever reads is gone; loading goes on
                click.echo(line, file=self.context.results)
        elif outcome.error is None:
            self._said.pop(name, None)
            print_outcome(self.context, outcome)
        else:
            self._say_once(name, outcome.error.message)
        if isinstance(outcome.error, EngineLost) and self._runner.platform.spark.remote is None:
            raise outcome.error  # Java is started once in a process

    def _wake_below(self, outcome: Outcome) -> None:
        """Have all be loaded that is due of the dataflows that read what a run of this process has loaded."""
        if outcome.committed:
            lineage = self._runner.platform.lineage
            self._wake(
                below for below in self._flows if outcome.dataflow in lineage.upstream_dataflows(below)
            )
            self.ring()

    def _wake(self, names: Iterable[str]) -> None:
        for name in names:
            self._woken[name] = next(self._wakes)

    def _calm(self, name: str, woken: int) -> None:
        """Take note that a dataflow has read what it was woken for; if it was woken again since, that is still to be read."""
        if self._woken.get(name) == woken:
            self._woken.pop(name, None)

    def _work(self, runner: Runner, flow: Dataflow, now: datetime, woken: int) -> str:
        """Return what is worth a run; of a dataflow whose upstream has loaded something all that is due, as its sensor does."""
        platform = runner.platform
        if woken and flow.run_after_upstream:
            plan = platform.plan(flow, now)
            return repr((woken, [slice_.upper for slice_ in plan.slices])) if plan.slices else ""
        return profile_of(flow).worth_a_run(platform, flow, platform.log.newest(flow.name), now)

    def _place(self, flow: Dataflow) -> Path | None:
        with suppress(StrandlineError):
            return self._runner.platform.root_of(flow).local
        return None

    def _read_again(self) -> None:
        """Take changed project files that two looks have found alike; while the settings have errors, what was read before goes on."""
        seen, self._seen = self._seen, _state_of(self._project.folder)
        if self._seen in (self._taken[0], self._refused) or self._seen != seen:
            return
        try:
            project = load_project(self._project.folder)
            _ = project.settings
            self._take(self._seen, project)
        except StrandlineError as error:
            self._refused = self._seen
            self._say_once("platform.yaml", error.message)

    def _take(self, state: object, project: Project) -> None:
        for name in project.broken:
            self._say_once(name, "its file has errors; run `strandline validate`")
        flows = project.dataflows
        self._flows = {name: flow for name, flow in flows.items() if not self.asked or name in self.asked}
        self._taken = state, project, self._runner_of(project, list(self._flows.values()))
        lineage = self._runner.platform.lineage
        self._wake(name for name, flow in self._flows.items() if lineage.upstream_tables(flow))

    def _runner_of(self, project: Project, flows: Sequence[Dataflow]) -> Runner:
        return Runner(project, flows, self.instance, turns=self._turns, done=self._wake_below)

    def _say_once(self, name: str, what: str) -> None:
        """Say something of a dataflow, unless it was the last that was said of it."""
        if self._said.get(name) != what:
            self._said[name] = what
            say(f"{name}: {self._project.hide(what)}")


class _Found(NamedTuple):
    """What a look at one dataflow has found.

    Attributes:
        time: of the look.
        entry: the newest.
        what: is worth a run, or "".
        error: why nothing is known.
        woken: tells which load upstream had all that is due looked for; 0: none.
    """

    time: datetime
    entry: Entry | None = None
    what: str = ""
    error: Exception | None = None
    woken: int = 0


class _Run(NamedTuple):
    """A run that is under way.

    Attributes:
        outcome: of the run, once it is over.
        attempts: to do this work, with this one.
        woken: as it was found.
    """

    outcome: Future[Outcome]
    attempts: RetryBackoff
    woken: int = 0


class _Looks:
    """Looks at dataflows in threads of its own, which end with the process whatever they wait for."""

    def __init__(self, find: Callable[[Dataflow], _Found]) -> None:
        self._find = find
        self._asked: SimpleQueue[Dataflow] = SimpleQueue()
        self._since: dict[str, float] = {}
        self._found: dict[str, _Found] = {}
        self._news = Condition()
        for number in range(_LOOKERS):
            Thread(target=self._look, name=f"strandline-look-{number}", daemon=True).start()

    def ask(self, flows: Sequence[Dataflow]) -> dict[str, _Found]:
        """Look at those that are not being looked at, and return by name what was found within a second, or since the last call."""
        with self._news:
            new = [flow for flow in flows if flow.name not in self._since]
            self._since |= dict.fromkeys((flow.name for flow in new), time.monotonic())
            for flow in new:
                self._asked.put(flow)
            self._news.wait_for(lambda: not any(flow.name in self._since for flow in new), _PATIENCE)
            found, self._found = self._found, {}
            return found

    def slow(self) -> list[tuple[str, float]]:
        """Return the dataflows that were asked for long ago and have not answered, with the seconds."""
        with self._news:
            now = time.monotonic()
            return [(name, now - since) for name, since in self._since.items() if now - since >= _SLOW]

    def _look(self) -> None:
        while True:
            flow = self._asked.get()
            found = self._find(flow)
            with self._news:
                self._found[flow.name] = found
                self._since.pop(flow.name, None)
                self._news.notify_all()


class _Bell:
    """Wakes the command: for a signal, or a file."""

    def __init__(self) -> None:
        self._hears, self._rings = os.pipe()
        os.set_blocking(self._rings, False)

    def ring(self) -> None:
        with suppress(BlockingIOError):  # it rings already
            os.write(self._rings, b".")

    def wait(self, seconds: float, also: socket | None) -> tuple[bool, bool]:
        """Return whether somebody calls at the socket, and whether the bell rang, within so many seconds."""
        watched: list[int] = [self._hears, *([also.fileno()] if also is not None else [])]
        ready, _, _ = select.select(watched, [], [], seconds)
        rang = self._hears in ready
        if rang:
            os.read(self._hears, 1 << 16)
        return also is not None and also.fileno() in ready, rang

    def close(self) -> None:
        os.close(self._hears)
        os.close(self._rings)


@contextmanager
def _bell() -> Iterator[_Bell]:
    bell = _Bell()
    try:
        yield bell
    finally:
        bell.close()


class _FileEvents:
    """Rings the bell when a file was written or moved into a folder; where the system tells nothing, looks every few seconds are all."""

    def __init__(self, bell: _Bell) -> None:
        from watchdog.observers import Observer

        self._bell, self._observer, self._followed = bell, Observer(), set[Path]()

    @classmethod
    @contextmanager
    def ringing(cls, bell: _Bell) -> Iterator[_FileEvents]:
        events = cls(bell)
        events._observer.start()
        try:
            yield events
        finally:
            events._observer.stop()
            events._observer.join()

    def follow(self, folders: set[Path]) -> None:
        """Follow these folders, too."""
        for folder in folders - self._followed:
            with suppress(OSError):  # too many of them for the system
                self._observer.schedule(self, str(folder), recursive=True)  # type: ignore[arg-type]
            self._followed.add(folder)

    def dispatch(self, event: FileSystemEvent) -> None:
        """Hear of an event; a file that is still open for writing is not there yet."""
        if event.event_type in ("closed", "moved") and not event.is_directory:
            self._bell.ring()


def _doubled(seconds: float) -> float:
    """Return 30 s, 60 s, 120 s and so on, the last that is not longer: what lasts is told less and less often."""
    return _SLOW * 2.0 ** int(math.log2(seconds / _SLOW))


def _is_folder(path: Path) -> bool:
    """Whether there is a folder; one that cannot be looked into, on a share that is gone say, has no events."""
    with suppress(OSError):
        return path.is_dir()
    return False


def _state_of(folder: Path) -> object:
    found = []
    for file in [folder / "platform.yaml", *sorted((folder / "dataflows").glob("**/*.yaml"))]:
        with suppress(OSError):  # removed just now, or not there
            at = file.stat()
            found.append((str(file), at.st_mtime_ns, at.st_size))
    return found
