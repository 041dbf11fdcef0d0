"""How a command appends a decision: it shows the effect, asks, and appends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import click

from partitions.errors import ConfigurationError
from platform_assets.cli.context import Context
from platform_assets.platform import build_platform
from platform_assets.words import stored_in_words

if TYPE_CHECKING:
    from partitions.dataflow import Dataflow
    from resources.kinds.all_decisions import DraftBuilder
    from resources.platform.platform import Platform
    from resources.watermarks.entry import Entry

T = TypeVar("T")

REASON = click.option("--reason", required=True, help="Reason for the decision; stored in the log.")
YES = click.option("--yes", is_flag=True, help="Skip the confirmation prompt.")


def apply_decision(context: Context, name: str, build_draft: DraftBuilder, reason: str, yes: bool) -> Entry:
    """Show the effect of a decision, ask unless ``yes``, and return the entry that it appends."""
    from resources.kinds.all_decisions import decide, preview

    (flow,) = context.dataflows([name])
    # An unfinished slice of a run is fenced in the table, which takes Spark.
    platform = _platform(context)
    words = partial(stored_in_words, flow.kind)
    shown = preview(platform, flow, build_draft, context.now or datetime.now(UTC), in_words=words)
    _show(f"{name}: {shown.draft.entry.why}", shown.lines)
    if not yes:
        confirm("Append this entry?")
    return decide(platform, flow, build_draft, reason)


def end_replay(
    context: Context,
    name: str,
    table: str,
    verb: str,
    preview: Callable[[Platform, Dataflow, str], Sequence[str]],
    end: Callable[[Platform, Dataflow, str, str, datetime], T],
    reason: str,
    yes: bool,
) -> T:
    """Show what the end of a replay aside does, ask unless ``yes``, and return what it did.

    Args:
        context: of the command.
        name: of the dataflow.
        table: of the replay.
        verb: the command's.
        preview: returns the lines to show.
        end: does it.
        reason: for the log.
        yes: whether nobody is asked.
    """
    (flow,) = context.dataflows([name])
    platform = _platform(context)
    _show(f"{name}: {verb} {table}", preview(platform, flow, table))
    if not yes:
        confirm(f"{verb.capitalize()} it?")
    return end(platform, flow, table, reason, context.now or datetime.now(UTC))


def _platform(context: Context) -> Platform:
    return build_platform(context.project, lambda line: click.echo(f"  {line}", err=True))


def _show(title: str, lines: Iterable[str]) -> None:
    click.echo(title, err=True)
    for line in lines:
        click.echo(f"  {line}", err=True)


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
