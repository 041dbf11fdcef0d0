"""``strandline watch``: one process that stays, looks for new work every few seconds, and runs it in itself."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from socket import socket
from threading import Condition, Thread
from typing import TYPE_CHECKING, NamedTuple

import click

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError, in_one_line
from partitions.pauses import Attempts
from platform_assets.cli import resident
from platform_assets.cli.context import Context, shared
from platform_assets.cli.main import report
from platform_assets.cli.run import load
from platform_assets.cli.running import Runner, instance, print_outcome, say
from platform_assets.cli.signals import signalled
from platform_assets.dagster_home import at_home
from platform_assets.factory.in_flight import in_flight
from platform_assets.factory.sensors import NO_PROGRESS
from platform_assets.kinds import profile_of
from platform_assets.kinds.profile import ListsNewFiles
from platform_assets.project import Project, load_project
from resources.spark import EngineLost

if TYPE_CHECKING:
    from dagster import DagsterInstance
    from watchdog.events import FileSystemEvent

    from resources.watermarks.entry import Entry

_SETTLED = 0.1
"""Seconds after a file's event in which others may come that are loaded with it."""

_LOOKERS, _PATIENCE, _SLOW = 8, 1.0, 30.0
"""Sources that are looked at beside each other; seconds that a look waits for them, and after which one that has not answered is told of."""


@click.command("watch")
@click.argument("names", nargs=-1)
@click.option(
    "--every", default=2.0, show_default=True, type=click.FloatRange(0.1), help="Seconds between two looks."
)
@shared
def command(context: Context, names: tuple[str, ...], every: float) -> int:
    """Load what arrives, seconds after it came. Ctrl-C ends it, after the run that is under way."""
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
        dagster = stack.enter_context(instance(folder))  # its tables are there before anybody is answered
        assert dagster is not None, "at_home has set DAGSTER_HOME"
        listener = stack.enter_context(resident.listening(folder))
        watch = Watch(context, names, dagster)
        events = stack.enter_context(_FileEvents.ringing(bell))
        click.echo(f"watching {', '.join(watch.names)}, every {every:g} s; Dagster's runs: {home}")

        def stay() -> None:
            while not ended.is_set():
                looked = time.monotonic()
                watch.look(ended.is_set)
                events.follow(watch.folders)
                while not ended.is_set() and (left := looked + every - time.monotonic()) > 0:
                    called, rang = bell.wait(left, listener)
                    if called and listener is not None:
                        resident.serve(listener, watch.answer)
                    if rang:
                        time.sleep(_SETTLED)
                        break

        # In the main thread Dagster would take signals for itself while it runs something, and break that off.
        worker = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="strandline-watch"))
        worker.submit(stay).result()
    return 0


@dataclass
class Watch:
    """Looks for work of some dataflows of a project, and runs it; pauses after failures as sensors do.

    Attributes:
        context: of the command.
        asked: the names of the dataflows; none are all.
        instance: Dagster's, which the runs are told.
    """

    context: Context
    asked: Sequence[str]
    instance: DagsterInstance
    _attempts: dict[str, Attempts] = field(default_factory=dict)
    _said: dict[str, str] = field(default_factory=dict)
    _woken: set[str] = field(default_factory=set)
    _taken: object = None
    _seen: object = None

    def __post_init__(self) -> None:
        """Load the project once more: its files may have changed since the command began."""
        folder = self.context.project.folder
        self._taken = self._seen = _state_of(folder)
        self._looks = _Looks(self._find)
        self._take(load_project(folder))

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
        return {place for place in places if place is not None and place.is_dir()}

    def look(self, ended: Callable[[], bool] = lambda: False) -> None:
        """Look once at each dataflow, and run what is worth a run, until the user ends the command.

        A source that does not answer is left to a later look, so that it keeps no other dataflow waiting.
        """
        self._read_again()
        found = self._looks.ask(list(self._flows.values()))
        for name in self.names:
            if ended():
                return
            if name in self._woken:  # since it was looked at, maybe
                self._take_up(self._flows[name], self._find(self._flows[name]))
            elif name in found:
                self._take_up(self._flows[name], found[name])
        for name, seconds in self._looks.slow():
            self._say_once(
                name,
                f"its source has not answered for {seconds // _SLOW * _SLOW:.0f} s; the other dataflows go on",
            )

    def answer(self, context: Context, names: Sequence[str]) -> int:
        """Do what a call of ``strandline run`` asks for, and return its exit code."""
        self._read_again()
        context.__dict__["project"] = self._project
        try:
            return load(context, self._runner, context.dataflows(names), everything=not names)
        except Exception as error:  # noqa: BLE001 - whoever asked is told, and this process stays
            return report(error, context)

    def _find(self, flow: Dataflow) -> _Found:
        """Look at one dataflow; of what cannot be seen now the error is the answer."""
        runner, now = self._runner, datetime.now(UTC)
        try:
            return _Found(now, runner.platform.log.newest(flow.name), self._work(runner, flow, now))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one source, the others are looked at
            return _Found(now, error=error)

    def _take_up(self, flow: Dataflow, found: _Found) -> None:
        """Run what a look has found, unless it is to wait, or a sensor's run has it. What goes wrong is told, and ends nothing."""
        try:
            self._run(flow, found)
        except EngineLost:
            raise
        except StrandlineError as error:
            self._say_once(flow.name, error.message)
        except Exception as error:  # noqa: BLE001 - Dagster's storage may be locked or full, say
            self._say_once(flow.name, f"{type(error).__name__}: {in_one_line(str(error))}")

    def _run(self, flow: Dataflow, found: _Found) -> None:
        if found.error is not None:
            raise found.error
        if not found.what:
            self._woken.discard(flow.name)
            return
        now, entry = found.time, found.entry
        before = self._attempts.get(flow.name, Attempts())
        progress = entry.id if entry and entry.why not in NO_PROGRESS else before.done
        if before.wait(progress, found.what, now.timestamp()) > 0:
            return
        if in_flight(self.instance, self._runner.platform.log, flow.name, now.timestamp()) is not None:
            return  # a sensor's, say: it loads this, or the next look finds it again
        outcome = self._runner.run(flow)
        if outcome.status != "held":
            self._attempts[flow.name] = before.next(progress, found.what, now.timestamp())
            self._woken.discard(flow.name)
        if outcome.committed:
            lineage = self._runner.platform.lineage
            self._woken |= {name for name in self._flows if flow.name in lineage.upstream_dataflows(name)}
        if self.context.as_json:
            click.echo(self._project.hide(json.dumps(outcome.as_json(), allow_nan=False)))
        elif outcome.error is None:
            self._said.pop(flow.name, None)
            print_outcome(self.context, outcome)
        else:
            self._say_once(flow.name, outcome.error.message)
        if isinstance(outcome.error, EngineLost) and self._runner.platform.spark.remote is None:
            raise outcome.error  # Java is started once in a process

    def _work(self, runner: Runner, flow: Dataflow, now: datetime) -> str:
        """Return what is worth a run; of a dataflow whose upstream has loaded something all that is due, as its sensor does."""
        platform = runner.platform
        if flow.name in self._woken and flow.run_after_upstream:
            plan = platform.plan(flow, now)
            return repr([slice_.upper for slice_ in plan.slices]) if plan.slices else ""
        return profile_of(flow).worth_a_run(platform, flow, platform.log.newest(flow.name), now)

    def _place(self, flow: Dataflow) -> Path | None:
        with suppress(StrandlineError):
            return self._runner.platform.root_of(flow).local
        return None

    def _read_again(self) -> None:
        """Take changed project files that two looks have found alike; while the settings have errors, what was read before goes on."""
        seen, self._seen = self._seen, _state_of(self._project.folder)
        if self._seen == self._taken or self._seen != seen:
            return
        self._taken = self._seen
        try:
            project = load_project(self._project.folder)
            _ = project.settings
            self._take(project)
        except StrandlineError as error:
            self._say_once("platform.yaml", error.message)

    def _take(self, project: Project) -> None:
        self._project = project
        for name in project.broken:
            self._say_once(name, "its file has errors; run `strandline validate`")
        flows = project.dataflows
        self._flows = {name: flow for name, flow in flows.items() if not self.asked or name in self.asked}
        self._runner = Runner(project, list(flows.values()), self.instance)
        lineage = self._runner.platform.lineage
        self._woken |= {name for name, flow in self._flows.items() if lineage.upstream_tables(flow)}

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
    """

    time: datetime
    entry: Entry | None = None
    what: str = ""
    error: Exception | None = None


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


def _state_of(folder: Path) -> object:
    found = []
    for file in [folder / "platform.yaml", *sorted((folder / "dataflows").glob("**/*.yaml"))]:
        with suppress(OSError):  # removed just now, or not there
            at = file.stat()
            found.append((str(file), at.st_mtime_ns, at.st_size))
    return found
