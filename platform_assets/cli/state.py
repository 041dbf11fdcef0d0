"""``strandline state``: what the watermark log knows of a dataflow, and decisions by hand."""

from __future__ import annotations

from collections.abc import Callable

import click

from partitions.dataflow import Dataflow
from partitions.plan import counted
from platform_assets.cli.context import Context, shared
from platform_assets.platform import build_platform
from resources.decisions import accept, reset
from resources.platform import Platform
from resources.watermarks.entry import Entry

_REASON = click.option("--reason", required=True, help="Why; it stays in the log.")
_YES = click.option("--yes", is_flag=True, help="Do not ask.")


@click.group("state")
def command() -> None:
    """Show the state of a dataflow, or decide about it."""


@command.command("show")
@click.argument("name")
@shared
def show(context: Context, name: str) -> None:
    """Show the newest entry."""
    (flow,) = context.dataflows([name])
    entry = build_platform(context.project).log.newest(name)
    public = entry.as_json() if entry else None
    document = {
        "dataflow": flow.name,
        "number": entry.number if entry else 0,
        "watermark": public and public["watermark"],
        "entry": public,
    }
    context.emit(document, lambda: _people([entry] if entry else []))


@command.command("history")
@click.argument("name")
@click.option(
    "--limit", default=1000, show_default=True, type=click.IntRange(1), help="How many entries, newest first."
)
@shared
def history(context: Context, name: str, limit: int) -> None:
    """Show the entries, newest first."""
    context.dataflows([name])
    entries = list(build_platform(context.project).log.history(name, limit))
    context.emit([entry.as_json() for entry in entries], lambda: _people(entries))


@command.command("reset")
@click.argument("name")
@_REASON
@_YES
@shared
def reset_command(context: Context, name: str, reason: str, yes: bool) -> None:
    """Append an empty watermark: the next run loads everything that is there."""
    _decide(
        context,
        name,
        yes,
        lambda platform, flow: reset(platform, flow, reason),
        "Everything at the source will be loaded (again) by the next run.",
    )


@command.command("accept")
@click.argument("name")
@_REASON
@_YES
@shared
def accept_command(context: Context, name: str, reason: str, yes: bool) -> None:
    """Agree to a changed definition: the watermark stays, and a slice that a run left unfinished is given up."""
    _decide(
        context,
        name,
        yes,
        lambda platform, flow: accept(platform, flow, reason),
        "The watermark stays, under the definition as it is now.",
    )


def _decide(
    context: Context, name: str, yes: bool, act: Callable[[Platform, Dataflow], Entry], effect: str
) -> None:
    (flow,) = context.dataflows([name])
    # A slice that a run left unfinished is given up in the table, which takes Spark.
    platform = build_platform(context.project, lambda line: click.echo(f"  {line}", err=True))
    if not yes:
        click.echo(f"{name}: {effect}", err=True)
        click.confirm("Append this entry?", abort=True, err=True)
    entry = act(platform, flow)
    context.emit(
        {"dataflow": name, "number": entry.number, "entry": entry.as_json()}, lambda: _people([entry])
    )


def _people(entries: list[Entry]) -> None:
    if not entries:
        click.echo("no entry: nothing was loaded yet")
    for entry in entries:
        reason = f" ({entry.reason})" if entry.reason else ""
        click.echo(
            f"{entry.number:>6}  {entry.time}  {entry.why}{reason}  {counted(entry.rows, 'row')}, {counted(entry.files, 'file')}"
            f"  {entry.watermark}"
        )
