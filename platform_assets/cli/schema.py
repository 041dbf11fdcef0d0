"""``strandline schema``: which columns are pinned, declared and in the table, and what a fresh look at the source would say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from platform_assets.cli.context import Context, shared
from platform_assets.platform import build_platform
from platform_assets.schema_views import fresh_schema, known_schemas


@click.group("schema")
def command() -> None:
    """Show the schema of a dataflow, or infer it again."""


@command.command("show")
@click.argument("name")
@shared
def show(context: Context, name: str) -> None:
    """Show what is pinned and declared, and the table's columns. Starts no Spark."""
    (flow,) = context.dataflows([name])
    document = known_schemas(build_platform(context.project), flow)
    context.emit(document, lambda: _print_show(context, document))


@command.command("infer")
@click.argument("name")
@shared
def infer(context: Context, name: str) -> None:
    """Show what a first run would infer from a sample. Says how it differs from what is pinned; changes nothing."""
    (flow,) = context.dataflows([name])
    platform = build_platform(context.project, lambda line: click.echo(f"  {line}", err=True))
    document = fresh_schema(platform, flow, context.now or datetime.now(UTC))
    context.emit(document, lambda: _print_infer(context, document))


def _print_show(context: Context, document: dict[str, Any]) -> None:
    from rich.table import Table

    name, pinned, table = document["dataflow"], document["pinned"], document["table"]
    said = (
        "nothing is pinned yet: the first commit pins the schema"
        if pinned is None
        else f"pinned by entry {pinned['number']}, {_FROM[pinned['from']]}{_CHANGED if pinned['changed'] else ''}"
    )
    click.secho(f"{name}: {said}", bold=True)
    click.echo(f"  declared: {document['declared'] or 'nothing'}")
    if pinned is not None and pinned["declared"] != document["declared"]:
        click.echo(f"  declared when it was pinned: {pinned['declared'] or 'nothing'}")
    of_table = {column["name"]: column["type"] for column in table["columns"]} if table else {}
    of_pinned = {column["name"]: column for column in pinned["columns"]} if pinned else {}
    shown = Table("column", "pinned", "from", f"table {table['table']}" if table else "no table")
    for column in dict.fromkeys([*of_pinned, *of_table]):
        known = of_pinned.get(column, {})
        shown.add_row(column, known.get("type", ""), known.get("from", ""), of_table.get(column, ""))
    if of_pinned or of_table:
        context.console.print(shown)


_FROM = {
    "inferred": "inferred from the files that it loaded first",
    "source.schema": "as source.schema declared it",
    "source": "as the source had it",
}
_CHANGED = "; it has changed with the source since"


def _print_infer(context: Context, document: dict[str, Any]) -> None:
    from rich.table import Table

    name, columns, difference = document["dataflow"], document["columns"], document["difference"]
    if columns is None:
        click.secho(f"{name}: the source has no data to infer a schema from", bold=True)
    else:
        click.secho(f"{name}: a first run would infer {len(columns)} columns", bold=True)
        shown = Table("column", "type", "from")
        for column in columns:
            shown.add_row(column["name"], column["type"], column["from"])
        context.console.print(shown)
    for warning in document["warnings"]:
        click.echo(f"  {warning}")
    if difference is None:
        click.echo("  nothing is pinned to compare it with")
    elif not difference:
        click.echo("  the pinned schema has the same columns as this sample")
    for change in difference or ():
        click.echo(
            f"  {change['column']}: pinned {change['pinned'] or 'no such column'}, found {change['found'] or 'no such column'}"
        )
    if difference and document["is_declared"]:
        click.echo("  a run reads the columns that source.schema declares as it declares them")
    evolution = document["evolution"]
    if evolution is not None and difference:
        does = _DOES[evolution["action"]].format(mode=evolution["mode"])
        if evolution["action"] == "none" and evolution["values"]:
            does = _BY_VALUES.format(mode=evolution["mode"])
        click.echo(f"  {does}{': ' if evolution['changes'] else ''}{'; '.join(evolution['changes'])}")
        if evolution["values"]:
            click.echo(f"  {evolution['values']}")


_DOES = {
    "none": "schema_mode: {mode} changes no column for this",
    "merge": "schema_mode: {mode} changes the table with the next rows",
    "overwrite": "schema_mode: {mode} gives the table these columns",
    "rescue": "schema_mode: {mode} keeps in _rescued_data",
    "refuse": "schema_mode: {mode} refuses this",
}
"""What a run would do, by what the rule says."""

_BY_VALUES = (
    "schema_mode: {mode} adds no column for this; which types change, the values of the next files tell"
)
"""What it would do if no column is new, and its values may still change one."""
