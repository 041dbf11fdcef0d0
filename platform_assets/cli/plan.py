"""``strandline plan``: what the next run would do and why. Changes nothing, starts neither Dagster nor Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.plan import counted
from platform_assets.cli.context import Context, shared
from platform_assets.cli.several import each
from platform_assets.platform import build_platform
from resources.loop.outcome import error_json

_SHOWN = 12


@click.command("plan")
@click.argument("names", nargs=-1)
@shared
def command(context: Context, names: tuple[str, ...]) -> int:
    """Show what the next run would do, and why."""
    flows, broken = context.asked(names)
    platform, now = build_platform(context.project), context.now or datetime.now(UTC)

    def answer(flow: Dataflow) -> dict[str, Any]:
        return dict(platform.plan(flow, now).as_json())

    documents, code = each(flows, answer, _failed, broken)
    context.emit(documents, lambda: _people(context, documents))
    return code


def _failed(flow: Dataflow, error: StrandlineError) -> dict[str, Any]:
    empty: dict[str, Any] = {
        "state_number": None,
        "now": None,
        "due": False,
        "why": error.message,
        "slices": [],
        "skips": [],
        "warnings": [],
    }
    return {"dataflow": flow.name, "kind": flow.kind, **empty, "error": error_json(error)}


def _people(context: Context, documents: list[dict[str, Any]]) -> None:
    for document in documents:
        if "why" not in document:  # its file has errors
            click.secho(f"{document['dataflow']}: {document['error']['message']}", fg="red")
            context.offer(["strandline validate"])
            continue
        click.secho(f"{document['dataflow']}: {document['why']}", bold=True)
        pieces = document["slices"]
        for number, piece in enumerate(pieces[:_SHOWN], 1):
            click.echo(f"  {_work_unit(piece) if 'window' in piece else _files(number, piece['files'])}")
        if len(pieces) > _SHOWN:
            what = "work units" if "window" in pieces[0] else "slices"
            click.echo(f"  … and {len(pieces) - _SHOWN:,} more {what} (--json shows all)")
        for skip in document["skips"][:_SHOWN]:
            click.echo(f"  left alone: {skip['what']}: {skip['why']}")
        for warning in document["warnings"]:
            click.secho(f"  warning: {warning}", fg="yellow")
        context.offer((document.get("error") or {}).get("choices", ()))


def _files(number: int, files: list[str]) -> str:
    span = files[0] if len(files) == 1 else f"{files[0]} … {files[-1]}"
    return f"slice {number}: {counted(len(files), 'file')}, {span}"


def _work_unit(piece: dict[str, Any]) -> str:
    """A window of a unit, what of it is read where that is not all, and why."""
    window, read = piece["window"], piece["read"]
    unit = ", ".join(f"{name} {value}" for name, value in piece["unit"].items())
    span = f"[{window['start']}, {window['end']})" if window["start"] else ""
    part = f", read from {read['start']} on" if read["start"] != window["start"] else ""
    return f"{piece['reason']:<6}  {' '.join(filter(None, (span, unit))) or 'everything'}{part}"
