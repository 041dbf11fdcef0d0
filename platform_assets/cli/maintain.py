"""``strandline maintain``: maintains a dataflow's table, as its Dagster job does."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime

import click

from partitions.dataflow import maintenance_periods
from partitions.errors import ConfigurationError
from platform_assets.cli.context import Context, shared_options
from platform_assets.platform import build_platform
from resources.decisions.maintenance import MaintenanceReport, due_tasks, maintain
from resources.tables.contract.maintenance import MaintenanceResult

_IF_ANY = ("statistics", "rows")


@click.command("maintain")
@click.argument("name")
@click.option("--due", is_flag=True, help="Only tasks that are due by their period.")
@shared_options
def command(context: Context, name: str, due: bool) -> None:
    """Merge small files and delete old ones, as ``maintenance`` of the dataflow says."""
    (flow,) = context.dataflows([name])
    if not maintenance_periods(flow):
        raise ConfigurationError(
            f"dataflow {name}: expected the key maintenance in its file, such as maintenance: {{optimize: P1D, vacuum: P7D}}, or target.retention, found"
            " neither"
        )
    platform = build_platform(context.project, lambda line: click.echo(f"  {line}", err=True))
    tasks = (
        due_tasks(platform, flow, context.now or datetime.now(UTC))
        if due
        else tuple(maintenance_periods(flow))
    )
    result = (
        maintain(platform.loading([flow]), flow, tasks, now=context.now) if tasks else MaintenanceReport(name)
    )
    context.emit(_document(result), lambda: _print(result))


def _document(result: MaintenanceReport) -> dict[str, object]:
    return {
        "dataflow": result.dataflow,
        "number": result.entry.number if result.entry else None,
        "done": {task: _counts(cared) for task, cared in result.results.items()},
        "skipped": dict(result.skipped),
    }


def _counts(result: MaintenanceResult) -> dict[str, int]:
    """Return all counts; those of statistics and rows only if there are some."""
    return {name: count for name, count in asdict(result).items() if count or name not in _IF_ANY}


def _print(result: MaintenanceReport) -> None:
    if not result.results and not result.skipped:
        click.echo(f"{result.dataflow}: nothing is due")
    for task, cared in result.results.items():
        click.echo(f"{result.dataflow}: {task}: {cared}")
    for task, why in result.skipped.items():
        click.echo(f"{result.dataflow}: {task}: skipped: {why}")
