"""Runs dataflows in this process, for a command that ends and for one that stays.

They go through Dagster where an instance keeps what it is told. Without one nobody would read it, and Dagster's imports alone take a second.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import click

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError, in_one_line
from partitions.plan import counted
from partitions.request import DUE, Request
from platform_assets.cli.context import Context
from platform_assets.dagster_home import HOME, dagster_home, opening, project_home
from platform_assets.kinds import PROFILES
from platform_assets.platform import build_platform
from platform_assets.project import Project
from platform_assets.words import in_words
from resources.dagster.run_options import RunOptions
from resources.loop.loop import clock
from resources.notes.last_run import not_begun
from resources.outcome import Outcome, Step

if TYPE_CHECKING:
    from dagster import DagsterInstance, ExecuteInProcessResult, JobDefinition

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_IN_MEMORY = {
    "DAGSTER_DEFAULT_IO_MANAGER_MODULE": "dagster",
    "DAGSTER_DEFAULT_IO_MANAGER_ATTRIBUTE": "mem_io_manager",
}
"""Dagster makes its default IO manager for every run. No dataflow uses it, and the usual one imports 0.1 s of libraries for files."""

_NO_LOGS = {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}
_PRINTED_STEPS = (Step.PLANNED, Step.APPENDED, Step.FENCED)


class Runner:
    """Runs dataflows of a project; the resources and the jobs are made once.

    Attributes:
        platform: the resources.
        instance: Dagster's, which the runs are told; None if nobody is told.
    """

    def __init__(
        self,
        project: Project,
        flows: Sequence[Dataflow],
        instance: DagsterInstance | None,
        *,
        now: datetime | None = None,
        requests: Mapping[str, Request] = MappingProxyType({}),
    ) -> None:
        """Prepare to run some dataflows.

        Args:
            project: loaded.
            flows: of it.
            instance: which the runs are told; None: nobody.
            now: the clock of all runs; None reads it once for each.
            requests: by dataflow, what is asked for instead of what is due.
        """
        self.platform, self.instance = build_platform(project, say).loading(flows), instance
        self._heard: dict[str, Outcome] = {}
        self._options = RunOptions(
            now=now, hold_wait=timedelta(0), observer=_progress, report=self._hear, requests=requests
        )
        self._jobs: dict[str, JobDefinition] = {}

    def run(self, flow: Dataflow) -> Outcome:
        """Run a dataflow, and return its outcome, which holds its error."""
        return self._run_alone(flow) if self.instance is None else self._run_in(self.instance, flow)

    def _run_in(self, dagster: DagsterInstance, flow: Dataflow) -> Outcome:
        from platform_assets.build import build_job

        self._heard.pop(flow.name, None)
        if flow.name not in self._jobs:
            self._jobs[flow.name] = build_job(flow, self.platform, self._options)
        try:
            result = execute(self._jobs[flow.name], dagster)
        except Exception as failure:  # noqa: BLE001 - what a run raises is in its result: this is Dagster's own, of its storage mostly
            return self._not_kept(flow.name, _unusable(failure))
        if flow.name not in self._heard:  # the step failed before, or beside, the loop
            error = StrandlineError(_first_failure(result), code="dagster")
            return not_begun(self.platform.log, flow.name, error, result.run_id)
        return self._heard[flow.name]

    def _not_kept(self, dataflow: str, error: StrandlineError) -> Outcome:
        """Return the outcome of a run that Dagster could not be told of: what was loaded is loaded, and the dataflow's next run in Dagster shows it."""
        if dataflow not in self._heard:
            return not_begun(self.platform.log, dataflow, error)
        say(f"warning: Dagster was not told how {dataflow} ended: {error.message}")
        return self._heard[dataflow]

    def _hear(self, outcome: Outcome) -> None:
        self._heard[outcome.dataflow] = outcome

    def _run_alone(self, flow: Dataflow) -> Outcome:
        options, run_id = self._options, str(uuid4())
        try:
            loop = self.platform.loop(
                flow,
                options.now or clock(),
                options.requests.get(flow.name, DUE),
                run_id=run_id,
                hold_wait=options.hold_wait,
                run_is_live=options.run_is_live,
                observer=options.observer or _progress,
            )
        except StrandlineError as error:  # a variable that is not set, say
            return not_begun(self.platform.log, flow.name, error, run_id)
        outcome = loop.run()
        if outcome.committed:
            loop.prepare_next()
        return outcome


def execute(job: JobDefinition, instance: DagsterInstance) -> ExecuteInProcessResult:
    """Run a dataflow's job in this process, and return its result, which holds the failures."""
    for key, value in _IN_MEMORY.items():
        os.environ.setdefault(key, value)
    return job.execute_in_process(instance=instance, raise_on_error=False, run_config=_QUIET)


def _first_failure(result: Any) -> str:
    failures = [
        event.event_specific_data.error
        for event in result.all_events
        if event.is_failure and hasattr(event.event_specific_data, "error")
    ]
    return next(
        (str(error.message).strip() for error in failures if error),
        "the Dagster run failed without saying why",
    )


def instance(project: Path, *, captures: bool = True) -> AbstractContextManager[DagsterInstance | None]:
    """Return the Dagster instance of DAGSTER_HOME; None if that is not set.

    Args:
        project: whose settings of Dagster a folder of its own gets.
        captures: whether Dagster keeps what runs print. It takes the process's own output for that, so a process with runs beside each other
            must do without.

    Raises:
        StrandlineError: if it cannot be opened.
    """
    home = os.environ.get(HOME)
    if home is None:
        return nullcontext()
    try:
        return _opened(project, home, captures=captures)
    except Exception as error:
        raise _unusable(error) from error


def _unusable(error: Exception) -> StrandlineError:
    return StrandlineError(
        f"{HOME}={os.environ.get(HOME)}: expected an absolute path to a folder in which Dagster can keep runs, found {type(error).__name__}:"
        f" {in_one_line(str(error))}. Correct the variable, or the folder's rights and room; after an upgrade of Dagster: `dagster instance migrate`",
        code="dagster",
    )


def _opened(project: Path, home: str, *, captures: bool) -> DagsterInstance:
    from dagster import DagsterInstance

    if Path(home).resolve() == project_home(project):
        dagster_home(project, {})  # with the settings that `strandline dev` uses, whichever comes first
    if not Path(home).is_absolute():  # which Dagster refuses
        return DagsterInstance.get()
    with opening(Path(home)):
        if captures:
            return DagsterInstance.get()
        from dagster._core.instance import InstanceRef

        opened = DagsterInstance.from_ref(InstanceRef.from_dir(home, overrides={"compute_logs": _NO_LOGS}))
    # For each run Dagster configures Python's logging anew, which waits for handlers of runs that wait for the configuration (1.13).
    handlers = opened.get_yaml_python_handlers()
    vars(opened)["get_yaml_python_handlers"] = lambda: handlers
    return opened


def _progress(step: Step, line: str) -> None:
    if step in _PRINTED_STEPS:
        say(line)


def say(line: str) -> None:
    """Print a line of progress. A reader that is gone, or a log whose disk is full, is no reason that a run fails."""
    with suppress(OSError):
        click.echo(f"  {line}", err=True)


def print_outcome(context: Context, outcome: Outcome) -> None:
    """Print what a run has done, for people; if nobody can read it, other runs go on all the same."""
    with suppress(OSError):
        _print_outcome(context, outcome)


def _print_outcome(context: Context, outcome: Outcome) -> None:
    color = {"failed": "red", "blocked": "red", "held": "yellow", "skipped": "yellow"}.get(
        outcome.status, "green"
    )
    kind = outcome.newest.kind if outcome.newest else None
    amount, aside = (
        (PROFILES[kind].outcome_amount(outcome), PROFILES[kind].outcome_aside(outcome))
        if kind
        else ("nothing", "")
    )
    of_amount = f" of {amount}" if amount else ""
    done = f"{counted(outcome.rows, 'row')}{of_amount} in {counted(len(outcome.committed), 'slice')}, "
    calls = f"{counted(outcome.calls, 'listing call')}, " if outcome.calls else ""
    click.secho(
        f"{outcome.dataflow}: {outcome.status}, {done if outcome.committed else ''}{f'{aside}, ' if aside else ''}{calls}"
        f"{outcome.seconds:.1f} s; state {outcome.newest.number if outcome.newest else 0}",
        fg=color,
    )
    before, after = in_words(kind, outcome.before), in_words(kind, outcome.after)
    click.echo(
        f"  watermark {before} -> {after}" if before != after else f"  watermark stays as it is: {after}"
    )
    for warning in outcome.news:
        click.secho(f"  warning: {warning}", fg="yellow", err=True)
    if outcome.error is not None:
        click.secho(f"  {outcome.error.message}", fg="red", err=True)
        context.offer(outcome.error.choices, 4, err=True)
