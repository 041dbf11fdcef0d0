"""``strandline simulate``: shows what each grace would have caught and read again."""

from __future__ import annotations

from typing import Any

import click

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.plan import pluralize
from partitions.window.simulate import graces_of
from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.several import collect_results
from platform_assets.kinds import require_profile
from platform_assets.kinds.profile import CanSimulate
from platform_assets.platform import build_platform
from resources.outcome import error_json


@click.command("simulate")
@click.argument("names", nargs=-1, required=True)
@click.option(
    "--grace",
    default="P0D..P7D",
    show_default=True,
    help="Candidates: a range of days, or durations separated by commas.",
)
@shared_options
def command(context: Context, names: tuple[str, ...], grace: str) -> int:
    """Show which late changes each grace would have caught, and what it would have read again."""
    log, graces = build_platform(context.project).log, graces_of(grace)

    def answer(flow: Dataflow) -> dict[str, Any]:
        return require_profile(flow, CanSimulate).simulate(log, flow, graces)

    documents, code = collect_results(context.dataflows(names), answer, _failed)
    context.emit(documents, lambda: _print(context, documents))
    return code


def _failed(flow: Dataflow, error: StrandlineError) -> dict[str, Any]:
    empty: dict[str, Any] = {
        "observed": None,
        "graces": [],
        "recommended": None,
        "catches_99_percent": None,
        "why": error.message,
    }
    return {"dataflow": flow.name, **empty, "error": error_json(error)}


def _print(context: Context, documents: list[dict[str, Any]]) -> None:
    from rich.table import Table

    for document in documents:
        click.secho(f"{document['dataflow']}: {document['why']}", bold=True)
        if not (observed := document["observed"]) or not observed["reads"]:
            continue
        click.echo(
            f"  observed: {pluralize(observed['reads'], 'read')} of {pluralize(observed['windows'], 'work unit')}, {pluralize(observed['changes'], 'change')}, {observed['from']} … {observed['to']}"
        )
        table = Table("grace", "caught", "missed", "rows", "read again")
        for row in document["graces"]:
            mark = " <-" if row["grace"] == document["recommended"] else ""
            cells = (row[name] for name in ("caught", "missed", "caught_rows", "reread_windows"))
            table.add_row(f"{row['grace']}{mark}", *(f"{cell:,}" for cell in cells))
        context.console.print(table)
