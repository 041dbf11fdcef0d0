"""``strandline stream``: what waits in a stream whose input has ended comes out (docs/reference/streams.md, When input ends)."""

from __future__ import annotations

from typing import Any

import click

from platform_assets.cli.context import Context, shared
from platform_assets.cli.deciding import YES, apply_decision


@click.group("stream")
def command() -> None:
    """Let out what waits in a stream."""


@command.command("flush")
@click.argument("name")
@click.option(
    "--before", metavar="T", help="Only what lies below this event time; without it all that waits."
)
@click.option("--reason", help="Reason for the decision; stored in the log.")
@YES
@shared
def flush(context: Context, name: str, before: str | None, reason: str | None, yes: bool) -> int:
    """Raise the global watermark of NAME, and load what leaves then."""
    from platform_assets.cli.running import Runner, instance, print_outcome
    from platform_assets.kinds import PROFILES
    from resources.kinds.stream.flush import NothingWaits
    from resources.kinds.stream.flush import flush as flushing

    why = (
        reason
        if reason is not None
        else f"nothing below {before} comes any more"
        if before
        else "input has ended"
    )
    document: dict[str, Any] = {"dataflow": name, "number": None, "entry": None, "run": None}
    try:
        entry = apply_decision(context, name, flushing(why, before), why, yes)
    except NothingWaits as nothing:
        message = nothing.message
        context.emit(document, lambda: click.echo(message))
        return 0
    said = PROFILES[entry.kind].entry_watermark(entry)
    click.echo(f"{name}: entry {entry.number}: {said}", err=True)
    (flow,) = context.dataflows([name])
    with instance(context.project.folder) as kept:
        outcome = Runner(context.project, [flow], kept, now=context.now).run(flow)
    document |= {"number": entry.number, "entry": entry.as_json(short=True), "run": outcome.as_json()}
    context.emit(document, lambda: print_outcome(context, outcome))
    return outcome.error.exit_code if outcome.error else 0
