"""``strandline rename``: gives a dataflow another name, with its state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from partitions.dataflow import Dataflow, FilePosition
from partitions.errors import ConfigurationError, DataflowHeld
from partitions.fingerprint import fingerprint
from platform_assets.cli.context import Context, shared_options
from platform_assets.installation import DATAFLOWS
from platform_assets.platform import build_platform
from platform_assets.project import Project, load_project
from platform_assets.project.checked_file import NAME
from platform_assets.project.renaming import with_other_table, with_table
from resources.kinds.spark_stream.folder import STREAMS
from resources.platform.platform import Platform
from resources.replay.isolated.standing import stored_replays
from resources.replay.under_way import REPLAYING
from resources.tables.moving import move_folder, move_tables
from resources.watermarks.blobs import open_blobs
from resources.watermarks.copying import copy_log, delete_log
from resources.watermarks.entry import next_entry


@click.command("rename")
@click.argument("old")
@click.argument("new")
@click.option("--move-table", is_flag=True, help="Give the table the new name, too.")
@shared_options
def command(context: Context, old: str, new: str, move_table: bool) -> None:
    """Rename the dataflow OLD to NEW: its file and its state. The table keeps its name, or moves along.

    A table that keeps its name is named in NEW's file. Run the same command again to finish an interrupted rename.
    """
    old_file, new_file = (context.project.folder / DATAFLOWS / f"{name}.yaml" for name in (old, new))
    if not NAME.fullmatch(new) or new == old:
        raise ConfigurationError(
            f"expected a new name of small letters, digits and _, that begins with a letter; found {new}"
        )
    (flow,) = context.dataflows([_name_in_project(context.project, old, new)])
    in_python = not old_file.exists() and not new_file.exists()
    if in_python:
        _check_renamed_in_python(context.project, flow, old, new, move_table)
    if old_file.exists() and (new_file.exists() or new in context.project.dataflows):
        namesake = context.project.dataflows.get(new)
        file = namesake.position.file if namesake else f"{DATAFLOWS}/{new}.yaml"
        raise ConfigurationError(f"expected no dataflow {new} yet, found {file}")
    platform = build_platform(context.project)
    _check_renamable(platform, flow, old)
    blobs = open_blobs(context.project.state)
    if old_file.exists() or not move_table or platform.log.newest(new) is None:
        number = copy_log(blobs, blobs, old, new).number
    table = f"{flow.table.partition('/')[0]}/{new}" if move_table else flow.table
    if old_file.exists():
        if table != flow.table:  # else the file names it since a stopped call
            _check_accepted(platform, flow)
            move_tables(platform.lake, flow, table)
        if flow.streams_with_spark:  # whose checkpoint lies in a folder of its name
            move_folder(platform.lake, f"{STREAMS}/{flow.table}/{old}", f"{STREAMS}/{table}/{new}")
        name_table = with_other_table if move_table else with_table
        _write_atomically(old_file, name_table(old_file.read_text(), table))
        old_file.rename(new_file)
    if move_table:
        number = _note_move(context.project, old, new)
    delete_log(blobs, old)
    readers = context.project.lineage.readers_of(flow.table) if table != flow.table else ()
    document = {"from": old, "to": new, "number": number, "table": table, "readers": list(readers)}
    if not in_python:
        flow = flow.declared_at(FilePosition(f"{DATAFLOWS}/{new}.yaml", 1))
    context.emit(document, lambda: _print(context, document, flow))


def _name_in_project(project: Project, old: str, new: str) -> str:
    """Return the new name if a file has it already: of a stopped call, or in changed Python code."""
    return new if old not in (*project.dataflows, *project.broken) and new in project.dataflows else old


def _check_renamed_in_python(project: Project, flow: Dataflow, old: str, new: str, move_table: bool) -> None:
    """Raise unless a Python file has the new name, and the log a state of the old one."""
    file, line = flow.position
    if move_table:
        raise ConfigurationError(
            f"dataflow {flow.name}: expected a YAML file beside --move-table, found {file}. Leave out --move-table: the table keeps its name"
        )
    if flow.name == old:
        raise ConfigurationError(
            f'dataflow {old}: expected the name {new} in its Python file, found {old} at {file}:{line}. Write name="{new}" and'
            f' target={{"table": "{flow.table}", …}} there, then run this command again: it moves the state'
        )
    if build_platform(project).log.newest(old) is None:
        raise ConfigurationError(f"expected a state of the dataflow {old}, found none in {project.state}")


def _print(context: Context, document: dict[str, Any], flow: Dataflow) -> None:
    new, table, table_before = document["to"], document["table"], flow.table
    where = f"the table is still {table}" if table == table_before else f"the table is {table} now"
    click.echo(
        f"renamed {document['from']} to {new}: {flow.position.file}, state {document['number']}; {where}. In Dagster it is a new asset:"
        f" reload the code location, and turn on its sensors"
    )
    for reader in document["readers"]:
        reading = context.project.dataflows.get(reader)
        file = reading.position.file if reading else f"the file of {reader}"
        click.echo(f"  {reader} reads {table_before}: write {table} into {file}, then")
        context.offer([f"strandline state accept {reader} --reason TEXT"], 4)


def _check_accepted(platform: Platform, flow: Dataflow) -> None:
    """Raise if the definition has changed since the newest entry: the new name would accept that, too.

    Raises:
        ConfigurationError: names the decision to make first.
    """
    newest = platform.log.newest(flow.name)
    if newest is not None and newest.fingerprint not in ("", fingerprint(flow)):
        raise ConfigurationError(
            f"dataflow {flow.name}: expected the definition that entry {newest.number} was made with, found another. Accept it, then rename",
            choices=(f"strandline state accept {flow.name} --reason TEXT",),
        )


def _note_move(before: Project, old: str, new: str) -> int:
    """Append the entry that names the moved table, unless it is there; return the newest number."""
    project = load_project(before.folder, env=before.env or "")
    (flow,), log = project.named([new]), build_platform(project).log
    newest = log.newest(new)
    if newest is None or fingerprint(flow) == newest.fingerprint:
        return newest.number if newest else 0
    entry = next_entry(
        newest,
        why="accept",
        reason=f"renamed from {old}; the table moved along",
        fingerprint=fingerprint(flow),
        table=flow.table if newest.table is not None else None,
    )
    return log.append(new, entry, expected=newest.number).number


def _check_renamable(platform: Platform, flow: Dataflow, old: str) -> None:
    """Raise an error if an open slice, a shared table's rows or a replay has the old name.

    Raises:
        DataflowHeld: if a slice or decision is not finished.
        ConfigurationError: if rows of a shared table, or a replay, have the old name.
    """
    log = platform.log
    if log.open_intent(old, log.newest(old)) is not None:
        raise DataflowHeld(
            f"dataflow {old}: a slice or decision is not finished. Run `strandline run {old}`, then rename"
        )
    if flow.target.shared:
        raise ConfigurationError(
            f"dataflow {old}: expected a table of its own, found target.shared: true: the rows of the table have the dataflow's name"
        )
    if log.names(old, REPLAYING, 1):
        raise ConfigurationError(
            f"dataflow {old}: expected no replay in progress, found one, and the log counts its chunks under the "
            "old name. Run the same `strandline replay` again, which finishes it, then rename"
        )
    if replays := stored_replays(log, old):
        raise ConfigurationError(
            f"dataflow {old}: expected no replay into another table, found {replays[0].table}. Promote or drop it first",
            choices=tuple(f"strandline drop {old} {replay.table} --reason TEXT" for replay in replays),
        )


def _write_atomically(file: Path, text: str) -> None:
    """Write a file completely or not at all."""
    temporary = file.with_name(f".{file.name}.tmp")
    temporary.write_text(text)
    temporary.replace(file)
