"""``strandline run``: loads new data, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.deciding import confirm

if TYPE_CHECKING:
    from partitions.dataflow import Dataflow
    from partitions.request import Request
    from platform_assets.cli.running import Runner
    from resources.outcome import Outcome

_AHEAD = timedelta(days=1)
"""How far `--now` may lie ahead of the machine's clock without a prompt."""


@click.command("run")
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Run all dataflows.")
@click.option(
    "--force",
    metavar="WINDOWS",
    help="Read these windows again, as a whole: a day such as 2026-01-03, or START..END; with /UNIT of one unit.",
)
@click.option("--unit", metavar="UNIT", help="With --force: only this unit, such as EWR or its JSON.")
@click.option("--yes", is_flag=True, help="Skip the confirmation prompt.")
@click.option("--quiet", is_flag=True, help="Print only runs that fail or warn.")
@shared_options
def command(
    context: Context,
    names: tuple[str, ...],
    everything: bool,
    force: str | None,
    unit: str | None,
    yes: bool,
    quiet: bool,
) -> int:
    """Load new data, exactly once."""
    if bool(names) == everything:
        raise click.UsageError("expected the names of dataflows, or --all")
    if unit is not None and force is None:
        raise click.UsageError("--unit: expected --force WINDOWS with it")
    from platform_assets.cli.running import Runner, instance

    flows = context.dataflows(names)
    if not yes:
        _confirm_future_clock(context, flows)
    requests = _forced_requests(context, flows, force, unit) if force else {}
    with instance(context.project) as dagster:
        runner = Runner(context.project, flows, dagster, now=context.now, requests=requests, quiet=quiet)
        return _load(context, runner, flows, everything=everything, quiet=quiet)


def _load(
    context: Context, runner: Runner, flows: Sequence[Dataflow], *, everything: bool, quiet: bool
) -> int:
    """Run dataflows, print their outcomes, and return the exit code.

    Args:
        context: the call's context.
        runner: the runner of the project.
        flows: the dataflows to run.
        everything: whether broken files count as failed runs.
        quiet: whether only runs that fail or warn are printed.

    Raises:
        StrandlineError: if the only dataflow is held, or needs a decision, and the answer is JSON.
    """
    from platform_assets.cli.run_in_order import run_in_order
    from platform_assets.cli.running import print_outcome, print_summary
    from platform_assets.cli.several import worst_exit_code
    from platform_assets.project import InvalidProject

    broken = context.project.broken if everything else {}
    errors = {name: InvalidProject(file_errors) for name, file_errors in broken.items()}

    def show(outcome: Outcome) -> None:
        if not context.as_json and (not quiet or outcome.error is not None or outcome.new_warnings):
            print_outcome(context, outcome)

    def show_start(name: str) -> None:
        if len(flows) > 1 and not quiet:
            with suppress(OSError):
                click.echo(f"{name} …")

    outcomes = run_in_order(runner, flows, errors, show, show_start)
    if (
        len(outcomes) == 1
        and (error := outcomes[0].error) is not None
        and error.exit_code in (3, 4)
        and context.as_json
    ):
        raise error
    # For people, each outcome was printed when its run ended.
    context.emit(
        [outcome.as_json() for outcome in outcomes],
        lambda: print_summary(context, outcomes) if len(outcomes) > 1 and not quiet else None,
    )
    # A skipped dataflow adds nothing to the failure above it.
    codes = [outcome.error.exit_code for outcome in outcomes if outcome.error and outcome.status != "skipped"]
    return worst_exit_code([0, *codes])


def _confirm_future_clock(context: Context, flows: Sequence[Dataflow]) -> None:
    """Ask before a run whose clock is more than a day ahead of the machine's, if that loads too early."""
    if context.now is None or context.now - datetime.now(UTC) <= _AHEAD:
        return
    from platform_assets.kinds import PROFILES, profile_of
    from platform_assets.kinds.profile import LoadsAheadOfTime

    for profile in PROFILES.values():
        names = [flow.name for flow in flows if profile_of(flow) is profile]
        if names and isinstance(profile, LoadsAheadOfTime):
            warning = f"--now {context.now.isoformat()} lies beyond this machine's clock"
            click.echo(f"{warning}: {profile.loads_ahead(names)}", err=True)
            confirm("Run anyway?")


def _forced_requests(
    context: Context, flows: Sequence[Dataflow], force: str, unit: str | None
) -> dict[str, Request]:
    """Return the request of ``--force`` and ``--unit`` for each dataflow."""
    from platform_assets.kinds import require_profile
    from platform_assets.kinds.profile import CanForce
    from platform_assets.platform import build_platform

    platform, now = build_platform(context.project), context.now or datetime.now(UTC)
    return {
        flow.name: require_profile(
            flow, CanForce, (f"strandline replay {flow.name} --start A --end B",)
        ).forced_request(platform, flow, force, unit, now)
        for flow in flows
    }
