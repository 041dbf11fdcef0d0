"""The rows of a table or query that gives the units of a window watermark. Starts no Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from partitions.errors import SourceError
from partitions.sources import JdbcSource
from partitions.sql_text import without_end
from resources.connections.jdbc import JdbcConnection
from resources.sources.jdbc.client import client
from resources.tables.contract.commits import MOST_ROWS

_SECONDS = 20.0
"""For the query: a sensor's tick asks it, too."""


def distinct_rows(
    connection: JdbcConnection, source: JdbcSource, columns: Sequence[str]
) -> Sequence[Mapping[str, Any]]:
    """Return the different rows of some columns of a table or query, in their order: the database's own may differ from look to look.

    Args:
        connection: where the database is.
        source: of the user.
        columns: as the table or query names them.

    Raises:
        SourceError: the database refuses, does not answer (SourceUnreachable), or there are more than a million. Its text shows no secret.
    """
    with client(connection, _SECONDS) as database:
        dialect = database.dialect
        names = ", ".join(map(dialect.name, columns))
        order = ", ".join(str(number) for number, _ in enumerate(columns, 1))
        rows = (
            f"(\n{without_end(source.query, dialect.reading)}\n) AS units"
            if source.query is not None
            else ".".join(map(dialect.name, source.table_parts))
        )
        asked = f"SELECT DISTINCT {names} FROM {rows} ORDER BY {order} LIMIT {MOST_ROWS + 1}"  # noqa: S608 - names are quoted, the query is the user's
        found = database.ask(asked)
    if len(found) > MOST_ROWS:
        raise SourceError(f"{source.shown}: expected at most {MOST_ROWS} different rows, found more")
    return [dict(zip(columns, row, strict=True)) for row in found]
