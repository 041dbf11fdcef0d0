"""The checks and runs of ``strandline watch``; ``partitions.watch`` decides what runs when."""

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
from partitions.errors import StrandlineError, shorten_to_line
from partitions.pauses import RetryBackoff
from partitions.plan import format_duration
from partitions.watch.due_runs import Finding, WatchedDataflow, is_about_to_change
from partitions.watch.project_files import ProjectFileStates
from partitions.watch.reminders import LONG, Wait, reminder_step
from platform_assets.cli.context import Context
from platform_assets.cli.running import Runner, print_outcome, print_progress
from platform_assets.factory.in_flight import find_run_in_flight
from platform_assets.factory.noted_names import noted_tags
from platform_assets.kinds import profile_of
from platform_assets.kinds.profile import ListsNewFiles
from platform_assets.project import Project, load_project
from platform_assets.project.file_changes import file_stamps
from resources.notes.last_run import noted_look
from resources.spark.errors import EngineLost
from resources.watch.file_events import is_folder
from resources.watch.source_polling import SourcePoller
from resources.watermarks.entry import NO_PROGRESS

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from resources.outcome import Outcome
    from resources.watermarks.entry import Entry


class _BackgroundRun(NamedTuple):
    """A run in progress.

    Attributes:
        outcome: the outcome, once the run is over.
        finding: the finding that started the run.
        attempt: the back-off that counts this run.
    """

    outcome: Future[Outcome]
    finding: Finding
    attempt: RetryBackoff


@dataclass
class Watch:
    """Finds work of a project's dataflows and runs it, with the same pauses after failures as sensors.

    Runs have threads of their own, so that a long run delays only the dataflows downstream of it.

    Attributes:
        context: the command's context.
        requested: the names of the dataflows; empty for all.
        instance: the Dagster instance that records the runs.
        max_runs: the most dataflows that are loaded at once.
        ring: called when a run is over, since other work may have waited for it.
    """

    context: Context
    requested: Sequence[str]
    instance: DagsterInstance
    max_runs: int
    ring: Callable[[], None]
    _under_way: dict[str, _BackgroundRun] = field(default_factory=dict)
    _watched: dict[str, WatchedDataflow] = field(default_factory=dict)
    _waits: dict[str, Wait] = field(default_factory=dict)
    _last_lines: dict[str, str] = field(default_factory=dict)
    _versions: int = 0

    def __post_init__(self) -> None:
        """Load the project again: its files may have changed since the command began."""
        # Not in the main thread: there Dagster would handle signals itself, and break off its run.
        self._workers = ThreadPoolExecutor(self.max_runs, thread_name_prefix="strandline-run")
        folder = self.context.project.folder
        state = _file_states(folder)
        self._files = ProjectFileStates(state, state)
        self._looks = SourcePoller(self._find_work)
        self._use_project(load_project(folder, env=self.context.project.env or ""))

    @property
    def names(self) -> list[str]:
        """Return the names of the watched dataflows, each after its upstream."""
        return self._runner.platform.lineage.in_order(list(self._flows))

    @property
    def folders(self) -> set[Path]:
        """Return the local folders in which files may appear."""
        flows = [flow for flow in self._flows.values() if isinstance(profile_of(flow), ListsNewFiles)]
        places = map(self._local_folder, flows)
        return {place for place in places if place is not None and is_folder(place)}

    def run_new_work(self, ended: Callable[[], bool] = lambda: False) -> None:
        """Check each idle dataflow once, and start runs for new work, until the user ends the command.

        A source that does not answer is left to a later check, so that it delays no other dataflow.
        """
        self._reload_project()
        self._collect_runs()
        findings = self._looks.poll(
            {name: flow for name, flow in self._flows.items() if name not in self._under_way}
        )
        lineage = self._runner.platform.lineage
        for name in self.names:
            if ended():
                return
            flow = self._flows[name]
            upstream = lineage.all_upstream_dataflows(name) if flow.run_after_upstream else ()
            if name in findings and not is_about_to_change(upstream, self._under_way):
                self._start_run(flow, findings[name])
        for name, seconds in self._looks.unanswered().items():
            if seconds >= LONG:
                duration = format_duration(reminder_step(seconds))
                self._say_once(
                    name, f"its source has not answered for {duration}; the other dataflows continue"
                )

    def end(self) -> None:
        """Wait for the runs in progress, and print their results."""
        self._workers.shutdown(cancel_futures=True)  # drops runs that have not begun
        self._collect_runs()

    def _find_work(self, flow: Dataflow) -> Finding:
        """Check one dataflow; return its error as the finding if the check fails."""
        now = datetime.now(UTC)
        log = self._runner.platform.log
        try:
            return noted_look(log, flow.name, lambda: self._check_dataflow(flow, now), _has_work)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one source, the others are checked
            return Finding(now, problem=_problem(error))

    def _check_dataflow(self, flow: Dataflow, now: datetime) -> Finding:
        platform = self._runner.platform
        upstream = self._upstream_fingerprint(flow)
        entry = platform.log.newest(flow.name)
        work: str | None
        if self._state(flow.name).is_woken(upstream):
            slices = platform.plan(flow, now).slices
            work = repr((upstream, [slice_.upper for slice_ in slices])) if slices else ""
        else:
            work = profile_of(flow).work_fingerprint(platform, flow, entry, now)
        waits = platform.waits_for_upstream(flow) if work and flow.run_after_upstream else ""
        return Finding(now, work or "", _progress(entry), upstream, waits, source_was_asked=work is not None)

    def _upstream_fingerprint(self, flow: Dataflow) -> str:
        """Return a text that identifies the newest loads upstream, whichever process made them."""
        platform = self._runner.platform
        if not flow.run_after_upstream or not platform.lineage.upstream_tables(flow):
            return ""
        entries = map(platform.log.newest, sorted(platform.lineage.upstream_dataflows(flow.name)))
        return repr((self._versions, [entry and entry.id for entry in entries]))

    def _start_run(self, flow: Dataflow, finding: Finding) -> None:
        """Run the work of a finding, unless it must wait or a sensor's run has it. Errors are printed."""
        try:
            self._submit_run(flow, finding)
        except Exception as error:  # noqa: BLE001 - Dagster's storage may be locked or full, say
            self._say_once(flow.name, _problem(error))

    def _submit_run(self, flow: Dataflow, finding: Finding) -> None:
        watched = self._state(flow.name)
        if finding.problem:
            self._say_once(flow.name, finding.problem)
        elif not finding.work:
            self._watched[flow.name] = watched.after_nothing(finding)
        elif watched.may_run(finding):
            platform, seconds = self._runner.platform, finding.time.timestamp()
            tags = noted_tags(self.instance, platform)
            in_flight = find_run_in_flight(self.instance, platform.log, tags, flow.name, seconds)
            if in_flight is not None:
                # A sensor or a person started it: it loads this work, or the next check finds it again.
                self._wait_for(flow.name, in_flight.reason)
                return
            outcome = self._workers.submit(self._runner.run, flow)
            self._under_way[flow.name] = _BackgroundRun(outcome, finding, watched.attempted(finding))
            outcome.add_done_callback(lambda _: self.ring())

    def _wait_for(self, name: str, reason: str) -> None:
        """Wait for a run in flight; print a line if it takes long: its daemon may be gone."""
        now = time.monotonic()
        wait = self._waits[name] = self._waits.get(name, Wait()).for_reason(reason, now)
        if wait.is_long(now):
            self._say_once(
                name,
                f"{reason}, and new data waits until it ends. If no process works on it, terminate it in Dagster's UI",
            )

    def _collect_runs(self) -> None:
        """Record the runs that are over, and print their results.

        Raises:
            EngineLost: if this process has no engine any more.
        """
        for name in [name for name, run in self._under_way.items() if run.outcome.done()]:
            run = self._under_way.pop(name)
            if run.outcome.cancelled():
                continue
            try:
                self._record_run(name, run.outcome.result(), run)
            except EngineLost:
                raise
            except Exception as error:  # noqa: BLE001 - Dagster's storage may be locked or full, say
                self._watched[name] = self._after_run(name, run, was_held=False, has_read=False)
                self._say_once(name, _problem(error))

    def _record_run(self, name: str, outcome: Outcome, run: _BackgroundRun) -> None:
        has_read = outcome.error is None or bool(outcome.committed)
        self._watched[name] = self._after_run(name, run, was_held=outcome.status == "held", has_read=has_read)
        self._print_result(name, outcome)
        if isinstance(outcome.error, EngineLost) and self._runner.platform.spark.remote is None:
            raise outcome.error  # Java is started once in a process

    def _after_run(
        self, name: str, run: _BackgroundRun, *, was_held: bool, has_read: bool
    ) -> WatchedDataflow:
        return self._state(name).after_run(run.finding, run.attempt, was_held=was_held, has_read=has_read)

    def _print_result(self, name: str, outcome: Outcome) -> None:
        """Print how a run ended: a line of JSON, or lines for people; the same failure only once."""
        if self.context.as_json:
            line = self._project.hide(json.dumps(outcome.as_json(), allow_nan=False))
            with suppress(OSError):  # the reader is gone; loading goes on
                click.echo(line, file=self.context.results)
        elif outcome.error is None:
            self._last_lines.pop(name, None)
            print_outcome(self.context, outcome)
        else:
            self._say_once(name, outcome.error.message)

    def _state(self, name: str) -> WatchedDataflow:
        return self._watched.get(name, WatchedDataflow())

    def _local_folder(self, flow: Dataflow) -> Path | None:
        with suppress(StrandlineError):
            return self._runner.platform.root_of(flow).local
        return None

    def _reload_project(self) -> None:
        """Use changed project files once two checks have found them alike.

        While the settings have errors, the project before the change stays in use.
        """
        folder = self._project.folder
        self._files, is_due = self._files.after_look(_file_states(folder))
        if not is_due:
            return
        try:
            project = load_project(folder, env=self._project.env or "")
            _ = project.settings
            self._use_project(project)
            self._files = self._files.after_read()
        except StrandlineError as error:
            self._files = self._files.after_errors()
            self._say_once("platform.yaml", error.message)

    def _use_project(self, project: Project) -> None:
        """Watch the dataflows of a loaded project; plan those with upstream tables again."""
        self._project, flows = project, project.dataflows
        for name in project.broken:
            self._say_once(name, "its file has errors; run `strandline validate`")
        self._flows = {
            name: flow for name, flow in flows.items() if not self.requested or name in self.requested
        }
        self._runner = Runner(project, list(self._flows.values()), self.instance)
        self._versions += 1

    def _say_once(self, name: str, line: str) -> None:
        """Print a line about a dataflow, unless it was the last line about it."""
        if self._last_lines.get(name) != line:
            self._last_lines[name] = line
            print_progress(f"{name}: {self._project.hide(line)}")


def _has_work(finding: Finding) -> bool | None:
    """Return whether a check found work; None if it did not ask the source."""
    return bool(finding.work) if finding.source_was_asked else None


def _problem(error: Exception) -> str:
    if isinstance(error, StrandlineError):
        return error.message
    return f"{type(error).__name__}: {shorten_to_line(str(error))}"


def _progress(entry: Entry | None) -> str:
    return entry.id if entry and entry.why not in NO_PROGRESS else ""


def _file_states(folder: Path) -> tuple[tuple[str, int, int], ...]:
    return tuple((name, *stamp[:2]) for name, stamp in sorted(file_stamps(folder).items()))
