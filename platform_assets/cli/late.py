"""``strandline late``: makes one step of the sweep for late files, with its policy."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from partitions.plan import pluralize
from partitions.spelling import first_few
from platform_assets.cli.context import Context, shared_options
from platform_assets.kinds import profile_of, require_profile
from platform_assets.kinds.path.words import verified_in_words
from platform_assets.kinds.profile import CanForce, FindsLateFiles
from platform_assets.platform import build_platform
from resources.kinds.path.late import LateStep
from resources.loop.rows.withheld import withheld_in_words

_SHOWN, _EXAMPLES = 50, 3


@click.command("late")
@click.argument("name")
@shared_options
def command(context: Context, name: str) -> None:
    """Make one step of the sweep for late files, and apply the policy ``late_files`` to them."""
    (flow,) = context.dataflows([name])
    platform = build_platform(context.project, lambda line: click.echo(f"  {line}", err=True))
    instead = [f"strandline run {name} --force WINDOWS"] if isinstance(profile_of(flow), CanForce) else []
    finder = require_profile(flow, FindsLateFiles, instead)
    step, why_none = (
        finder.late_step(platform, flow, context.now or datetime.now(UTC)),
        finder.why_none_is_late(flow),
    )
    context.emit(
        step.as_json(),
        lambda: click.echo(f"{name}: {why_none}") if why_none else _print(step, flow.late_files),
    )


def _print(step: LateStep, policy: str) -> None:
    document = step.as_json()
    click.echo(
        f"{step.dataflow}: {pluralize(step.step.listed, 'file')} listed, {len(step.step.late)} of them late"
    )
    for file in step.step.late[:_SHOWN]:
        click.echo(f"  late: {file.path}")
    if len(step.step.late) > _SHOWN:
        click.echo(f"  … and {len(step.step.late) - _SHOWN:,} more (--json shows all)")
    if step.freed_copies:
        copies = first_few(step.freed_copies, _EXAMPLES)
        click.echo(
            f"  {len(step.freed_copies):,} of them skipped before as a copy (duplicates: skip), and no copy any more: {copies}"
        )
    if document["ingested"]:
        click.echo(f"  {pluralize(document['ingested'], 'late file')} ingested; the watermark stays")
    for withheld in step.withheld:
        click.echo(f"  {withheld.in_words}")
    printed_lines = {withheld_in_words({withheld.entry: withheld.rows}) for withheld in step.withheld}
    for warning in step.warnings:
        if warning not in printed_lines:
            click.secho(f"  warning: {warning}", fg="yellow")
    if document["quarantined"]:
        click.echo(f"  {pluralize(document['quarantined'], 'late file')} in quarantine")
    if step.remaining.count:
        is_handled = policy in ("ingest", "quarantine")
        remaining = "left for the next step" if is_handled else f"skipped (late_files: {policy})"
        click.echo(f"  {pluralize(step.remaining.count, 'late file')} {remaining}")
    if step.remaining.settling:
        click.echo(
            f"  {pluralize(len(step.remaining.settling), 'file')} younger than settle; a later step looks at them"
        )
    if not document["complete"]:
        click.echo("  this round continues with the next step")
    if document["verified_at"]:
        click.echo(f"  {verified_in_words(document['verified_up_to'], document['verified_at'])}")
