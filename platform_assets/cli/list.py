"""``strandline list``: the status of every dataflow, as :mod:`platform_assets.cli.gathering` finds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from partitions.errors import strip_dataflow
from partitions.instants import time_text
from partitions.plan import format_duration, pluralize
from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.gathering import StatusGathering, dagster_runs, unknown_status
from platform_assets.cli.several import collect_results
from platform_assets.kinds import PROFILES
from platform_assets.kinds.profile import HasStreamStatus
from platform_assets.platform import build_platform
from platform_assets.words import comparison_in_words, failed_until_now, holder_in_words, in_words
from resources.notes.reconciled import Verified

_LONGEST = 32
"""The longest word that is not broken in a cell: an instant with its zone, most names."""
_BORDER = 3
_IF_ANY = ("late", "quarantined")
"""Columns that are shown only if a dataflow has a value in them."""
_UNDECIDED = ("held", "skipped", "running", "queued")
_ENDED_WELL = ("committed", "nothing", "recovered")


@click.command("list")
@click.argument("names", nargs=-1)
@shared_options
def command(context: Context, names: tuple[str, ...]) -> int:
    """Show all dataflows: state, watermark, lag, waiting data, last attempt and run, and bad files."""
    flows, broken = context.valid_and_broken(names)
    now = context.now or datetime.now(UTC)
    with dagster_runs(context.project) as dagster:
        gathering = StatusGathering(build_platform(context.project), now, dagster, is_now=context.now is None)
        documents, code = collect_results(flows, gathering.status, unknown_status, broken)
    context.emit(documents, lambda: _print(context, documents, gathering.entry_kinds, datetime.now(UTC)))
    return code


def _print(
    context: Context, documents: list[dict[str, Any]], entry_kinds: Mapping[str, str], now: datetime
) -> None:
    from rich.table import Column, Table

    names = (
        "dataflow",
        "kind",
        "target",
        "state",
        "watermark",
        "lag",
        "waits",
        "last attempt",
        "last entry",
        "late",
        "quarantined",
    )
    rows = [
        _row(document, entry_kinds.get(document["dataflow"]), now)
        if "watermark" in document
        else (document["dataflow"], *["-"] * 6, "broken file", *["-"] * 3)
        for document in documents
    ]
    columns = [
        cells for cells in zip(names, *rows, strict=True) if cells[0] not in _IF_ANY or set(cells[1:]) - {"-"}
    ]
    # A cut watermark is useless, and one that breaks within an instant is hard to read.
    widths = [_longest_word(cells) for cells in columns]
    fits = sum(widths) + _BORDER * len(widths) < context.console.width
    table = Table(
        *(
            Column(cells[0], overflow="fold", min_width=width if fits else None)
            for cells, width in zip(columns, widths, strict=True)
        )
    )
    for row in zip(*(cells[1:] for cells in columns), strict=True):
        table.add_row(*row)
    context.console.print(table)
    for document in documents:
        _print_details(context, document, now)


def _row(document: dict[str, Any], entry_kind: str | None, now: datetime) -> tuple[str, ...]:
    watermark, lag = document["watermark"], document["lag_seconds"]
    return (
        document["dataflow"],
        document["kind"],
        document["target"],
        "-" if document["state_number"] is None else str(document["state_number"]),
        _watermark_cell(document, entry_kind) if watermark else "-",
        "-" if lag is None else format_duration(lag),
        _waiting_in_words(document),
        "unknown" if "error" in document else attempt_in_words(document["last_attempt"], now),
        _ago(document["last_run"], now) if document["last_run"] else "-",
        str(document["late"]["count"] or "-"),
        str(document["quarantined"]["count"] or "-"),
    )


def _watermark_cell(document: dict[str, Any], entry_kind: str | None) -> str:
    profile = PROFILES[document["kind"]]
    if entry_kind is None or PROFILES[entry_kind] is not profile:  # until a changed kind is accepted
        return in_words(entry_kind, document["watermark"])
    return profile.watermark_in_list(document["watermark"], document["waiting"])


def _waiting_in_words(document: dict[str, Any]) -> str:
    """Return the new data at the source and the number of buffered rows, in words."""
    new = PROFILES[document["kind"]].waiting_in_words(document["waiting"]) or "unknown"
    return f"{new}, {pluralize(document['buffered'], 'row')} buffered" if document["buffered"] else new


def _longest_word(cells: Sequence[str]) -> int:
    return min(_LONGEST, max((len(word) for cell in cells for word in cell.split()), default=0))


def attempt_in_words(attempt: dict[str, Any] | None, now: datetime) -> str:
    """Return how the last attempt ended and when, for a cell."""
    if attempt is None:
        return "none"
    status, since = attempt["status"], attempt["failing_since"]
    if attempt["source_answers"]:
        return "failed until now"
    if (
        since
        and attempt["error"]
        and not attempt["decided_since"]
        and status not in (*_UNDECIDED, "died", "stopped")
    ):
        return f"{status} for {format_duration(_seconds(since, now))}"
    return f"{'nothing new' if status == 'nothing' else status} {_ago(attempt['time'], now)}"


def _ago(time: str, now: datetime) -> str:
    return f"{format_duration(_seconds(time, now))} ago"


def _seconds(time: str, now: datetime) -> float:
    return now.timestamp() - datetime.fromisoformat(time).timestamp()


def _print_details(context: Context, document: dict[str, Any], now: datetime) -> None:
    """Print what does not fit into a cell, a line each."""
    name, attempt = document["dataflow"], document.get("last_attempt")
    error = document.get("error")
    if error:
        _problem(context, f"{name}: {strip_dataflow(name, error['message'])}", error["choices"])
    if "watermark" not in document:
        return
    if attempt and attempt["source_answers"]:
        click.secho(f"  {name}: {failed_until_now(attempt['failing_since'] or attempt['time'])}", fg="yellow")
    elif attempt and attempt["error"] and attempt["status"] not in _ENDED_WELL:
        decision, since = attempt["decided_since"], attempt["failing_since"]
        failing_since = f", failing since {time_text(since)}" if since else ""
        when = f", before the decision of entry {decision}" if decision else failing_since
        _problem(
            context,
            f"{name}: {attempt['status']} {_ago(attempt['time'], now)}{when}: {strip_dataflow(name, attempt['error']['message'])}",
            () if decision else attempt["error"]["choices"],
        )
    if why := document["waiting"]["why"]:
        last_error = attempt["error"]["message"] if attempt and attempt["error"] else None
        reason = "for the same reason" if why == last_error else strip_dataflow(name, why)
        _problem(context, f"{name}: waiting data unknown: {reason}")
    for warning in document["waiting"]["warnings"]:
        click.secho(f"  {name}: warning: {warning}", fg="yellow")
    if line := _stream_line(document):
        click.echo(f"  {name}: {line}")
    for path in document["late"]["paths"]:
        click.echo(f"  {name}: late: {path}")
    if holder := document.get("held_by"):
        click.echo(f"  {name}: {holder_in_words(holder)}")
    deletes = document["deletes"]
    if deletes["in_force"]:
        click.echo(
            f"  {name}: {pluralize(deletes['in_force'], 'delete')} in force, {pluralize(deletes['withheld'], 'row')} withheld"
        )
    if document["rejected"]:
        click.echo(f"  {name}: {pluralize(document['rejected'], 'rejected row')}: strandline rejected {name}")
    if verified := document["verified"]:
        _print_verified(document["kind"], name, verified)
    for replay in document["replays"]:
        progress = "complete: promote or drop it" if replay["complete"] else "not finished"
        click.echo(
            f"  {name}: replay into {replay['table']}: {replay['done']} of {pluralize(replay['chunks'], 'chunk')}, {progress}"
        )
    for file in document["quarantined"]["files"]:
        click.echo(f"  {name}: quarantined: {file['path']}: {file['reason']}")


def _print_verified(kind: str, name: str, document: dict[str, Any]) -> None:
    verified = Verified.of(document)
    click.secho(f"  {name}: {comparison_in_words(kind, verified)}", fg=None if verified.is_settled else "red")


def _stream_line(document: dict[str, Any]) -> str | None:
    """Return what the buffered rows of a stream wait for; None if none wait."""
    stream, profile = document["stream"], PROFILES[document["kind"]]
    return profile.waiting_line(stream) if stream and isinstance(profile, HasStreamStatus) else None


def _problem(context: Context, line: str, choices: list[str] | tuple[str, ...] = ()) -> None:
    click.secho(f"  {line}", fg="red")
    context.offer(choices, 4)
