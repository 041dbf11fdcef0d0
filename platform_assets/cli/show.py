"""``strandline show``: prints rows of a table of the lake."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from partitions.errors import ConfigurationError
from partitions.plan import pluralize
from partitions.predicate import EVERYTHING, Among, Predicate
from partitions.spelling import nearest_name
from partitions.target import DATAFLOW_COLUMN
from platform_assets.cli.context import Context, shared_options
from platform_assets.platform import build_platform
from resources.tables.first_rows import FirstRows, read_first_rows
from resources.tables.registry import find_format, find_table

if TYPE_CHECKING:
    from platform_assets.project import Project


@click.command("show")
@click.argument("table")
@click.option("--where", metavar="SQL", help="A condition of Spark's SQL that the rows meet.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 10_000), help="The most rows.")
@shared_options
def command(context: Context, table: str, where: str | None, limit: int) -> None:
    """Print rows of TABLE: the name of a dataflow, or LAYER/NAME of any table in the lake."""
    platform = build_platform(context.project, lambda line: click.echo(f"  {line}", err=True))
    name, own_rows = _table_of(context, table)
    place = platform.lake.child(name)
    if find_format(place) is None:
        raise _no_table(context.project, table, name)
    rows = read_first_rows(
        find_table(place),
        lambda: platform.engines.reading(place).session(),
        limit,
        name,
        rows=own_rows,
        where=where,
    )
    columns = [{"name": column, "type": type_} for column, type_ in rows.types.items()]
    document = {"table": name, "columns": columns, "rows": list(rows.rows), "more": rows.has_more}
    context.emit(document, lambda: _print(context, name, rows))


def _table_of(context: Context, text: str) -> tuple[str, Predicate]:
    """Return the table's name, and the rows that count: those of a dataflow that shares its table."""
    if "/" in text:
        return text, EVERYTHING
    (flow,) = context.dataflows([text])
    return flow.table, Among(DATAFLOW_COLUMN, (flow.name,)) if flow.target.shared else EVERYTHING


def _no_table(project: Project, text: str, name: str) -> ConfigurationError:
    tables = {flow.table: flow.name for flow in project.dataflows.values()}
    if name in tables:
        flow = tables[name]
        return ConfigurationError(
            f"table {name}: expected a table with rows, found none: dataflow {flow} has loaded nothing yet",
            choices=(f"strandline run {flow}",),
        )
    close = nearest_name(text, tables)
    hint = (
        f"did you mean {close}?" if close else f"the project has {', '.join(sorted(tables)) or 'no dataflow'}"
    )
    return ConfigurationError(f"table {name}: expected a table in the lake, found none there; {hint}")


def _print(context: Context, name: str, rows: FirstRows) -> None:
    from rich.table import Table

    if rows.rows:
        output = Table(*rows.types)
        for row in rows.rows:
            output.add_row(*(_text_of(row[column]) for column in rows.types))
        context.console.print(output)
    more = ", and there are more (--limit)" if rows.has_more else ""
    click.echo(f"{name}: {pluralize(len(rows.rows), 'row')}{more}")


def _text_of(value: Any) -> str:
    if value is None:
        return "NULL"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
