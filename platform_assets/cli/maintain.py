"""``strandline maintain``: care of a dataflow's table, as its job in Dagster does it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime

import click

from partitions.errors import ConfigurationError
from platform_assets.cli.context import Context, shared
from platform_assets.platform import build_platform
from resources.decisions.maintenance import Done, due_tasks, maintain
from resources.tables.contract.maintenance import MaintenanceResult


@click.command("maintain")
@click.argument("name")
@click.option("--due", is_flag=True, help="Only what is due by its period.")
@shared
def command(context: Context, name: str, due: bool) -> None:
    """Join small files and delete old ones, as ``maintenance`` of the dataflow says."""
    (flow,) = context.dataflows([name])
    if flow.maintenance is None:
        raise ConfigurationError(
            f"dataflow {name}: expected the key maintenance in its file, such as maintenance: {{optimize: P1D, vacuum: P7D}}, found none"
        )
    platform = build_platform(context.project, lambda line: click.echo(f"  {line}", err=True))
    tasks = (
        due_tasks(platform, flow, context.now or datetime.now(UTC))
        if due
        else tuple(flow.maintenance.periods())
    )
    done = maintain(platform.loading([flow]), flow, tasks) if tasks else Done(name)
    context.emit(_document(done), lambda: _print(done))


def _document(done: Done) -> dict[str, object]:
    return {
        "dataflow": done.dataflow,
        "number": done.entry.number if done.entry else None,
        "done": {task: _counts(cared) for task, cared in done.cared.items()},
        "skipped": dict(done.skipped),
    }


def _counts(cared: MaintenanceResult) -> dict[str, int]:
    """Each count, and that of statistics where some were written again."""
    return {name: count for name, count in asdict(cared).items() if count or name != "statistics"}


def _print(done: Done) -> None:
    if not done.cared and not done.skipped:
        click.echo(f"{done.dataflow}: nothing is due")
    for task, cared in done.cared.items():
        click.echo(f"{done.dataflow}: {task}: {cared}")
    for task, why in done.skipped.items():
        click.echo(f"{done.dataflow}: {task}: skipped: {why}")
