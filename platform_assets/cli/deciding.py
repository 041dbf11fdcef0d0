"""Append a decision from a command: show its effect, ask for confirmation, and append it."""

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
GONE = click.option(
    "--gone",
    "gone_files",
    type=click.Choice(["delete", "keep"]),
    help="If rows are replaced: what happens to rows of files that no longer exist at the source.",
)
DELETED = click.option(
    "--deleted",
    type=click.Choice(["load"]),
    help="Rows that others deleted from the table may come back: load.",
)
YES = click.option("--yes", is_flag=True, help="Skip the confirmation prompt.")


def apply_decision(context: Context, name: str, build_draft: DraftBuilder, reason: str, yes: bool) -> Entry:
    """Show the effect of a decision, ask unless ``yes``, and return the appended entry."""
    from resources.kinds.all_decisions import decide, preview

    (flow,) = context.dataflows([name])
    # The decision may have to fence an unfinished slice in the table, for which Spark starts.
    platform = writing_platform(context)
    words = partial(stored_in_words, flow.kind)
    effect = preview(platform, flow, build_draft, context.now or datetime.now(UTC), in_words=words)
    print_effect(f"{name}: {effect.draft.entry.why}", effect.lines)
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
    """Show what promoting or dropping an isolated replay does, ask unless ``yes``, and do it.

    Args:
        context: the command's context.
        name: the dataflow.
        table: the replay's table.
        verb: the command's name.
        preview: returns the lines to show.
        end: ends the replay.
        reason: the operator's reason.
        yes: whether to skip the prompt.

    Returns:
        the result of ``end``.
    """
    (flow,) = context.dataflows([name])
    platform = writing_platform(context)
    print_effect(f"{name}: {verb} {table}", preview(platform, flow, table))
    if not yes:
        confirm(f"{verb.capitalize()} it?")
    return end(platform, flow, table, reason, context.now or datetime.now(UTC))


def writing_platform(context: Context) -> Platform:
    """Return the project's resources for a command that writes, which shows on stderr that Spark starts."""
    return build_platform(context.project, lambda line: click.echo(f"  {line}", err=True))


def print_effect(title: str, lines: Iterable[str]) -> None:
    """Show what a decision would do, on stderr."""
    click.echo(title, err=True)
    for line in lines:
        click.echo(f"  {line}", err=True)


def confirm(question: str) -> None:
    """Ask a question; return only after a yes.

    Raises:
        Abort: if the answer is no.
        ConfigurationError: if there is no terminal to ask at.
    """
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin is not None and sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise ConfigurationError(
            f"expected an answer to {question!r}, found no terminal. Run again with --yes, which skips the "
            "question"
        ) from None
    if not agreed:
        raise click.Abort
