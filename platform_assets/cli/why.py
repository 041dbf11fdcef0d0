"""``strandline why``: why a dataflow loads nothing now, or what became of one part of it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from textwrap import fill
from typing import TYPE_CHECKING

import click

from partitions.why_answer import WhyAnswer
from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.gathering import dagster_runs, run_history
from platform_assets.kinds import profile_of
from platform_assets.platform import build_platform
from platform_assets.why_now import NextRun, look_ahead, why_now

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from partitions.dataflow import Dataflow
    from platform_assets.project import Project
    from resources.platform.platform import Platform

_LINES, _CHOICES = 20, 4
"""The most lines and commands of an answer: it fits on one screen."""


@click.command("why")
@click.argument("name")
@click.argument("subject", required=False)
@shared_options
def command(context: Context, name: str, subject: str | None) -> None:
    """Say why NAME loads nothing now, or what became of SUBJECT: a window, unit, file, value or split."""
    (flow,) = context.dataflows([name])
    platform, now = build_platform(context.project), context.now or datetime.now(UTC)
    if subject is not None:
        answer = profile_of(flow).explain(platform, flow, subject, now)
    else:
        with dagster_runs(context.project) as dagster:
            look = look_ahead(platform, flow, now, is_now=context.now is None)
            next_run = _next_run(context.project, platform, flow, now, dagster, look)
            answer = why_now(platform, flow, now, run_history(platform, dagster), next_run)
    context.emit(answer.as_json(), lambda: _print(context, answer))


def _next_run(
    project: Project,
    platform: Platform,
    flow: Dataflow,
    now: datetime,
    dagster: DagsterInstance | None,
    look: NextRun,
) -> NextRun:
    """Return what a look at the source, and Dagster if it runs the project, say about the next run."""
    if dagster is None:
        return look
    from platform_assets.factory.next_attempts import with_sensors
    from platform_assets.factory.noted_names import noted_names

    names = noted_names(dagster, platform, project.dataflows.values())
    return with_sensors(look, dagster, names[flow.name], now)


def _print(context: Context, answer: WhyAnswer) -> None:
    heading, *lines = answer.lines
    click.secho(heading, bold=True)
    for line in lines[:_LINES]:
        click.echo(_wrapped(line, context.console.width) if sys.stdout.isatty() else f"  {line}")
    if len(lines) > _LINES:
        click.echo(f"  … and {len(lines) - _LINES:,} more (--json shows all)")
    context.offer(answer.choices[:_CHOICES], 4)


def _wrapped(line: str, width: int) -> str:
    """Return a line of an answer, broken between words as a terminal would not."""
    return fill(
        line,
        width,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
