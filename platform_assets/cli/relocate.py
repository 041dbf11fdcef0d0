"""``strandline relocate``: writes the new addresses of tables that were moved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

import click

from partitions.plan import pluralize
from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.deciding import YES, confirm
from platform_assets.platform import build_platform
from resources.decisions.relocation import TableToRelocate, moved_tables
from resources.tables.contract.relocation import Relocation


@click.command("relocate")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@YES
@shared_options
def command(context: Context, names: tuple[str, ...], yes: bool) -> None:
    """Write the new addresses into the logs of moved tables. Without names: all dataflows.

    Only Iceberg tables store the full address of each file. No row changes; the command reads all rows back.
    """
    flows = context.dataflows(names)
    platform = build_platform(context.project)
    moved = {table.name: table for flow in flows for table in moved_tables(platform, flow)}
    for table in moved.values():
        click.echo(f"{table.name}: relocate", err=True)
        for line in _lines(table.relocation):
            click.echo(f"  {line}", err=True)
    if moved and not yes:
        confirm("Write the new addresses?")
    documents = list(_relocate(moved.values()))
    context.emit({"tables": documents}, lambda: _print(documents))


def _lines(relocation: Relocation) -> Iterator[str]:
    yield f"its log names {relocation.before}; after this it names {relocation.after}"
    files = f"{pluralize(relocation.files, 'data file')} ({relocation.bytes:,} bytes)"
    versions = pluralize(relocation.versions, "version")
    yield f"{files} of {versions} are there; {pluralize(relocation.rows, 'row')} of the newest version will be read back"
    yield from relocation.remarks


def _relocate(tables: Iterable[TableToRelocate]) -> Iterator[dict[str, object]]:
    for table in tables:
        relocation = table.table.relocate() or table.relocation  # another process may have been first
        yield {"table": table.name, **asdict(relocation)}


def _print(documents: Sequence[dict[str, object]]) -> None:
    if not documents:
        click.echo("nothing to do: the log of each table names its own address")
    for document in documents:
        click.echo(
            f"{document['table']}: relocated to {document['after']}; all {document['rows']:,} rows were read back"
        )
