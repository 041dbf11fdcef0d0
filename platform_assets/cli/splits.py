"""``strandline splits``: removes or merges splits of a stream (docs/reference/streams.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.deciding import REASON, YES, apply_decision
from platform_assets.kinds import PROFILES

if TYPE_CHECKING:
    from resources.kinds.all_decisions import DraftBuilder


@click.group("splits")
def command() -> None:
    """Remove or merge splits of a stream."""


@command.command("remove")
@click.argument("name")
@click.argument("splits", nargs=-1, required=True)
@REASON
@YES
@shared_options
def remove(context: Context, name: str, splits: tuple[str, ...], reason: str, yes: bool) -> None:
    """Remove SPLITS: the global watermark no longer waits for them."""
    from resources.kinds.stream.splits import remove_splits

    _apply(context, name, remove_splits(reason, splits), reason, yes)


@command.command("merge")
@click.argument("name")
@click.argument("splits", nargs=-1, required=True)
@click.option("--into", required=True, metavar="NEW", help="Name of the merged split.")
@REASON
@YES
@shared_options
def merge(context: Context, name: str, splits: tuple[str, ...], into: str, reason: str, yes: bool) -> None:
    """Merge SPLITS into one, with the maximum of their watermarks."""
    from resources.kinds.stream.splits import merge_splits

    _apply(context, name, merge_splits(reason, splits, into), reason, yes)


def _apply(context: Context, name: str, build_draft: DraftBuilder, reason: str, yes: bool) -> None:
    entry = apply_decision(context, name, build_draft, reason, yes)
    document = {"dataflow": name, "number": entry.number, "entry": entry.as_json(short=True)}
    watermark = PROFILES[entry.kind].entry_watermark(entry)
    context.emit(document, lambda: click.echo(f"{name}: entry {entry.number}: {watermark}"))
