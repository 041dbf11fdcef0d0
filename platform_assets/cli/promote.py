"""``strandline promote``: the rows of a replay aside take the place of those of the dataflow's own table (docs/reference/replay.md)."""

from __future__ import annotations

import click

from platform_assets.cli.context import Context, shared
from platform_assets.cli.deciding import REASON, YES, end_replay
from platform_assets.cli.state import print_entries


@click.command("promote")
@click.argument("name")
@click.argument("table")
@REASON
@YES
@shared
def command(context: Context, name: str, table: str, reason: str, yes: bool) -> None:
    """Put the rows of a replay aside, in TABLE, into the dataflow's own table, in one commit. TABLE and its log go then."""
    from resources.replay.isolated.promoting import preview_promote, promote

    promoted = end_replay(context, name, table, "promote", preview_promote, promote, reason, yes)
    entry = promoted.entry
    document = {"dataflow": name, "table": table, "number": entry.number, "entry": entry.as_json()}
    context.emit(document, lambda: print_entries([entry]))
