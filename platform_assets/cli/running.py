"""Runs dataflows in this process, for commands that end and for one that keeps running.

Runs go through Dagster if an instance records them. Without one nobody would read the records, and
Dagster's imports alone take a second.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import click

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError, first_sentence, shorten_to_line, strip_dataflow
from partitions.plan import pluralize
from partitions.request import DUE, Request
from platform_assets.cli.context import Context
from platform_assets.dagster_home import HOME, dagster_home, lock_dagster_home, project_home
from platform_assets.kinds import PROFILES
from platform_assets.platform import build_platform
from platform_assets.project import Project
from platform_assets.words import of_outcome_in_words
from resources.dagster.run_options import RunOptions
from resources.loop.loop import clock
from resources.notes.last_run import note_failed_start, note_stop
from resources.outcome import Outcome, Step

if TYPE_CHECKING:
    from dagster import DagsterInstance, ExecuteInProcessResult, JobDefinition

    from resources.dagster.names import DagsterNames

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_IN_MEMORY = {
    "DAGSTER_DEFAULT_IO_MANAGER_MODULE": "dagster",
    "DAGSTER_DEFAULT_IO_MANAGER_ATTRIBUTE": "mem_io_manager",
}
"""Settings for Dagster's default IO manager, which every run creates and no dataflow uses: the usual one takes 0.1 s to import."""

_LONGEST_REASON = 300
"""The most letters of a reason in the table of several runs: a line of a wide terminal."""

_PRINTED_STEPS = (Step.PLANNED, Step.APPENDED, Step.FENCED)


class Runner:
    """Runs dataflows of a project; resources and jobs are built once.

    Attributes:
        platform: the resources.
        instance: the Dagster instance that records the runs; None if none does.
    """

    def __init__(
        self,
        project: Project,
        flows: Sequence[Dataflow],
        instance: DagsterInstance | None,
        *,
        now: datetime | None = None,
        requests: Mapping[str, Request] = MappingProxyType({}),
        quiet: bool = False,
    ) -> None:
        """Prepare to run some dataflows.

        Args:
            project: a loaded project.
            flows: dataflows of the project.
            instance: the Dagster instance that records the runs; None if none does.
            now: the clock of all runs; None reads the clock for each run.
            requests: by dataflow, the request to run instead of what is due.
            quiet: whether progress is not printed.
        """
        self._say: Callable[[str], None] = _be_quiet if quiet else print_progress
        self.platform, self.instance = build_platform(project, self._say).loading(flows), instance
        self._dataflows = list(project.dataflows.values())
        self._outcomes: dict[str, Outcome] = {}
        self._options = RunOptions(
            now=now,
            hold_wait=timedelta(0),
            observer=self._show_step,
            report=self._keep_outcome,
            requests=requests,
        )
        self._jobs: dict[str, JobDefinition] = {}

    def run(self, flow: Dataflow) -> Outcome:
        """Run a dataflow, and return its outcome, which holds its error."""
        try:
            if self.instance is None:
                return self._run_without_dagster(flow)
            return self._run_in_dagster(self.instance, flow)
        except KeyboardInterrupt:
            note_stop(self.platform.log, flow.name)
            raise

    def _run_in_dagster(self, dagster: DagsterInstance, flow: Dataflow) -> Outcome:
        from platform_assets.build import build_job

        self._outcomes.pop(flow.name, None)
        if flow.name not in self._jobs:
            self._jobs[flow.name] = build_job(flow, self.platform, self._options, self._names(dagster))
        try:
            result = execute(self._jobs[flow.name], dagster)
        except Exception as failure:  # noqa: BLE001 - a run's error is in its result: this one is Dagster's own, mostly of its storage
            return self._outcome_without_dagster(flow.name, _unusable_home(failure))
        if flow.name not in self._outcomes:  # the step failed outside the loop
            error = StrandlineError(_first_failure(result), code="dagster")
            return note_failed_start(self.platform.log, flow.name, error, result.run_id)
        return self._outcomes[flow.name]

    def _names(self, dagster: DagsterInstance) -> DagsterNames:
        """Return the names under which the project's code location shows it; the usual ones without one."""
        from platform_assets.factory.noted_names import noted_names

        return noted_names(dagster, self.platform, self._dataflows)

    def _outcome_without_dagster(self, dataflow: str, error: StrandlineError) -> Outcome:
        """Return the outcome of a run that Dagster could not record.

        Loaded rows stay loaded, and the dataflow's next run in Dagster shows them.
        """
        if dataflow not in self._outcomes:
            return note_failed_start(self.platform.log, dataflow, error)
        print_progress(f"warning: Dagster could not record how {dataflow} ended: {error.message}")
        return self._outcomes[dataflow]

    def _show_step(self, step: Step, line: str) -> None:
        if step in _PRINTED_STEPS:
            self._say(line)

    def _keep_outcome(self, outcome: Outcome) -> None:
        self._outcomes[outcome.dataflow] = outcome

    def _run_without_dagster(self, flow: Dataflow) -> Outcome:
        options, run_id = self._options, str(uuid4())
        try:
            loop = self.platform.loop(
                flow,
                options.now or clock(),
                options.requests.get(flow.name, DUE),
                run_id=run_id,
                hold_wait=options.hold_wait,
                run_is_live=options.run_is_live,
                observer=options.observer or self._show_step,
            )
        except StrandlineError as error:  # such as a variable that is not set
            return note_failed_start(self.platform.log, flow.name, error, run_id)
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


def instance(project: Project, *, captures: bool = True) -> AbstractContextManager[DagsterInstance | None]:
    """Return the Dagster instance of DAGSTER_HOME; None if that is not set.

    Args:
        project: the project whose settings of Dagster apply if DAGSTER_HOME is its own folder.
        captures: whether Dagster keeps the output of runs. It redirects the output of the whole process, so a
            process with several runs at once must do without.

    Raises:
        StrandlineError: if it cannot be opened.
    """
    home = os.environ.get(HOME)
    if home is None:
        return nullcontext()
    try:
        return _open_instance(project, home, captures=captures)
    except Exception as error:
        raise _unusable_home(error) from error


def _unusable_home(error: Exception) -> StrandlineError:
    return StrandlineError(
        f"{HOME}={os.environ.get(HOME)}: expected an absolute path to a folder in which Dagster can keep runs, "
        f"found {type(error).__name__}: {shorten_to_line(str(error))}. Correct the variable, or the folder's "
        "rights and free space; after an upgrade of Dagster: `dagster instance migrate`",
        code="dagster",
    )


def _open_instance(project: Project, home: str, *, captures: bool) -> DagsterInstance:
    from dagster import DagsterInstance

    if Path(home).resolve() == project_home(project.folder, project.env):
        dagster_home(
            project.folder, {}, env=project.env
        )  # with the settings of `strandline dev`, whichever comes first
    if not Path(home).is_absolute():  # which Dagster refuses
        return DagsterInstance.get()
    with lock_dagster_home(Path(home)):
        if captures:
            return DagsterInstance.get()
        from platform_assets.dagster_internals import open_without_output

        return open_without_output(home)


def _be_quiet(line: str) -> None:
    """Print nothing."""


def print_progress(line: str) -> None:
    """Print a line of progress. A closed pipe or a full disk of a log is no reason for a run to fail."""
    with suppress(OSError):
        click.echo(f"  {line}")


def print_outcome(context: Context, outcome: Outcome) -> None:
    """Print the outcome of a run for people; if the output is closed, other runs go on."""
    with suppress(OSError):
        _print_outcome(context, outcome)


def _print_outcome(context: Context, outcome: Outcome) -> None:
    color = {"failed": "red", "blocked": "red", "held": "yellow", "skipped": "yellow"}.get(
        outcome.status, "green"
    )
    kind = outcome.newest.kind if outcome.newest else None
    amount, set_aside = (
        (PROFILES[kind].outcome_amount(outcome), PROFILES[kind].amount_set_aside(outcome))
        if kind
        else ("nothing", "")
    )
    of_amount = f" of {amount}" if amount else ""
    deleted = f", {outcome.deleted:,} deleted," if outcome.deleted else ""
    loaded = f"{pluralize(outcome.rows, 'row')}{deleted}{of_amount} in {pluralize(len(outcome.committed), 'slice')}, "
    calls = f"{pluralize(outcome.calls, 'listing call')}, " if outcome.calls else ""
    click.secho(
        f"{outcome.dataflow}: {outcome.status}, {loaded if outcome.committed else ''}{f'{set_aside}, ' if set_aside else ''}{calls}"
        f"{outcome.seconds:.1f} s; state {outcome.newest.number if outcome.newest else 0}",
        fg=color,
    )
    before, after = (
        of_outcome_in_words(kind, outcome, watermark) for watermark in (outcome.before, outcome.after)
    )
    click.echo(
        f"  watermark {before} -> {after}" if before != after else f"  watermark stays as it is: {after}"
    )
    for warning in outcome.new_warnings:
        click.secho(f"  warning: {warning}", fg="yellow")
    if outcome.error is not None:
        click.secho(f"  {outcome.error.message}", fg="red")
        context.offer(outcome.error.choices, 4)


def print_summary(context: Context, outcomes: Sequence[Outcome]) -> None:
    """Print a table of several runs: what became of each dataflow, its rows, and the reason in a line."""
    from rich.table import Column, Table

    table = Table("dataflow", "result", Column("rows", justify="right"), Column("reason", overflow="fold"))
    for outcome in outcomes:
        table.add_row(outcome.dataflow, outcome.status, f"{outcome.rows:,}", context.hide(_reason(outcome)))
    with suppress(OSError):
        context.console.print(table)


def _reason(outcome: Outcome) -> str:
    """Return why a run did what it did, in a line."""
    if outcome.error is not None:
        # The whole error was printed when the run ended, with what to do.
        problem = first_sentence(strip_dataflow(outcome.dataflow, outcome.error.message))
        return shorten_to_line(problem, _LONGEST_REASON)
    if not outcome.committed and outcome.plan is not None:
        return outcome.plan.why
    kind = outcome.newest.kind if outcome.newest else None
    return f"watermark {of_outcome_in_words(kind, outcome, outcome.after)}" if outcome.committed else ""
