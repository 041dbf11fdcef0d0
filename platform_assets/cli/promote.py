"""``strandline promote``: the rows of a replay aside take the place of those of the dataflow's own table (docs/replay.md)."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from platform_assets.cli.context import Context, shared
from platform_assets.cli.deciding import REASON, YES, confirm
from platform_assets.cli.state import print_entries
from platform_assets.platform import build_platform


@click.command("promote")
@click.argument("name")
@click.argument("table")
@REASON
@YES
@shared
def command(context: Context, name: str, table: str, reason: str, yes: bool) -> None:
    """Put the rows of a replay aside, in TABLE, into the dataflow's own table, in one commit. TABLE and its log go then."""
    from resources.replay.isolated.promoting import preview_promote, promote

    (flow,) = context.dataflows([name])
    platform = build_platform(context.project, lambda line: click.echo(f"  {line}", err=True))
    click.echo(f"{name}: promote {table}", err=True)
    for line in preview_promote(platform, flow, table):
        click.echo(f"  {line}", err=True)
    if not yes:
        confirm("Promote it?")
    entry = promote(platform, flow, table, reason, context.now or datetime.now(UTC)).entry
    document = {"dataflow": name, "table": table, "number": entry.number, "entry": entry.as_json()}
    context.emit(document, lambda: print_entries([entry]))
