"""How a command appends a decision: it shows the effect, asks, and appends."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from partitions.errors import ConfigurationError
from platform_assets.cli.context import Context
from platform_assets.platform import build_platform
from platform_assets.words import stored_in_words

if TYPE_CHECKING:
    from resources.kinds.all_decisions import DraftBuilder
    from resources.watermarks.entry import Entry

REASON = click.option("--reason", required=True, help="Reason for the decision; stored in the log.")
YES = click.option("--yes", is_flag=True, help="Skip the confirmation prompt.")


def apply_decision(context: Context, name: str, build_draft: DraftBuilder, reason: str, yes: bool) -> Entry:
    """Show the effect of a decision, ask unless ``yes``, and return the entry that it appends."""
    from resources.kinds.all_decisions import decide, preview

    (flow,) = context.dataflows([name])
    # An unfinished slice of a run is fenced in the table, which takes Spark.
    platform = build_platform(context.project, lambda line: click.echo(f"  {line}", err=True))
    words = partial(stored_in_words, flow.kind)
    shown = preview(platform, flow, build_draft, context.now or datetime.now(UTC), in_words=words)
    click.echo(f"{name}: {shown.draft.entry.why}", err=True)
    for line in shown.lines:
        click.echo(f"  {line}", err=True)
    if not yes:
        confirm("Append this entry?")
    return decide(platform, flow, build_draft, reason)


def confirm(question: str) -> None:
    """Ask, and go on only after a yes.

    Raises:
        Abort: the answer is no.
        ConfigurationError: nobody can answer.
    """
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin is not None and sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise ConfigurationError(
            f"expected an answer to {question!r}, found no terminal to ask at; --yes goes on without asking"
        ) from None
    if not agreed:
        raise click.Abort
