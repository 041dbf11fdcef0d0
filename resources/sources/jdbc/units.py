"""The rows of a table or query that lists the units of a window watermark, without Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from partitions.errors import SourceError
from partitions.sources import JdbcSource
from partitions.sources.database_types import ColumnType
from partitions.sql_text import strip_end
from partitions.unit_values import fit_value
from partitions.window.extent import Extent
from resources.connections.jdbc import JdbcConnection
from resources.sources.jdbc.client import client
from resources.tables.contract.commits import MAX_ROWS

_SECONDS = 20.0
"""The query's time limit: a sensor's tick runs it, too."""


def distinct_rows(
    connection: JdbcConnection, source: JdbcSource, columns: Sequence[str]
) -> Sequence[Mapping[str, Any]]:
    """Return the distinct rows of some columns, in their order.

    Args:
        connection: how to reach the database.
        source: the definition.
        columns: as the table or query names them.

    Raises:
        SourceError: the database refuses, does not answer (SourceUnreachable), or has more than a million
        rows. Its text contains no secret.
    """
    with client(connection, _SECONDS) as database:
        dialect = database.dialect
        names = ", ".join(map(dialect.name, columns))
        order = ", ".join(str(number) for number, _ in enumerate(columns, 1))
        rows = (
            f"(\n{strip_end(source.query, dialect.lexical_rules)}\n) AS units"
            if source.query is not None
            else ".".join(map(dialect.name, source.table_parts))
        )
        query = f"SELECT DISTINCT {names} FROM {rows} ORDER BY {order} LIMIT {MAX_ROWS + 1}"  # noqa: S608 - names are quoted, the query is the user's
        rows_ = database.ask(query)
    if len(rows_) > MAX_ROWS:
        raise SourceError(
            f"{source.label}: expected at most {MAX_ROWS} different rows, found more. Select fewer units"
        )
    return [dict(zip(columns, row, strict=True)) for row in rows_]


def requested_unit_texts(
    source: JdbcSource, zone: tzinfo, types: Mapping[str, ColumnType], extents: Sequence[Extent]
) -> Mapping[str, Collection[str]]:
    """Return the unit texts that the query filters by, by column; empty if it does not filter.

    Args:
        source: the definition.
        zone: the zone of times without one.
        types: the columns' types, by name.
        extents: the extents to read.
    """
    texts: dict[str, set[str]] = {}
    for unit in (unit for extent in extents for unit in extent.units):
        for name, column in source.unit_columns.items():
            type_ = types.get(column)
            is_text = type_ is not None and type_.spark_type == "string"
            if is_text and f"unit.{name}" not in source.placeholders and name in unit:
                value = fit_value(unit[name], "text", zone)
                texts.setdefault(column, set()).update([] if value is None else [value])
    return texts
