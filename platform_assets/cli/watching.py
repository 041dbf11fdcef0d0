"""The looks and runs of ``strandline watch``. What is run when is decided in ``partitions.watch``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError, in_one_line
from partitions.pauses import RetryBackoff
from partitions.plan import lasting
from partitions.watch.due_runs import Finding, WatchedDataflow, is_about_to_change
from partitions.watch.project_files import ProjectFiles
from partitions.watch.reminders import LONG, Wait, reminder
from platform_assets.cli.context import Context
from platform_assets.cli.running import Runner, print_outcome, say
from platform_assets.factory.in_flight import in_flight
from platform_assets.kinds import profile_of
from platform_assets.kinds.profile import ListsNewFiles
from platform_assets.project import Project, load_project
from resources.spark.errors import EngineLost
from resources.watch.file_events import is_folder
from resources.watch.looks import Looks
from resources.watermarks.entry import NO_PROGRESS

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from resources.outcome import Outcome
    from resources.watermarks.entry import Entry


class _Run(NamedTuple):
    """A run that is under way.

    Attributes:
        outcome: of the run, once it is over.
        finding: that it was begun for.
        attempt: the back-off with this run.
    """

    outcome: Future[Outcome]
    finding: Finding
    attempt: RetryBackoff


@dataclass
class Watch:
    """Looks for work of some dataflows of a project, and runs it; pauses after failures as sensors do.

    Runs are made in threads of their own, so that a long one holds up no other dataflow, but those downstream of it.

    Attributes:
        context: of the command.
        requested: the names of the dataflows; none are all.
        instance: Dagster's, which the runs are told.
        at_once: dataflows that are loaded beside each other.
        ring: called when a run is over: there may be work that has waited for it.
    """

    context: Context
    requested: Sequence[str]
    instance: DagsterInstance
    at_once: int
    ring: Callable[[], None]
    _under_way: dict[str, _Run] = field(default_factory=dict)
    _watched: dict[str, WatchedDataflow] = field(default_factory=dict)
    _waits: dict[str, Wait] = field(default_factory=dict)
    _said: dict[str, str] = field(default_factory=dict)
    _versions: int = 0

    def __post_init__(self) -> None:
        """Load the project once more: its files may have changed since the command began."""
        # Not in the main thread: Dagster would take signals for itself while it runs something, and break that off.
        self._workers = ThreadPoolExecutor(self.at_once, thread_name_prefix="strandline-run")
        folder = self.context.project.folder
        state = _state_of(folder)
        self._files = ProjectFiles(state, state)
        self._looks = Looks(self._find)
        self._take(load_project(folder))

    @property
    def names(self) -> list[str]:
        """Return the names of the dataflows that are watched, each after those whose tables it reads."""
        return self._runner.platform.lineage.in_order(list(self._flows))

    @property
    def folders(self) -> set[Path]:
        """Return the folders of this machine in which files may appear."""
        flows = [flow for flow in self._flows.values() if isinstance(profile_of(flow), ListsNewFiles)]
        places = map(self._local_folder, flows)
        return {place for place in places if place is not None and is_folder(place)}

    def look(self, ended: Callable[[], bool] = lambda: False) -> None:
        """Look once at each dataflow that is not being loaded, and begin to run what is worth a run, until the user ends the command.

        A source that does not answer is left to a later look, so that it keeps no other dataflow waiting.
        """
        self._read_again()
        self._take_back()
        findings = self._looks.ask(
            {name: flow for name, flow in self._flows.items() if name not in self._under_way}
        )
        lineage = self._runner.platform.lineage
        for name in self.names:
            if ended():
                return
            flow = self._flows[name]
            upstream = lineage.all_upstream_dataflows(name) if flow.run_after_upstream else ()
            if name in findings and not is_about_to_change(upstream, self._under_way):
                self._take_up(flow, findings[name])
        for name, seconds in self._looks.unanswered().items():
            if seconds >= LONG:
                lasts = lasting(reminder(seconds))
                self._say_once(name, f"its source has not answered for {lasts}; the other dataflows continue")

    def end(self) -> None:
        """Wait for what is under way, and tell of it."""
        self._workers.shutdown(cancel_futures=True)  # of those that have not begun
        self._take_back()

    def _find(self, flow: Dataflow) -> Finding:
        """Look at one dataflow; of what cannot be seen now the error is the answer."""
        now = datetime.now(UTC)
        try:
            return self._finding(flow, now)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one source, the others are looked at
            return Finding(now, problem=_problem(error))

    def _finding(self, flow: Dataflow, now: datetime) -> Finding:
        platform = self._runner.platform
        upstream = self._upstream(flow)
        entry = platform.log.newest(flow.name)
        if self._state(flow.name).is_woken(upstream):
            slices = platform.plan(flow, now).slices
            work = repr((upstream, [slice_.upper for slice_ in slices])) if slices else ""
        else:
            work = profile_of(flow).worth_a_run(platform, flow, entry, now)
        waits = platform.waits_for_upstream(flow) if work and flow.run_after_upstream else ""
        return Finding(now, work, _progress(entry), upstream, waits)

    def _upstream(self, flow: Dataflow) -> str:
        """Return what identifies the newest loads of the dataflows that a dataflow reads, whichever process has made them."""
        platform = self._runner.platform
        if not flow.run_after_upstream or not platform.lineage.upstream_tables(flow):
            return ""
        entries = map(platform.log.newest, sorted(platform.lineage.upstream_dataflows(flow.name)))
        return repr((self._versions, [entry and entry.id for entry in entries]))

    def _take_up(self, flow: Dataflow, finding: Finding) -> None:
        """Run what a look has found, unless it is to wait, or a sensor's run has it. What goes wrong is told, and ends nothing."""
        try:
            self._run(flow, finding)
        except Exception as error:  # noqa: BLE001 - Dagster's storage may be locked or full, say
            self._say_once(flow.name, _problem(error))

    def _run(self, flow: Dataflow, finding: Finding) -> None:
        watched = self._state(flow.name)
        if finding.problem:
            self._say_once(flow.name, finding.problem)
        elif not finding.work:
            self._watched[flow.name] = watched.after_nothing(finding)
        elif watched.may_run(finding):
            log, seconds = self._runner.platform.log, finding.time.timestamp()
            busy = in_flight(self.instance, log, flow.name, seconds)
            if busy is not None:
                # A sensor's, say, or one that was asked for: it loads this, or the next look finds it again.
                self._wait_for(flow.name, busy.reason)
                return
            outcome = self._workers.submit(self._runner.run, flow)
            self._under_way[flow.name] = _Run(outcome, finding, watched.attempted(finding))
            outcome.add_done_callback(lambda _: self.ring())

    def _wait_for(self, name: str, reason: str) -> None:
        """Wait for a run in flight; one that takes long is told of: it may wait for a daemon that is gone."""
        now = time.monotonic()
        wait = self._waits[name] = self._waits.get(name, Wait()).for_(reason, now)
        if wait.is_long(now):
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
                self._watched[name] = self._after(name, run, was_held=False, has_read=False)
                self._say_once(name, _problem(error))

    def _take_note(self, name: str, outcome: Outcome, run: _Run) -> None:
        has_read = outcome.error is None or bool(outcome.committed)
        self._watched[name] = self._after(name, run, was_held=outcome.status == "held", has_read=has_read)
        self._tell(name, outcome)
        if isinstance(outcome.error, EngineLost) and self._runner.platform.spark.remote is None:
            raise outcome.error  # Java is started once in a process

    def _after(self, name: str, run: _Run, *, was_held: bool, has_read: bool) -> WatchedDataflow:
        return self._state(name).after_run(run.finding, run.attempt, was_held=was_held, has_read=has_read)

    def _tell(self, name: str, outcome: Outcome) -> None:
        """Show how a run ended: a line of JSON, or what people read; a failure once."""
        if self.context.as_json:
            line = self._project.hide(json.dumps(outcome.as_json(), allow_nan=False))
            with suppress(OSError):  # whoever reads is gone; loading goes on
                click.echo(line, file=self.context.results)
        elif outcome.error is None:
            self._said.pop(name, None)
            print_outcome(self.context, outcome)
        else:
            self._say_once(name, outcome.error.message)

    def _state(self, name: str) -> WatchedDataflow:
        return self._watched.get(name, WatchedDataflow())

    def _local_folder(self, flow: Dataflow) -> Path | None:
        with suppress(StrandlineError):
            return self._runner.platform.root_of(flow).local
        return None

    def _read_again(self) -> None:
        """Take changed project files that two looks have found alike; while the settings have errors, what was read before goes on."""
        folder = self._project.folder
        self._files, is_due = self._files.looked_at(_state_of(folder))
        if not is_due:
            return
        try:
            project = load_project(folder)
            _ = project.settings
            self._take(project)
            self._files = self._files.taken()
        except StrandlineError as error:
            self._files = self._files.with_errors()
            self._say_once("platform.yaml", error.message)

    def _take(self, project: Project) -> None:
        """Watch the dataflows of a project as its files are now. What they read upstream is read anew: they may do something else with it."""
        self._project, flows = project, project.dataflows
        for name in project.broken:
            self._say_once(name, "its file has errors; run `strandline validate`")
        self._flows = {
            name: flow for name, flow in flows.items() if not self.requested or name in self.requested
        }
        self._runner = Runner(project, list(self._flows.values()), self.instance)
        self._versions += 1

    def _say_once(self, name: str, what: str) -> None:
        """Say something of a dataflow, unless it was the last that was said of it."""
        if self._said.get(name) != what:
            self._said[name] = what
            say(f"{name}: {self._project.hide(what)}")


def _problem(error: Exception) -> str:
    if isinstance(error, StrandlineError):
        return error.message
    return f"{type(error).__name__}: {in_one_line(str(error))}"


def _progress(entry: Entry | None) -> str:
    return entry.id if entry and entry.why not in NO_PROGRESS else ""


def _state_of(folder: Path) -> tuple[tuple[str, int, int], ...]:
    states = []
    for file in [folder / "platform.yaml", *sorted((folder / "dataflows").glob("**/*.yaml"))]:
        with suppress(OSError):  # removed just now, or missing
            status = file.stat()
            states.append((str(file), status.st_mtime_ns, status.st_size))
    return tuple(states)
