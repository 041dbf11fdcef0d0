"""A look at a source without Spark: whether it answers, and has the columns that the definition names."""

from __future__ import annotations

from datetime import UTC

from partitions.errors import SourceError, in_one_line
from partitions.sources import JdbcSource, TableSource
from partitions.sources.rows import RowsSource
from resources.dialects import DIALECTS
from resources.jdbc import JdbcConnection
from resources.places import Place
from resources.sources.jdbc.failures import error_of
from resources.sources.jdbc.query import JdbcQuery
from resources.sources.schema import check_names, named_columns
from resources.tables import find_table

_LIMIT = "-c statement_timeout=15s"


def look_at_database(connection: JdbcConnection, source: JdbcSource) -> str:
    """What a database says of the columns; one line for people.

    Raises:
        ConfigurationError: if a column that the definition names is not there.
        SourceError: if the database refuses, or does not answer (SourceUnreachable).
    """
    query = JdbcQuery(source, DIALECTS[connection.system], UTC).columns()
    if connection.system != "postgresql":
        return f"{connection}: not tried, since only Spark has its driver; the first run tells"
    names = _postgresql_columns(connection, query)
    check_names(source, names)
    return f"{connection}: reads, {_counted(names, source)}"


def look_at_table(place: Place, source: TableSource) -> str:
    """What a table of the lake has; one line for people.

    Raises:
        ConfigurationError: if a column that the definition names is not there.
        SourceError: if there is no table, or it cannot be read.
    """
    table = find_table(place)
    version, names = table.newest_version(), table.columns()
    check_names(source, names)
    return f"{place}: reads, version {version}, {_counted(names, source)}"


def _postgresql_columns(connection: JdbcConnection, query: str) -> list[str]:
    import psycopg

    settings = connection.libpq
    options = f"{settings.pop('options', '')} {_LIMIT}".strip()
    try:
        with psycopg.connect(**settings, connect_timeout=5, options=options) as session:  # type: ignore[arg-type]
            columns = session.execute(query.encode()).description
    except psycopg.Error as error:
        said = (
            in_one_line(str(error)) or type(error).__name__
        )  # of several servers each has a line of its own
        raise error_of(said, connection) from None  # its own text may quote the address
    if columns is None:
        raise SourceError(f"database {connection}: expected columns, found none; a query is a SELECT")
    return [column.name for column in columns]


def _counted(names: list[str], source: RowsSource) -> str:
    named = named_columns(source)
    return f"{source.shown} has {len(names)} columns{', ' + ', '.join(named.values()) + ' among them' if named else ''}"
