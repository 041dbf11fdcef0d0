"""``strandline state``: shows the state of a dataflow, or decides about it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import click

from partitions.errors import ConfigurationError
from partitions.instants import time_text
from partitions.path.gone import GoneFiles
from partitions.plan import pluralize
from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.deciding import DELETED, GONE, REASON, YES, apply_decision
from platform_assets.kinds import PROFILES, profile_of
from platform_assets.kinds.profile import HasOwnState
from platform_assets.platform import build_platform
from platform_assets.project import Project
from platform_assets.state_views import changes_between, entries_with_intents, watermarks_of
from resources.connections.postgres import Database, is_database
from resources.kinds.contract.lost_rows import DeletedRows
from resources.loop.own_state import address_of, store_address
from resources.loop.withheld import withheld_in_words
from resources.watermarks.blobs import Blobs, open_blobs
from resources.watermarks.copying import CopiedLog, copy_log, stored_logs
from resources.watermarks.deleted_rows import deletes_in_force
from resources.watermarks.entry import DELETES, Entry
from resources.watermarks.exporting import export_lines
from resources.watermarks.log import WatermarkLog

_NUMBER = click.IntRange(0)
_ADDRESS = "A folder, s3://bucket/prefix, postgresql://host/database, or env:NAME for the variable that holds the address."
_REPLACE = click.option(
    "--replace",
    is_flag=True,
    help="Delete the old rows in the commit that loads them again.",
)


@click.group("state")
def command() -> None:
    """Show the state of a dataflow, or decide about it."""


@command.command("show")
@click.argument("name")
@click.option(
    "--full", is_flag=True, help="Show the whole watermark as stored, also for windows and above 1,000 items."
)
@shared_options
def show(context: Context, name: str, full: bool) -> None:
    """Show the newest entry."""
    (flow,) = context.dataflows([name])
    platform = build_platform(context.project)
    entry = platform.log.newest(name)
    entry_document = entry.as_json(short=True) if entry else None
    profile = profile_of(flow)
    is_its_own = (
        entry is not None and PROFILES[entry.kind] is profile
    )  # False until a changed kind is accepted
    deletes = deletes_in_force(platform.log, entry)
    document = {
        "dataflow": flow.name,
        "number": entry.number if entry else 0,
        "watermark": profile.state_document(platform, flow, entry, full=full)
        if entry and is_its_own and isinstance(profile, HasOwnState)
        else entry_document and entry_document["watermark"],
        "deletes": [delete.as_json() for delete in deletes],
        "entry": entry_document,
    }
    lines = (
        profile.state_lines(flow, entry) if entry and is_its_own and isinstance(profile, HasOwnState) else ()
    )

    def print_it() -> None:
        print_entries([entry] if entry else [], full)
        for line in lines:
            click.echo(f"  {line}")
        for delete in deletes:
            click.echo(f"  withheld since entry {delete.number}: rows where {delete.predicate}")

    context.emit(document, print_it)


@command.command("history")
@click.argument("name")
@click.option(
    "--limit", default=1000, show_default=True, type=click.IntRange(1), help="How many entries, newest first."
)
@click.option(
    "--intents", is_flag=True, help="Also show each entry's intent; an unfinished slice comes first."
)
@shared_options
def history(context: Context, name: str, limit: int, intents: bool) -> None:
    """Show the entries, newest first."""
    context.dataflows([name])
    log = build_platform(context.project).log
    entries = list(log.history(name, limit))
    if not intents:
        context.emit([entry.as_json(short=True) for entry in entries], lambda: print_entries(entries))
        return
    documents = entries_with_intents(log, name, entries)
    context.emit(documents, lambda: _print_intents(documents, entries))


@command.command("diff")
@click.argument("name")
@click.option("--from", "before", type=_NUMBER, help="An entry's number; by default the one before --to.")
@click.option("--to", "after", type=_NUMBER, help="An entry's number; by default the newest.")
@shared_options
def diff(context: Context, name: str, before: int | None, after: int | None) -> None:
    """Show what changed between two entries."""
    context.dataflows([name])
    log = build_platform(context.project).log
    document = changes_between(log, name, before, after)
    context.emit(document, lambda: _print_diff(document, *watermarks_of(log, document)))


@command.command("export")
@click.argument("name")
@shared_options
def export(context: Context, name: str) -> None:
    """Print the whole state as JSON lines, for `state import`.

    Entries come first, then the other objects.
    """
    context.dataflows([name])
    for line in export_lines(build_platform(context.project).log, name):
        click.echo(line, file=context.results)


@command.command("copy")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--to", "address", required=True, metavar="ADDRESS", help=_ADDRESS)
@click.option("--connection", help="Connection in platform.yaml that reaches the bucket of --to.")
@shared_options
def copy(context: Context, names: tuple[str, ...], address: str, connection: str | None) -> None:
    """Copy the state into another store, and verify it. Without names: the whole store."""
    project = context.project
    context.dataflows(names)
    store = project.store(read_address(address, os.environ), connection)
    if store == project.state:
        raise ConfigurationError(f"--to: expected another store than the project's own, found {store}")
    source, target = open_blobs(project.state), open_blobs(store, "target of the copy")
    logs = stored_logs(source)
    for name in names:
        if name not in logs:
            raise ConfigurationError(f"dataflow {name}: expected a state in {project.state}, found none yet")
    copies = [_copy(project, source, target, name) for name in names or logs]
    document = {"from": str(project.state), "to": str(store), "dataflows": [asdict(log) for log in copies]}

    def print_copies() -> None:
        for log in copies:
            click.echo(_copy_in_words(log))
        click.echo(
            f"read back and compared: all {pluralize(len(copies), 'log')} in {store}. Set `state` in platform.yaml "
            "to it, and stop all processes that use the old one"
        )

    context.emit(document, print_copies)


def _copy(project: Project, source: Blobs, target: Blobs, name: str) -> CopiedLog:
    """Copy a log, and let the copy write the tables that the original has written."""
    copied = copy_log(source, target, name)
    store_address(WatermarkLog(target), name, address_of(project.state))
    return copied


def _copy_in_words(log: CopiedLog) -> str:
    amounts = f"{pluralize(log.entries, 'entry', 'entries')}, {pluralize(log.objects, 'other object')}"
    written = f"{log.written:,} written" if log.written else "all already there"
    return f"{log.dataflow}: state {log.number}, {amounts}; {written}"


def read_address(address: str, environment: Mapping[str, str]) -> str:
    """Return the address that ``--to`` means: itself, or the value of the variable in ``env:NAME``.

    Raises:
        ConfigurationError: if the variable is not set, or the address holds a password, which other users
        of the machine
            could see.
    """
    if address.startswith("env:"):
        name = address.removeprefix("env:")
        if not environment.get(name):
            raise ConfigurationError(f"--to: expected the variable {name}, found it empty or not set")
        return environment[name]
    if is_database(address) and Database.parse(address).passwords:
        raise ConfigurationError(
            "--to: expected an address without a password, found one: other users could read it in the list of "
            "processes. Put the address into a variable, and name that: --to env:STATE_URL"
        )
    return address


@command.command("reset")
@click.argument("name")
@_REPLACE
@REASON
@YES
@shared_options
def reset_command(context: Context, name: str, replace: bool, reason: str, yes: bool) -> None:
    """Append an empty watermark: the next run loads everything."""
    from resources.kinds.all_decisions import reset

    _apply(context, name, reset(reason, replace=replace), reason, yes)


@command.command("accept")
@click.argument("name")
@click.option(
    "--below",
    type=click.Choice(["late", "loaded"]),
    help="After a change of root: how to treat files at or below the watermark that no entry lists. [default: "
    "late, if it has files that were loaded]",
)
@REASON
@YES
@shared_options
def accept_command(
    context: Context, name: str, below: Literal["late", "loaded"] | None, reason: str, yes: bool
) -> None:
    """Accept a changed definition. The watermark stays; an unfinished slice is abandoned."""
    from resources.kinds.all_decisions import accept

    _apply(context, name, accept(reason, below), reason, yes)


@command.command("rewind")
@click.argument("name")
@click.option(
    "--to", required=True, type=_NUMBER, help="Go back to this entry's watermark; 0 is the beginning."
)
@_REPLACE
@GONE
@DELETED
@REASON
@YES
@shared_options
def rewind_command(
    context: Context,
    name: str,
    to: int,
    replace: bool,
    gone_files: GoneFiles | None,
    deleted: DeletedRows | None,
    reason: str,
    yes: bool,
) -> None:
    """Append an older entry's watermark: data above it is read again."""
    from resources.kinds.all_decisions import rewind

    _apply(
        context,
        name,
        rewind(reason, to, replace=replace, gone_files=gone_files, deleted=deleted),
        reason,
        yes,
    )


@command.command("set")
@click.argument("name")
@click.argument("watermark", metavar="JSON")
@REASON
@YES
@shared_options
def set_command(context: Context, name: str, watermark: str, reason: str, yes: bool) -> None:
    """Append a watermark of your own, not below the current one.

    Files that it skips are not loaded.
    """
    from resources.kinds.all_decisions import set_watermark

    _apply(context, name, set_watermark(reason, watermark), reason, yes)


@command.command("adopt")
@click.argument("name")
@click.option(
    "--deleted",
    type=click.Choice(["load", "skip"]),
    help="What becomes of rows that others may have deleted from the table: they are loaded again, or count as loaded.",
)
@REASON
@YES
@shared_options
def adopt_command(context: Context, name: str, deleted: DeletedRows | None, reason: str, yes: bool) -> None:
    """Append the watermark derived from the table, for a lost state."""
    from resources.kinds.all_decisions import adopt

    _apply(context, name, adopt(reason, deleted), reason, yes)


@command.command("import")
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@REASON
@YES
@shared_options
def import_command(context: Context, name: str, file: Path, reason: str, yes: bool) -> None:
    """Restore the state of an export.

    That is its entries, lists, quarantine and watermark.
    """
    from resources.kinds.all_decisions import import_entries

    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: expected a file of `strandline state export`: {error}") from error
    _apply(context, name, import_entries(reason, lines), reason, yes)


def _apply(context: Context, name: str, build_draft: Any, reason: str, yes: bool) -> None:
    entry = apply_decision(context, name, build_draft, reason, yes)
    document = {"dataflow": name, "number": entry.number, "entry": entry.as_json()}
    context.emit(document, lambda: print_entries([entry]))


def print_entries(entries: list[Entry], full: bool = False) -> None:
    """Print entries for people, a line each."""
    if not entries:
        click.echo("no entry: nothing was loaded yet, or the state was lost (a run shows which)")
    for entry in entries:
        reason = f" ({entry.reason})" if entry.reason else ""
        profile = PROFILES[entry.kind]
        click.echo(
            f"{entry.number:>6}  {time_text(entry.time)}  {entry.why}{reason}  {_amounts_in_words(entry)}"
            f"  {entry.watermark if full else profile.entry_watermark(entry)}{_engine_in_words(entry)}"
        )


def _amounts_in_words(entry: Entry) -> str:
    """Return how much an entry has loaded, deleted and withheld."""
    if entry.why in DELETES:
        return f"{pluralize(entry.deleted, 'row')} deleted where {entry.predicate}"
    if entry.why == "forget":
        return f"where {entry.predicate}"
    quarantined = f"{entry.quarantined} quarantined" if entry.quarantined else ""
    profile = PROFILES[entry.kind]
    parts = (
        pluralize(entry.rows, "row"),
        profile.entry_amount(entry),
        quarantined,
        withheld_in_words(entry.withheld),
    )
    return ", ".join(filter(None, parts))


def _engine_in_words(entry: Entry) -> str:
    """Return which engine made an entry's commit, and why; "" if Strandline did."""
    by_engine = entry.committed_by is not None and entry.committed_by.startswith("Spark")
    return f"  (by {entry.committed_by})" if by_engine else ""


def _print_intents(documents: list[dict[str, Any]], entries: list[Entry]) -> None:
    by_number = {entry.number: entry for entry in entries}
    for document in documents:
        if entry := by_number.get(document["number"]):
            print_entries([entry])
        else:
            click.echo(f"{document['number']:>6}  unfinished {document['why']}")
        if intent := document["intent"]:
            version = intent["table_version"]
            click.echo(
                f"        intended {time_text(intent['time'])} by process {intent['holder']['pid']} on {intent['holder']['host']}:"
                f" {pluralize(intent['files'], 'file')}, {'no table yet' if version is None else f'table version {version}'}"
            )


def _print_diff(document: dict[str, Any], before: str, after: str) -> None:
    """Print each change; parts of a watermark that are not single values appear in words."""
    click.echo(f"entry {document['from']} -> entry {document['to']}")
    has_printed = False
    for name, change in document["changed"].items():
        if name.startswith("watermark.") and any(isinstance(value, list) for value in change.values()):
            if not has_printed:
                click.echo(f"  watermark: {before} -> {after}")
            has_printed = True
        else:
            click.echo(f"  {name}: {_in_words(change['before'])} -> {_in_words(change['after'])}")


def _in_words(value: Any) -> str:
    """Return a value for people: the value inside a sentinel, the items of a list."""
    match value:
        case _ if value is None or value in ([], {}):
            return "none"
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(_in_words, value))
        case dict() if len(value) == 1 and next(iter(value)).startswith("__"):
            return _in_words(next(iter(value.values())))
        case dict():
            return ", ".join(f"{name} {_in_words(inner)}" for name, inner in value.items())
        case "":
            return "an empty text"
    return str(value)
