"""``strandline ledger``: shows what is covered and missing, by unit of windows or partition of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import click

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError, strip_dataflow
from partitions.instants import time_text
from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.several import collect_results
from platform_assets.kinds import profile_of
from platform_assets.kinds.profile import LedgerPage, LedgerRequest
from platform_assets.ledger_files.csv_text import csv_text
from platform_assets.ledger_files.html_page import Heading, Section, html_page
from platform_assets.ledger_files.retention import retention_document, retention_in_words
from platform_assets.ledger_files.rows import ledger_rows
from platform_assets.platform import build_platform
from platform_assets.words import comparison_in_words
from resources.notes.reconciled import Verified, compared
from resources.outcome import error_json

_FORMATS = ("table", "csv", "json", "html")


@click.command("ledger")
@click.argument("names", nargs=-1, required=True)
@click.option("--from", "start", metavar="A", help="From this instant or partition on, inclusive.")
@click.option("--to", "end", metavar="B", help="Up to this instant or partition, exclusive.")
@click.option("--compare", is_flag=True, help="List the source, and compare it with what was loaded.")
@click.option("--format", "form", type=click.Choice(_FORMATS), default="table", help="The form of stdout.")
@shared_options
def command(
    context: Context, names: tuple[str, ...], start: str | None, end: str | None, compare: bool, form: str
) -> int:
    """Show what is loaded, what is missing and why, for each unit or partition."""
    if context.as_json and form not in ("table", "json"):
        raise click.UsageError(f"expected --json or --format {form}, found both")
    platform, now = build_platform(context.project), context.now or datetime.now(UTC)
    request = LedgerRequest(now, start, end, compare)

    def answer(flow: Dataflow) -> dict[str, Any]:
        document = profile_of(flow).ledger(platform, flow, request)
        comparisons = [comparison.as_json() for comparison in compared(platform.log, flow.name)]
        retained = retention_document(platform.log, flow, now)
        return {**document, "retention": retained, "compared": comparisons}

    flows = context.dataflows(names)
    documents, code = collect_results(flows, answer, _failed)
    match form:
        case "csv":
            context.write(csv_text(row for document in documents for row in ledger_rows(document)))
        case "html":
            context.write(_html(context, flows, documents, request))
        case _:
            context.as_json = context.as_json or form == "json"
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
            click.secho(f"{flow.name}: {strip_dataflow(flow.name, error['message'])}", fg="red")
        else:
            _print_page(context, profile_of(flow).ledger_page(flow, document))
            if retention := document["retention"]:
                click.echo(f"  {retention_in_words(retention)}")
            for line in _compared_in_words(flow, document):
                click.echo(f"  {line}")


def _compared_in_words(flow: Dataflow, document: Mapping[str, Any]) -> list[str]:
    return [
        comparison_in_words(flow.kind, Verified.of(comparison)) for comparison in document.get("compared", ())
    ]


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
    for line in (*filter(None, [page.hidden]), *page.more_lines):
        click.echo(line)


def _html(
    context: Context,
    flows: Sequence[Dataflow],
    documents: Sequence[Mapping[str, Any]],
    request: LedgerRequest,
) -> str:
    """Return the ledgers as one HTML page."""
    bounds = [
        f"{name} {value}" for name, value in (("from", request.start), ("to before", request.end)) if value
    ]
    heading = Heading(
        context.project.folder.name,
        time_text(datetime.now(UTC)),
        time_text(request.now),
        _version(),
        " ".join(bounds) or None,
    )
    return html_page(heading, [_section(*pair) for pair in zip(flows, documents, strict=True)])


def _section(flow: Dataflow, document: Mapping[str, Any]) -> Section:
    if error := document.get("error"):
        page = LedgerPage(error["message"])
    else:
        page = profile_of(flow).ledger_page(flow, document)
    facts = {"Table": flow.table, "Source": flow.source.label, "Watermark": flow.kind}
    if "state_number" in document:
        facts["State"] = f"{document['state_number']}"
    if retention := document.get("retention"):
        facts["Retention"] = retention_in_words(retention)
    if lines := _compared_in_words(flow, document):
        facts["Compared"] = "; ".join(lines)
    return Section(flow.name, facts, page, list(ledger_rows(document)))


def _version() -> str:
    try:
        return metadata.version("strandline")
    except metadata.PackageNotFoundError:
        return "of a checkout"
