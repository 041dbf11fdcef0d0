"""``strandline stream``: flushes the buffer of a stream whose input has ended."""

from __future__ import annotations

from typing import Any

import click

from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.deciding import YES, apply_decision


@click.group("stream")
def command() -> None:
    """Flush the buffered rows of a stream."""


@command.command("flush")
@click.argument("name")
@click.option(
    "--before", metavar="T", help="Flush only rows below this event time; without it all buffered rows."
)
@click.option("--reason", help="Reason for the decision; stored in the log.")
@YES
@shared_options
def flush(context: Context, name: str, before: str | None, reason: str | None, yes: bool) -> int:
    """Raise the global watermark of NAME, and load the rows that leave the buffer."""
    from platform_assets.cli.running import Runner, instance, print_outcome
    from platform_assets.kinds import PROFILES
    from resources.kinds.stream.flush import NothingWaits
    from resources.kinds.stream.flush import flush as build_flush

    decision_reason = (
        reason if reason is not None else f"no more rows below {before}" if before else "input has ended"
    )
    document: dict[str, Any] = {"dataflow": name, "number": None, "entry": None, "run": None}
    try:
        entry = apply_decision(context, name, build_flush(decision_reason, before), decision_reason, yes)
    except NothingWaits as refusal:
        message = refusal.message
        context.emit(document, lambda: click.echo(message))
        return 0
    watermark = PROFILES[entry.kind].entry_watermark(entry)
    click.echo(f"{name}: entry {entry.number}: {watermark}", err=True)
    (flow,) = context.dataflows([name])
    with instance(context.project) as dagster:
        outcome = Runner(context.project, [flow], dagster, now=context.now).run(flow)
    document |= {"number": entry.number, "entry": entry.as_json(short=True), "run": outcome.as_json()}
    context.emit(document, lambda: print_outcome(context, outcome))
    return outcome.error.exit_code if outcome.error else 0
