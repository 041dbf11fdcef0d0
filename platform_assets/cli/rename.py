"""``strandline rename``: gives a dataflow another name, with its state."""

from __future__ import annotations

from pathlib import Path

import click

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, DataflowHeld
from platform_assets.cli.context import Context, shared_options
from platform_assets.installation import DATAFLOWS
from platform_assets.platform import build_platform
from platform_assets.project.checked_file import NAME
from platform_assets.project.renaming import with_table
from resources.platform.platform import Platform
from resources.replay.isolated.standing import stored_replays
from resources.replay.under_way import REPLAYING
from resources.watermarks.blobs import open_blobs
from resources.watermarks.copying import copy_log, delete_log


@click.command("rename")
@click.argument("old")
@click.argument("new")
@shared_options
def command(context: Context, old: str, new: str) -> None:
    """Rename the dataflow OLD to NEW: its file and its state. The table keeps its name.

    NEW's file then names the table. Run the same command again to finish an interrupted rename.
    """
    old_file, new_file = (context.project.folder / DATAFLOWS / f"{name}.yaml" for name in (old, new))
    if not NAME.fullmatch(new) or new == old:
        raise ConfigurationError(
            f"expected a new name of small letters, digits and _, that begins with a letter; found {new}"
        )
    if not old_file.exists() and new_file.exists():
        (flow,) = context.dataflows([new])  # stopped after its file was renamed
    else:
        (flow,) = context.dataflows([old])
    if old_file.exists() and new_file.exists():
        raise ConfigurationError(f"expected no dataflow {new} yet, found {DATAFLOWS}/{new}.yaml")
    platform = build_platform(context.project)
    _check_renamable(platform, flow, old)
    blobs = open_blobs(context.project.state)
    number = copy_log(blobs, blobs, old, new).number
    if old_file.exists():
        _write_atomically(old_file, with_table(old_file.read_text(), flow.table))
        old_file.rename(new_file)
    delete_log(blobs, old)
    document = {"from": old, "to": new, "number": number, "table": flow.table}
    context.emit(
        document,
        lambda: click.echo(
            f"renamed {old} to {new}: {DATAFLOWS}/{new}.yaml, state {number}; the table is still {flow.table}. In Dagster it is a new asset:"
            f" reload the code location, and turn on its sensors"
        ),
    )


def _check_renamable(platform: Platform, flow: Dataflow, old: str) -> None:
    """Raise an error if an open slice, or rows of a table, have the old name.

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
