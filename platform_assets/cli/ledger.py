"""``strandline ledger``: what is covered, missing and overlapping, unit by unit."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.window.coverage import Cause
from platform_assets.cli.context import Context, shared
from platform_assets.cli.several import each
from platform_assets.platform import build_platform
from resources.loop.outcome import error_json

_SHOWN = 50


@click.command("ledger")
@click.argument("names", nargs=-1, required=True)
@shared
def command(context: Context, names: tuple[str, ...]) -> int:
    """Show what is loaded of each unit, what is missing and why, and how far it is complete."""
    platform, now = build_platform(context.project), context.now or datetime.now(UTC)

    def answer(flow: Dataflow) -> dict[str, Any]:
        return platform.ledger(flow, now).as_json()

    documents, code = each(context.dataflows(names), answer, _failed)
    context.emit(documents, lambda: _people(context, documents))
    return code


def _failed(flow: Dataflow, error: StrandlineError) -> dict[str, Any]:
    return {
        "dataflow": flow.name,
        "now": None,
        "complete_up_to": None,
        "units": [],
        "error": error_json(error),
    }


def _people(context: Context, documents: list[dict[str, Any]]) -> None:
    from rich.table import Table

    for document in documents:
        if error := document.get("error"):
            click.secho(f"{document['dataflow']}: {error['message']}", fg="red")
            continue
        counts = document["counts"]
        upto = (
            f"complete up to {document['complete_up_to']}"
            if document["complete_up_to"]
            else "nothing is complete"
        )
        click.secho(
            f"{document['dataflow']}: {upto}, {counts['units']:,} units, {counts['gaps']:,} gaps", bold=True
        )
        table = Table("unit", "complete up to", "gaps", "overlaps")
        for unit in document["units"][:_SHOWN]:
            table.add_row(
                _words(unit), unit["complete_up_to"] or "-", _told(unit["gaps"]), _told(unit["overlaps"])
            )
        context.console.print(table)
        if len(document["units"]) > _SHOWN:
            click.echo(f"  … and {len(document['units']) - _SHOWN:,} more units (--json shows all)")


def _words(unit: dict[str, Any]) -> str:
    named = ", ".join(f"{name} {value}" for name, value in unit["unit"].items()) or "-"
    return f"{named} (gone)" if unit["gone"] else named


def _told(ranges: list[dict[str, Any]]) -> str:
    shown = [f"[{one['start']}, {one['end']}){_why(one)}" for one in ranges[:3]]
    more = [f"and {len(ranges) - 3:,} more"] if len(ranges) > 3 else []
    return "\n".join([*shown, *more]) or "-"


def _why(one: dict[str, Any]) -> str:
    return f": {Cause(one['why'], one.get('attempts'), one.get('error')).words}" if "why" in one else ""
