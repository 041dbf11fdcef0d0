"""``strandline list``: the status of every dataflow.

It comes from the log, the note of the last run, and a short check of the source.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError, strip_dataflow
from partitions.instants import time_text
from partitions.plan import format_duration, pluralize
from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.several import collect_results
from platform_assets.cli.waiting import UNKNOWN, WaitingWork
from platform_assets.file_views import late_and_quarantined_files
from platform_assets.kinds import PROFILES, profile_of
from platform_assets.kinds.profile import BuffersRows, CountsRowsSetAside, FindsLateFiles
from platform_assets.platform import build_platform
from platform_assets.words import holder_in_words, in_words
from resources.dagster.run_history import RunHistory
from resources.kinds.path.sweep import LateFiles
from resources.loop.lease import describe_holder
from resources.notes.last_run import Attempt, find_decision_since
from resources.outcome import error_json
from resources.replay.isolated.chunks import isolated_json
from resources.replay.isolated.standing import stored_replays
from resources.watermarks.deleted_rows import deletes_in_force
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog

if TYPE_CHECKING:
    from dagster import DagsterInstance

_NO_FILES = {"late": {"count": 0, "paths": []}, "quarantined": {"count": 0, "files": []}}
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
    platform, now = build_platform(context.project), context.now or datetime.now(UTC)
    log, waiting = platform.log, WaitingWork(platform, now)
    entry_kinds: dict[
        str, str
    ] = {}  # the state may be of another kind until a changed definition is accepted
    with _open_dagster(context.project.folder) as dagster:
        history = RunHistory(log, dagster)

        def answer(flow: Dataflow) -> dict[str, Any]:
            entry = log.newest(flow.name)
            attempt = history.last(flow.name, entry)
            if entry:
                entry_kinds[flow.name] = entry.kind
            return {
                **_identity(flow),
                **_state_columns(entry, now),
                "last_attempt": _attempt_json(log, flow.name, attempt),
                "waiting": waiting.of(flow, entry),
                **late_and_quarantined_files(log, entry, _late_files(log, flow, entry, now)),
                **_set_aside_rows(flow, entry),
                "buffered": _buffered(flow, entry),
                "held_by": describe_holder(log, flow.name, entry),
                "deletes": _deletes(log, entry),
                "replays": [isolated_json(log, aside) for aside in stored_replays(log, flow.name)],
            }

        documents, code = collect_results(flows, answer, _failed, broken)
    context.emit(documents, lambda: _print(context, documents, entry_kinds, datetime.now(UTC)))
    return code


def _attempt_json(log: WatermarkLog, dataflow: str, attempt: Attempt | None) -> dict[str, Any] | None:
    """Return an attempt with the number of the newest decision since, which may have solved its failure."""
    if attempt is None:
        return None
    decision = find_decision_since(log, dataflow, attempt.time) if attempt.error else None
    return {**attempt.as_json(), "decided_since": decision.number if decision else None}


def _identity(flow: Dataflow) -> dict[str, Any]:
    return {"dataflow": flow.name, "kind": flow.kind, "target": flow.table}


def _state_columns(entry: Entry | None, now: datetime) -> dict[str, Any]:
    entry_document = entry.as_json(short=True) if entry else {}
    return {
        "state_number": entry.number if entry else 0,
        "watermark": entry_document.get("watermark"),
        "lag_seconds": round(now.timestamp() - entry.modified / 1000, 3)
        if entry and entry.modified
        else None,
        "last_run": entry_document.get("time"),
    }


def _late_files(log: WatermarkLog, flow: Dataflow, entry: Entry | None, now: datetime) -> LateFiles:
    profile = profile_of(flow)
    return profile.late_files(log, flow, entry, now) if isinstance(profile, FindsLateFiles) else LateFiles()


def _set_aside_rows(flow: Dataflow, entry: Entry | None) -> dict[str, Any]:
    """Return how many rows were late and quarantined since the start, for a kind that counts rows."""
    profile = profile_of(flow)
    if not isinstance(profile, CountsRowsSetAside) or entry is None:
        return {}
    late, quarantined = profile.rows_set_aside(entry)
    return {"late": {"count": late, "paths": []}, "quarantined": {"count": quarantined, "files": []}}


def _buffered(flow: Dataflow, entry: Entry | None) -> int | None:
    """Return how many rows wait in the dataflow's buffer; None for a kind without one."""
    profile = profile_of(flow)
    return profile.rows_buffered(entry) if isinstance(profile, BuffersRows) and entry is not None else None


def _deletes(log: WatermarkLog, entry: Entry | None) -> dict[str, int]:
    """Return how many deletes are in force, and how many rows they have held back."""
    withheld = entry.total_withheld if entry else 0
    return {"in_force": len(deletes_in_force(log, entry)), "withheld": withheld}


def _failed(flow: Dataflow, error: StrandlineError) -> dict[str, Any]:
    unknown = {"state_number": None, "watermark": None, "lag_seconds": None, "last_run": None}
    defaults: dict[str, Any] = {
        "last_attempt": None,
        "waiting": UNKNOWN,
        **_NO_FILES,
        "buffered": None,
        "held_by": None,
        "deletes": {"in_force": 0, "withheld": 0},
        "replays": [],
        "error": error_json(error),
    }
    return {**_identity(flow), **unknown, **defaults}


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
        in_words(entry_kind, watermark) if watermark else "-",
        "-" if lag is None else format_duration(lag),
        _waiting_in_words(document),
        "unknown" if "error" in document else _attempt_in_words(document["last_attempt"], now),
        _ago(document["last_run"], now) if document["last_run"] else "-",
        str(document["late"]["count"] or "-"),
        str(document["quarantined"]["count"] or "-"),
    )


def _waiting_in_words(document: dict[str, Any]) -> str:
    """Return the new data at the source and the number of buffered rows, in words."""
    new = PROFILES[document["kind"]].waiting_in_words(document["waiting"]) or "unknown"
    return f"{new}, {pluralize(document['buffered'], 'row')} buffered" if document["buffered"] else new


def _longest_word(cells: Sequence[str]) -> int:
    return min(_LONGEST, max((len(word) for cell in cells for word in cell.split()), default=0))


def _attempt_in_words(attempt: dict[str, Any] | None, now: datetime) -> str:
    if attempt is None:
        return "none"
    status, since = attempt["status"], attempt["failing_since"]
    if since and not attempt["decided_since"] and status not in (*_UNDECIDED, "died", "stopped"):
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
    if attempt and attempt["error"] and attempt["status"] not in _ENDED_WELL:
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
    for path in document["late"]["paths"]:
        click.echo(f"  {name}: late: {path}")
    if holder := document.get("held_by"):
        click.echo(f"  {name}: {holder_in_words(holder)}")
    deletes = document["deletes"]
    if deletes["in_force"]:
        click.echo(
            f"  {name}: {pluralize(deletes['in_force'], 'delete')} in force, {pluralize(deletes['withheld'], 'row')} withheld"
        )
    for replay in document["replays"]:
        progress = "complete: promote or drop it" if replay["complete"] else "not finished"
        click.echo(
            f"  {name}: replay into {replay['table']}: {replay['done']} of {pluralize(replay['chunks'], 'chunk')}, {progress}"
        )
    for file in document["quarantined"]["files"]:
        click.echo(f"  {name}: quarantined: {file['path']}: {file['reason']}")


def _problem(context: Context, line: str, choices: list[str] | tuple[str, ...] = ()) -> None:
    click.secho(f"  {line}", fg="red")
    context.offer(choices, 4)


@contextmanager
def _open_dagster(project: Path) -> Iterator[DagsterInstance | None]:
    """Yield the Dagster instance with its runs; None without DAGSTER_HOME, or if it cannot be opened."""
    if "DAGSTER_HOME" not in os.environ:
        yield None
        return
    from platform_assets.cli.running import instance

    try:
        opened_instance = instance(project)
    except StrandlineError as error:  # without Dagster's runs the states can still be shown
        click.echo(f"Dagster's runs cannot be read: {error.message}", err=True)
        yield None
        return
    with opened_instance as dagster:
        yield dagster
