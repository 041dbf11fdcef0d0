"""``strandline promote``: puts an isolated replay's rows in place of the live ones."""

from __future__ import annotations

import click

from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.deciding import REASON, YES, end_replay
from platform_assets.cli.entry_lines import print_entries


@click.command("promote")
@click.argument("name")
@click.argument("table")
@REASON
@YES
@shared_options
def command(context: Context, name: str, table: str, reason: str, yes: bool) -> None:
    """Put the rows of an isolated replay in place of the live ones, in one commit.

    TABLE and its log are then removed.
    """
    from resources.replay.isolated.promoting import preview_promote, promote_replay

    promoted = end_replay(context, name, table, "promote", preview_promote, promote_replay, reason, yes)
    entry = promoted.entry
    document = {"dataflow": name, "table": table, "number": entry.number, "entry": entry.as_json()}
    context.emit(document, lambda: print_entries([entry]))
