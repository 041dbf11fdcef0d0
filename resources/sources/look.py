"""A look at a source without Spark: whether it answers, and has the columns that the definition names."""

from __future__ import annotations

from datetime import UTC

from partitions.sources import JdbcSource, TableSource
from partitions.sources.rows import RowsSource
from resources.dialects import DIALECTS
from resources.jdbc import JdbcConnection
from resources.places import Place
from resources.sources.jdbc.client import client
from resources.sources.jdbc.query import JdbcQuery
from resources.sources.schema import check_names, named_columns
from resources.tables import find_table

_SECONDS = 15.0


def look_at_database(connection: JdbcConnection, source: JdbcSource) -> str:
    """What a database says of the columns; one line for people.

    Raises:
        ConfigurationError: if a column that the definition names is not there.
        SourceError: if the database refuses, or does not answer (SourceUnreachable).
    """
    query = JdbcQuery(source, DIALECTS[connection.system], UTC).columns()
    with client(connection, _SECONDS) as asking:
        names = [column.name for column in asking.describe(query)]
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


def _counted(names: list[str], source: RowsSource) -> str:
    named = named_columns(source)
    return f"{source.shown} has {len(names)} columns{', ' + ', '.join(named.values()) + ' among them' if named else ''}"
