"""``strandline run``: runs dataflows through Dagster; the events appear in its UI if DAGSTER_HOME is set."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError, UpstreamNotLoaded
from partitions.plan import counted
from partitions.request import Request
from platform_assets.cli.context import Context, shared
from platform_assets.cli.deciding import YES
from platform_assets.cli.several import worst
from platform_assets.dagster_home import HOME, dagster_home, project_home
from platform_assets.kinds import PROFILES, profile_of, required
from platform_assets.kinds.profile import CanForce, LoadsAheadOfTime
from platform_assets.platform import build_platform
from platform_assets.project import InvalidProject
from platform_assets.words import in_words
from resources.attempts import not_begun
from resources.loop.outcome import Outcome, Step
from resources.platform import Platform

if TYPE_CHECKING:
    from dagster import DagsterInstance, ExecuteInProcessResult, JobDefinition

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_IN_MEMORY = {
    "DAGSTER_DEFAULT_IO_MANAGER_MODULE": "dagster",
    "DAGSTER_DEFAULT_IO_MANAGER_ATTRIBUTE": "mem_io_manager",
}
"""Dagster makes its default IO manager for every run. No dataflow uses it, and the usual one imports 0.1 s of libraries for files."""

_AHEAD = timedelta(days=1)
"""How far `--now` may lie ahead of the machine's clock without a question."""

_PRINTED_STEPS = (Step.PLANNED, Step.APPENDED, Step.FENCED)


@click.command("run")
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Run all dataflows.")
@click.option(
    "--force", metavar="START..END", help="Read every window that intersects [START, END) again, as a whole."
)
@click.option("--unit", metavar="JSON", help="With --force: only this unit.")
@YES
@shared
def command(
    context: Context, names: tuple[str, ...], everything: bool, force: str | None, unit: str | None, yes: bool
) -> int:
    """Load what is new, exactly once."""
    if bool(names) == everything:
        raise click.UsageError("expected the names of dataflows, or --all")
    if unit is not None and force is None:
        raise click.UsageError("--unit: expected --force START..END beside it")
    flows = context.dataflows(names)
    if not yes:
        _ask_for_the_future(context, flows)
    requests = _forced(context, flows, force, unit) if force else {}
    broken = list(context.project.broken) if everything else []
    done = (lambda outcome: None) if context.as_json else (lambda outcome: _print(context, outcome))
    outcomes = _run_all(context, flows, requests, broken, done)
    documents = [outcome.as_json() for outcome in outcomes]
    if (
        len(outcomes) == 1
        and (error := outcomes[0].error) is not None
        and error.exit_code in (3, 4)
        and context.as_json
    ):
        raise error
    context.emit(documents, lambda: None)  # for people each was printed when it was over
    # A skipped dataflow adds nothing to the failure above it.
    codes = [outcome.error.exit_code for outcome in outcomes if outcome.error and outcome.status != "skipped"]
    return worst([0, *codes])


def _ask_for_the_future(context: Context, flows: Sequence[Dataflow]) -> None:
    """Ask before a run with a clock that is ahead of the machine's."""
    if context.now is None or context.now - datetime.now(UTC) <= _AHEAD:
        return
    for profile in PROFILES.values():
        names = [flow.name for flow in flows if profile_of(flow) is profile]
        if names and isinstance(profile, LoadsAheadOfTime):
            ahead = f"--now {context.now.isoformat()} lies beyond this machine's clock"
            click.echo(f"{ahead}: {profile.loads_ahead(names)}", err=True)
            click.confirm("Run all the same?", abort=True, err=True)


def _forced(context: Context, flows: Sequence[Dataflow], force: str, unit: str | None) -> dict[str, Request]:
    """Return what ``--force`` and ``--unit`` ask for of each dataflow."""
    platform, now = build_platform(context.project), context.now or datetime.now(UTC)
    return {flow.name: required(flow, CanForce).forced(platform, flow, force, unit, now) for flow in flows}


def _run_all(
    context: Context,
    flows: Sequence[Dataflow],
    requests: Mapping[str, Request],
    broken: Sequence[str],
    done: Callable[[Outcome], None],
) -> list[Outcome]:
    """Run the dataflows in turn, each after those whose tables it reads, and return their outcomes; a broken dataflow is a failed run.

    ``done`` gets each outcome when it is known.
    """
    from platform_assets.build import build_job
    from resources.io_managers import RunOptions

    outcomes: list[Outcome] = []
    options = RunOptions(
        now=context.now, hold_wait=timedelta(0), observer=_progress, report=outcomes.append, requests=requests
    )
    platform = build_platform(context.project, _say).loading(flows)
    errors = {name: InvalidProject(context.project.broken[name]) for name in broken}
    outcomes += [not_begun(platform.log, name, error) for name, error in errors.items()]
    for outcome in outcomes:
        done(outcome)
    with instance(context.project.folder) as kept:
        by_name = {flow.name: flow for flow in flows}
        for name in platform.lineage.in_order(list(by_name)):
            if len(by_name) > 1:
                click.echo(f"{name} …", err=True)
            above = platform.lineage.upstream_dataflows(name)
            failed = [
                outcome for outcome in outcomes if outcome.error is not None and outcome.dataflow in above
            ]
            if failed:
                outcomes.append(not_begun(platform.log, name, _upstream(name, failed)))
            else:
                job = build_job(by_name[name], platform, options, checked=not kept.is_ephemeral)
                _run_one(platform, job, kept, name, outcomes)
            done(outcomes[-1])
    return outcomes


def _upstream(name: str, failed: Sequence[Outcome]) -> UpstreamNotLoaded:
    """Return the error of a dataflow that is not run: its windows would count as read although some of their rows are missing."""
    above = " and ".join(f"{outcome.dataflow} ({outcome.status})" for outcome in failed)
    names = " ".join([*(outcome.dataflow for outcome in failed), name])
    return UpstreamNotLoaded(
        f"{name} was not started: it reads what {above} should have loaded",
        choices=[f"strandline run {names}"],
    )


def _run_one(
    platform: Platform, job: JobDefinition, instance: DagsterInstance, name: str, outcomes: list[Outcome]
) -> None:
    count = len(outcomes)
    result = execute(job, instance)
    if len(outcomes) == count:  # the step failed before, or beside, the loop
        error = StrandlineError(_first_failure(result), code="dagster")
        outcomes.append(not_begun(platform.log, name, error, result.run_id))


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


def instance(project: Path) -> AbstractContextManager[DagsterInstance]:
    """Return the Dagster instance of DAGSTER_HOME, or one in memory."""
    from dagster import DagsterInstance

    home = os.environ.get(HOME)
    if home is None:
        return DagsterInstance.ephemeral()
    if Path(home).resolve() == project_home(project):
        dagster_home(project, {})  # with the settings that `strandline dev` uses, whichever comes first
    return DagsterInstance.get()


def _progress(step: Step, line: str) -> None:
    if step in _PRINTED_STEPS:
        _say(line)


def _say(line: str) -> None:
    click.echo(f"  {line}", err=True)


def _print(context: Context, outcome: Outcome) -> None:
    color = {"failed": "red", "blocked": "red", "held": "yellow", "skipped": "yellow"}.get(
        outcome.status, "green"
    )
    kind = outcome.newest.kind if outcome.newest else None
    amount = PROFILES[kind].outcome_amount(outcome) if kind else "nothing"
    of_amount = f" of {amount}" if amount else ""
    done = f"{counted(outcome.rows, 'row')}{of_amount} in {counted(len(outcome.committed), 'slice')}, "
    calls = f"{counted(outcome.calls, 'listing call')}, " if outcome.calls else ""
    aside = f"{counted(outcome.quarantined, 'file')} put in quarantine, " if outcome.quarantined else ""
    click.secho(
        f"{outcome.dataflow}: {outcome.status}, {done if outcome.committed else ''}{aside}{calls}"
        f"{outcome.seconds:.1f} s; state {outcome.newest.number if outcome.newest else 0}",
        fg=color,
    )
    before, after = in_words(kind, outcome.before), in_words(kind, outcome.after)
    click.echo(f"  watermark {before} -> {after}" if before != after else f"  watermark stays at {after}")
    for warning in outcome.news:
        click.secho(f"  warning: {warning}", fg="yellow", err=True)
    if outcome.error is not None:
        click.secho(f"  {outcome.error.message}", fg="red", err=True)
        context.offer(outcome.error.choices, 4, err=True)
