"""``strandline ledger``: what is covered and missing: of each unit of windows, and of files."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.plan import counted
from platform_assets.cli.context import Context, shared
from platform_assets.cli.several import each
from platform_assets.file_views import file_ledger
from platform_assets.platform import build_platform
from platform_assets.words import in_words
from resources.loop.outcome import error_json

_SHOWN = 50


@click.command("ledger")
@click.argument("names", nargs=-1, required=True)
@shared
def command(context: Context, names: tuple[str, ...]) -> int:
    """Show what is loaded, what is missing and why, and how far it is complete: of each unit, or of files."""
    platform, now = build_platform(context.project), context.now or datetime.now(UTC)

    def answer(flow: Dataflow) -> dict[str, Any]:
        if flow.kind == "path":
            return file_ledger(platform, flow, now)
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
        if "covered" in document:
            _files(context, document)
            continue
        gaps = sum(len(unit["gaps"]) for unit in document["units"])
        upto = (
            f"complete up to {document['complete_up_to']}"
            if document["complete_up_to"]
            else "nothing is complete"
        )
        click.secho(f"{document['dataflow']}: {upto}, {len(document['units'])} units, {gaps} gaps", bold=True)
        table = Table("unit", "complete up to", "gaps", "overlaps")
        for unit in document["units"][:_SHOWN]:
            table.add_row(
                _words(unit), unit["complete_up_to"] or "-", _told(unit["gaps"]), _told(unit["overlaps"])
            )
        context.console.print(table)
        if len(document["units"]) > _SHOWN:
            click.echo(f"  … and {len(document['units']) - _SHOWN:,} more units (--json shows all)")


def _files(context: Context, document: dict[str, Any]) -> None:
    """The range that a path watermark covers, and what is missing below it."""
    covered, late, quarantined = (document[key] for key in ("covered", "late", "quarantined"))
    start = in_words(covered["after"]) if covered["after"] else "the beginning"
    span = (
        f"covered from {start} up to {in_words(covered['up_to'])}"
        if covered["up_to"]
        else "nothing is covered"
    )
    amount = f"{counted(covered['files'], 'file')}, {counted(covered['rows'], 'row')}"
    click.secho(f"{document['dataflow']}: {span}: {amount}", bold=True)
    if document["verified_at"]:
        verified = document["verified_up_to"]
        upto = verified if isinstance(verified, str) else in_words(verified)
        click.echo(f"  all paths up to {upto} verified at {document['verified_at']}")
    elif context.dataflows([document["dataflow"]])[0].path.tracking == "set":
        click.echo("  tracking: set: each run looks at all files, so none is late")
    else:
        click.echo("  not verified yet: no round of the sweep is over. It goes a step with")
        context.offer([f"strandline late {document['dataflow']}"], 4)
    for path in late["paths"]:
        click.echo(f"  late: {path}")
    _more(late["count"], len(late["paths"]), "late file")
    for one in quarantined["files"]:
        click.echo(f"  quarantined: {one['path']}: {one['reason']}")
    _more(quarantined["count"], len(quarantined["files"]), "quarantined file")


def _more(count: int, shown: int, what: str) -> None:
    if count > shown:
        click.echo(f"  … and {counted(count - shown, f'more {what}')}")


def _words(unit: dict[str, Any]) -> str:
    named = ", ".join(f"{name} {value}" for name, value in unit["unit"].items()) or "-"
    return f"{named} (gone)" if unit["gone"] else named


def _told(ranges: list[dict[str, Any]]) -> str:
    shown = [
        f"[{one['start']}, {one['end']}){': ' + one['why'] if 'why' in one else ''}" for one in ranges[:3]
    ]
    more = [f"and {len(ranges) - 3:,} more"] if len(ranges) > 3 else []
    return "\n".join([*shown, *more]) or "-"
