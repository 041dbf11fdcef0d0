"""``strandline files``: hands single files to the next run."""

from __future__ import annotations

import click

from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.deciding import apply_decision
from platform_assets.cli.state import print_entries

_REASON = click.option(
    "--reason", default="by hand", show_default=True, help="Reason for the decision; stored in the log."
)


@click.group("files")
def command() -> None:
    """Hand single files to the next run."""


@command.command("release")
@click.argument("name")
@click.argument("paths", nargs=-1, required=True)
@_REASON
@shared_options
def release_command(context: Context, name: str, paths: tuple[str, ...], reason: str) -> None:
    """Take files out of quarantine. The next run loads them, in a slice of their own."""
    from resources.kinds.all_decisions import release

    entry = apply_decision(context, name, release(reason, paths), reason, yes=True)
    document = {"dataflow": name, "number": entry.number, "released": list(paths), "entry": entry.as_json()}
    context.emit(document, lambda: print_entries([entry]))


@command.command("unprocess")
@click.argument("name")
@click.argument("paths", nargs=-1, required=True)
@_REASON
@shared_options
def unprocess_command(context: Context, name: str, paths: tuple[str, ...], reason: str) -> None:
    """Mark ingested files for another read (tracking: set)."""
    from resources.kinds.all_decisions import unprocess

    entry = apply_decision(context, name, unprocess(reason, paths), reason, yes=True)
    document = {
        "dataflow": name,
        "number": entry.number,
        "unprocessed": list(paths),
        "entry": entry.as_json(),
    }
    context.emit(document, lambda: print_entries([entry]))
