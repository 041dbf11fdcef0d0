"""``strandline state copy``: copies the state into another store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict

import click

from partitions.errors import ConfigurationError
from partitions.plan import pluralize
from platform_assets.cli.context import Context, shared_options
from platform_assets.project import Project
from resources.connections.postgres import Database, is_database
from resources.loop.own_state import address_of, store_address
from resources.watermarks.blobs import Blobs, open_blobs
from resources.watermarks.copying import CopiedLog, copy_log, stored_logs
from resources.watermarks.log import WatermarkLog

_ADDRESS = "A folder, s3://bucket/prefix, postgresql://host/database, or env:NAME for the variable that holds the address."


@click.command("copy")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--to", "address", required=True, metavar="ADDRESS", help=_ADDRESS)
@click.option("--connection", help="Connection in platform.yaml that reaches the bucket of --to.")
@shared_options
def command(context: Context, names: tuple[str, ...], address: str, connection: str | None) -> None:
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
            of the machine could see.
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
