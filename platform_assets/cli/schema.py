"""``strandline schema``: shows the pinned and declared schemas and the table's, or infers one afresh."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from platform_assets.cli.context import Context, shared_options
from platform_assets.platform import build_platform
from platform_assets.schema_views import fresh_schema, stored_schemas


@click.group("schema")
def command() -> None:
    """Show the schema of a dataflow, or infer it again."""


@command.command("show")
@click.argument("name")
@shared_options
def show(context: Context, name: str) -> None:
    """Show the pinned and declared schemas, and the table's columns. Starts no Spark."""
    (flow,) = context.dataflows([name])
    document = stored_schemas(build_platform(context.project), flow)
    context.emit(document, lambda: _print_show(context, document))


@command.command("infer")
@click.argument("name")
@shared_options
def infer(context: Context, name: str) -> None:
    """Show what a first run would infer, compared with the pinned schema."""
    (flow,) = context.dataflows([name])
    platform = build_platform(context.project, lambda line: click.echo(f"  {line}", err=True))
    document = fresh_schema(platform, flow, context.now or datetime.now(UTC))
    context.emit(document, lambda: _print_infer(context, document))


def _print_show(context: Context, document: dict[str, Any]) -> None:
    from rich.table import Table

    name, pinned, table = document["dataflow"], document["pinned"], document["table"]
    pinned_text = (
        "nothing is pinned yet: the first commit pins the schema"
        if pinned is None
        else f"pinned by entry {pinned['number']}, {_FROM[pinned['from']]}{_CHANGED if pinned['changed'] else ''}"
    )
    click.secho(f"{name}: {pinned_text}", bold=True)
    click.echo(f"  declared: {document['declared'] or 'nothing'}")
    if pinned is not None and pinned["declared"] != document["declared"]:
        click.echo(f"  declared when it was pinned: {pinned['declared'] or 'nothing'}")
    table_types = {column["name"]: column["type"] for column in table["columns"]} if table else {}
    pinned_columns = {column["name"]: column for column in pinned["columns"]} if pinned else {}
    output = Table("column", "pinned", "from", f"table {table['table']}" if table else "no table")
    for column in dict.fromkeys([*pinned_columns, *table_types]):
        pinned_column = pinned_columns.get(column, {})
        output.add_row(
            column, pinned_column.get("type", ""), pinned_column.get("from", ""), table_types.get(column, "")
        )
    if pinned_columns or table_types:
        context.console.print(output)


_FROM = {
    "inferred": "inferred from the first files that were loaded",
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
        output = Table("column", "type", "from")
        for column in columns:
            output.add_row(column["name"], column["type"], column["from"])
        context.console.print(output)
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
        click.echo("  a run reads declared columns with the types of source.schema")
    evolution = document["evolution"]
    if evolution is not None and difference:
        effect = _DOES[evolution["action"]].format(mode=evolution["mode"])
        if evolution["action"] == "none" and evolution["values"]:
            effect = _BY_VALUES.format(mode=evolution["mode"])
        click.echo(f"  {effect}{': ' if evolution['changes'] else ''}{'; '.join(evolution['changes'])}")
        if evolution["values"]:
            click.echo(f"  {evolution['values']}")


_DOES = {
    "none": "schema_mode: {mode} changes no column for this",
    "merge": "schema_mode: {mode} changes the table with the next rows",
    "overwrite": "schema_mode: {mode} gives the table these columns",
    "rescue": "schema_mode: {mode} keeps in _rescued_data",
    "refuse": "schema_mode: {mode} refuses this",
}
"""What a run would do, by the action of the schema mode."""

_BY_VALUES = (
    "schema_mode: {mode} adds no column for this; the values of the next files decide which types change"
)
"""What a run would do if no column is new, but values may still change a type."""
