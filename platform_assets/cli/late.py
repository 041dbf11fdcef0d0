"""``strandline late``: one step of the late-file sweep, with its policy."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from partitions.plan import counted
from platform_assets.cli.context import Context, shared
from platform_assets.kinds import profile_of, required
from platform_assets.kinds.path.words import verified_in_words
from platform_assets.kinds.profile import CanForce, FindsLateFiles
from platform_assets.platform import build_platform
from resources.kinds.path.late import LateStep

_SHOWN = 50


@click.command("late")
@click.argument("name")
@shared
def command(context: Context, name: str) -> None:
    """Look one step further for late files, and apply the policy ``late_files`` to them."""
    (flow,) = context.dataflows([name])
    platform = build_platform(context.project, lambda line: click.echo(f"  {line}", err=True))
    again = [f"strandline run {name} --force START..END"] if isinstance(profile_of(flow), CanForce) else []
    finder = required(flow, FindsLateFiles, again)
    done, why_none = (
        finder.late_step(platform, flow, context.now or datetime.now(UTC)),
        finder.why_none_is_late(flow),
    )
    context.emit(
        done.as_json(),
        lambda: click.echo(f"{name}: {why_none}") if why_none else _print(done, flow.late_files),
    )


def _print(done: LateStep, policy: str) -> None:
    shown = done.as_json()
    click.echo(
        f"{done.dataflow}: {counted(done.step.listed, 'file')} listed, {len(done.step.late)} of them late"
    )
    for file in done.step.late[:_SHOWN]:
        click.echo(f"  late: {file.path}")
    if len(done.step.late) > _SHOWN:
        click.echo(f"  … and {len(done.step.late) - _SHOWN:,} more (--json shows all)")
    if shown["ingested"]:
        click.echo(f"  {counted(shown['ingested'], 'late file')} ingested; the watermark stays")
    if shown["quarantined"]:
        click.echo(f"  {counted(shown['quarantined'], 'late file')} in quarantine")
    if done.left.count:
        handled = policy in ("ingest", "quarantine")
        rest = "left for the next step" if handled else f"skipped (late_files: {policy})"
        click.echo(f"  {counted(done.left.count, 'late file')} {rest}")
    if done.left.settling:
        click.echo(f"  {counted(len(done.left.settling), 'file')} younger than settle, left for a later step")
    if not shown["complete"]:
        click.echo("  this round continues with the next step")
    if shown["verified_at"]:
        click.echo(f"  {verified_in_words(shown['verified_up_to'], shown['verified_at'])}")
