"""``strandline state``: shows the state of a dataflow, or decides about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import click

from partitions.errors import ConfigurationError
from partitions.path.gone import GoneFiles
from platform_assets.cli import state_copy
from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.deciding import DELETED, GONE, REASON, YES, apply_decision
from platform_assets.cli.entry_lines import print_diff, print_entries, print_intents
from platform_assets.kinds import PROFILES, profile_of
from platform_assets.kinds.profile import HasOwnState
from platform_assets.platform import build_platform
from platform_assets.state_views import changes_between, entries_with_intents, watermarks_of
from resources.kinds.contract.lost_rows import DeletedRows
from resources.watermarks.deleted_rows import deletes_in_force
from resources.watermarks.exporting import export_lines

_NUMBER = click.IntRange(0)
_LOAD_OR_SKIP = click.option(
    "--deleted",
    type=click.Choice(["load", "skip"]),
    help="What becomes of rows that others may have deleted from the table: they are loaded again, or count as loaded.",
)
_REPLACE = click.option(
    "--replace",
    is_flag=True,
    help="Delete the old rows in the commit that loads them again.",
)


@click.group("state")
def command() -> None:
    """Show the state of a dataflow, or decide about it."""


command.add_command(state_copy.command)


@command.command("show")
@click.argument("name")
@click.option(
    "--full", is_flag=True, help="Show the whole watermark as stored, also for windows and above 1,000 items."
)
@shared_options
def show(context: Context, name: str, full: bool) -> None:
    """Show the newest entry."""
    if _is_own_watermark(context, name):
        _show_own_watermark(context, name)
        return
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
        print_entries([entry] if entry else [], full, flow)
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
    if _is_own_watermark(context, name):
        entries = list(build_platform(context.project).log.history(name, limit))
        context.emit([entry.as_json(short=True) for entry in entries], lambda: print_entries(entries))
        return
    (flow,) = context.dataflows([name])
    log = build_platform(context.project).log
    entries = list(log.history(name, limit))
    if not intents:
        context.emit(
            [entry.as_json(short=True) for entry in entries], lambda: print_entries(entries, dataflow=flow)
        )
        return
    documents = entries_with_intents(log, name, entries)
    context.emit(documents, lambda: print_intents(documents, entries, flow))


def _is_own_watermark(context: Context, name: str) -> bool:
    """Return whether a name is no dataflow's, and the user's own code has saved a watermark under it."""
    project = context.project
    if name in project.dataflows or name in project.broken:
        return False
    entry = build_platform(project).log.newest(name)
    return entry is not None and entry.is_of_own_code


def _show_own_watermark(context: Context, name: str) -> None:
    (entry,) = build_platform(context.project).log.history(name, 1)
    fields = entry.as_json(short=True)
    document = {"dataflow": name, "number": entry.number, "watermark": fields["watermark"], "entry": fields}
    context.emit(document, lambda: print_entries([entry]))


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
    context.emit(document, lambda: print_diff(document, *watermarks_of(log, document)))


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
@GONE
@REASON
@YES
@shared_options
def accept_command(
    context: Context,
    name: str,
    below: Literal["late", "loaded"] | None,
    gone_files: GoneFiles | None,
    reason: str,
    yes: bool,
) -> None:
    """Accept a changed definition. The watermark stays; an unfinished slice is abandoned."""
    from resources.kinds.all_decisions import accept

    _apply(context, name, accept(reason, below, gone_files), reason, yes)


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
@click.argument("watermark", metavar="[JSON]", required=False)
@click.option(
    "--spark-checkpoint",
    "checkpoint",
    metavar="FOLDER|URL",
    help="In place of JSON, of an offset: take over from the stream of Spark with this checkpoint.",
)
@REASON
@YES
@shared_options
def set_command(
    context: Context, name: str, watermark: str | None, checkpoint: str | None, reason: str, yes: bool
) -> None:
    """Append a watermark of your own, not below the current one.

    Files that it skips are not loaded.
    """
    from resources.kinds.all_decisions import set_watermark

    if (watermark is None) == (checkpoint is None):
        options = "neither" if watermark is None else "both"
        raise click.UsageError(f"expected JSON or --spark-checkpoint, found {options}")
    if checkpoint is not None:
        address = checkpoint if "://" in checkpoint else str(Path(checkpoint).absolute())
        watermark = json.dumps({"spark_checkpoint": address})
    _apply(context, name, set_watermark(reason, str(watermark)), reason, yes)


@command.command("adopt")
@click.argument("name")
@_LOAD_OR_SKIP
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
@_LOAD_OR_SKIP
@REASON
@YES
@shared_options
def import_command(
    context: Context, name: str, file: Path, deleted: DeletedRows | None, reason: str, yes: bool
) -> None:
    """Restore the state of an export.

    That is its entries, lists, quarantine and watermark.
    """
    from resources.kinds.all_decisions import import_entries

    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: expected a file of `strandline state export`: {error}") from error
    _apply(context, name, import_entries(reason, lines, deleted), reason, yes)


def _apply(context: Context, name: str, build_draft: Any, reason: str, yes: bool) -> None:
    entry = apply_decision(context, name, build_draft, reason, yes)
    document = {"dataflow": name, "number": entry.number, "entry": entry.as_json()}
    context.emit(document, lambda: print_entries([entry]))
