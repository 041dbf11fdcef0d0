"""The rows of a query that gives the units of a window watermark. Starts no Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from partitions.sql_text import without_end
from resources.jdbc import JdbcConnection
from resources.sources.jdbc.client import client

_SECONDS = 20.0
"""For the query: a sensor's tick asks it, too."""


def distinct_rows(
    connection: JdbcConnection, query: str, columns: Sequence[str]
) -> Sequence[Mapping[str, Any]]:
    """Return the different rows of some columns of a query, in their order: the database's own may differ from look to look.

    Args:
        connection: where the database is.
        query: of the user, a SELECT.
        columns: as the query names them.

    Raises:
        SourceError: the database refuses, or does not answer (SourceUnreachable). Its text shows no secret.
    """
    with client(connection, _SECONDS) as database:
        dialect = database.dialect
        names = ", ".join(map(dialect.name, columns))
        order = ", ".join(str(number) for number, _ in enumerate(columns, 1))
        rows = f"(\n{without_end(query, dialect.reading)}\n) AS units"
        found = database.ask(f"SELECT DISTINCT {names} FROM {rows} ORDER BY {order}")  # noqa: S608 - names are quoted, the query is the user's
    return [dict(zip(columns, row, strict=True)) for row in found]
