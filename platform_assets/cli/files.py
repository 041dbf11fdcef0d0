"""``strandline files``: hands single files to the next run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.deciding import apply_decision
from platform_assets.cli.entry_lines import print_entries

if TYPE_CHECKING:
    from resources.kinds.all_decisions import DraftBuilder

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

    _apply(context, name, release(reason, paths), reason, {"released": list(paths)})


@command.command("unprocess")
@click.argument("name")
@click.argument("paths", nargs=-1, required=True)
@_REASON
@shared_options
def unprocess_command(context: Context, name: str, paths: tuple[str, ...], reason: str) -> None:
    """Mark ingested files for another read (tracking: set)."""
    from resources.kinds.all_decisions import unprocess

    _apply(context, name, unprocess(reason, paths), reason, {"unprocessed": list(paths)})


def _apply(
    context: Context, name: str, build_draft: DraftBuilder, reason: str, handled: Mapping[str, list[str]]
) -> None:
    """Apply a decision about files, and show its entry."""
    entry = apply_decision(context, name, build_draft, reason, yes=True)
    document = {"dataflow": name, "number": entry.number, **handled, "entry": entry.as_json()}
    context.emit(document, lambda: print_entries([entry]))
