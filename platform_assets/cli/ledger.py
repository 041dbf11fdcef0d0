"""``strandline ledger``: shows what is covered and missing, by unit of windows, or of files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.several import collect_results
from platform_assets.kinds import profile_of
from platform_assets.kinds.profile import LedgerPage
from platform_assets.platform import build_platform
from resources.outcome import error_json


@click.command("ledger")
@click.argument("names", nargs=-1, required=True)
@shared_options
def command(context: Context, names: tuple[str, ...]) -> int:
    """Show what is loaded, what is missing and why, for each unit or for files."""
    platform, now = build_platform(context.project), context.now or datetime.now(UTC)

    def answer(flow: Dataflow) -> dict[str, Any]:
        return profile_of(flow).ledger(platform, flow, now)

    flows = context.dataflows(names)
    documents, code = collect_results(flows, answer, _failed)
    context.emit(documents, lambda: _print(context, flows, documents))
    return code


def _failed(flow: Dataflow, error: StrandlineError) -> dict[str, Any]:
    return {
        "dataflow": flow.name,
        "now": None,
        "complete_up_to": None,
        "units": [],
        "error": error_json(error),
    }


def _print(context: Context, flows: Sequence[Dataflow], documents: Sequence[dict[str, Any]]) -> None:
    for flow, document in zip(flows, documents, strict=True):
        if error := document.get("error"):
            click.secho(f"{flow.name}: {error['message']}", fg="red")
        else:
            _print_page(context, profile_of(flow).ledger_page(flow, document))


def _print_page(context: Context, page: LedgerPage) -> None:
    click.secho(page.heading, bold=True)
    for line in page.lines:
        click.echo(line)
    context.offer(page.commands, 4)
    if page.columns:
        from rich.table import Table

        table = Table(*page.columns)
        for row in page.rows:
            table.add_row(*row)
        context.console.print(table)
    for line in page.more_lines:
        click.echo(line)
