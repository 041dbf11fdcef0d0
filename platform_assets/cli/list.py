"""``strandline list``: how every dataflow stands, from the watermark log alone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from platform_assets.cli.context import Context, shared
from platform_assets.cli.several import each
from platform_assets.file_views import aside
from platform_assets.platform import build_platform
from platform_assets.words import held_in_words, in_words
from resources.loop.lease import held_by
from resources.loop.outcome import error_json

_NONE = {"late": {"count": 0, "paths": []}, "quarantined": {"count": 0, "files": []}}


@click.command("list")
@click.argument("names", nargs=-1)
@shared
def command(context: Context, names: tuple[str, ...]) -> int:
    """Show all dataflows: kind, target, state, watermark, lag, last run."""
    log, now = build_platform(context.project).log, context.now or datetime.now(UTC)

    def answer(flow: Dataflow) -> dict[str, Any]:
        entry = log.newest(flow.name)
        public = entry.as_json() if entry else {}
        lag = round(now.timestamp() - entry.modified / 1000, 3) if entry and entry.modified else None
        known = {
            "state_number": entry.number if entry else 0,
            "watermark": public.get("watermark"),
            "lag_seconds": lag,
            "last_run": public.get("time"),
        }
        return {
            "dataflow": flow.name,
            "kind": flow.kind,
            "target": flow.table,
            **known,
            **aside(log, flow, entry, now),
            "held_by": held_by(log, flow.name, entry),
        }

    documents, code = each(context.dataflows(names), answer, _failed)
    context.emit(documents, lambda: _people(context, documents))
    return code


def _failed(flow: Dataflow, error: StrandlineError) -> dict[str, Any]:
    unknown = {"state_number": None, "watermark": None, "lag_seconds": None, "last_run": None}
    return {
        "dataflow": flow.name,
        "kind": flow.kind,
        "target": flow.table,
        **unknown,
        **_NONE,
        "held_by": None,
        "error": error_json(error),
    }


def _people(context: Context, documents: list[dict[str, Any]]) -> None:
    from rich.table import Column, Table

    names = ("dataflow", "kind", "target", "state", "watermark", "lag", "last run", "late", "quarantined")
    table = Table(*(Column(name, overflow="fold") for name in names))  # a cut watermark cannot be used
    for document in documents:
        error, watermark = document.get("error"), document["watermark"] or {}
        shown = (
            error["message"]
            if error
            else watermark.get("path") or (in_words(watermark) if watermark else "-")
        )
        lag = "-" if document["lag_seconds"] is None else f"{document['lag_seconds']:.0f} s"
        table.add_row(
            document["dataflow"],
            document["kind"],
            document["target"],
            "-" if error else str(document["state_number"]),
            shown,
            lag,
            document["last_run"] or "-",
            str(document["late"]["count"] or "-"),
            str(document["quarantined"]["count"] or "-"),
        )
    context.console.print(table)
    for document in documents:
        _people_aside(document)


def _people_aside(document: dict[str, Any]) -> None:
    for path in document["late"]["paths"]:
        click.echo(f"  {document['dataflow']}: late: {path}")
    if holder := document.get("held_by"):
        click.echo(f"  {document['dataflow']}: {held_in_words(holder)}")
    for held in document["quarantined"]["files"]:
        click.echo(f"  {document['dataflow']}: quarantined: {held['path']}: {held['reason']}")
