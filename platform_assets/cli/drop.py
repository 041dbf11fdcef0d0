"""``strandline drop``: a replay aside is removed, its table and its log (docs/replay.md)."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from platform_assets.cli.context import Context, shared
from platform_assets.cli.deciding import REASON, YES, confirm
from platform_assets.platform import build_platform


@click.command("drop")
@click.argument("name")
@click.argument("table")
@REASON
@YES
@shared
def command(context: Context, name: str, table: str, reason: str, yes: bool) -> None:
    """Remove a replay aside: TABLE and its log. The dataflow's own table stays as it is."""
    from resources.replay.isolated.dropping import drop, preview_drop

    (flow,) = context.dataflows([name])
    platform = build_platform(context.project, lambda line: click.echo(f"  {line}", err=True))
    click.echo(f"{name}: drop {table}", err=True)
    for line in preview_drop(platform, flow, table):
        click.echo(f"  {line}", err=True)
    if not yes:
        confirm("Remove it?")
    drop(platform, flow, table, reason, context.now or datetime.now(UTC))
    context.emit(
        {"dataflow": name, "table": table}, lambda: click.echo(f"{name}: the replay into {table} is removed")
    )
