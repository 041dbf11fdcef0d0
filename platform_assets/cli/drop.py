"""``strandline drop``: removes an isolated replay, its table and its log (docs/reference/replay.md)."""

from __future__ import annotations

import click

from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.deciding import REASON, YES, end_replay


@click.command("drop")
@click.argument("name")
@click.argument("table")
@REASON
@YES
@shared_options
def command(context: Context, name: str, table: str, reason: str, yes: bool) -> None:
    """Remove an isolated replay: TABLE and its log. The dataflow's own table stays as it is."""
    from resources.replay.isolated.dropping import drop_replay, preview_drop

    end_replay(context, name, table, "drop", preview_drop, drop_replay, reason, yes)
    context.emit(
        {"dataflow": name, "table": table}, lambda: click.echo(f"{name}: the replay into {table} is removed")
    )
