"""Check without Spark whether a source answers and has the columns that the definition names."""

from __future__ import annotations

from datetime import UTC, timedelta

from partitions.api.requests import sample_request
from partitions.plan import pluralize
from partitions.sources import ApiSource, JdbcSource, TableSource
from partitions.sources.database_types import readable_types
from partitions.sources.rows import RowsSource
from resources.connections.api import ApiConnection
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.dialects import DIALECTS
from resources.sources.api.client import ApiClient
from resources.sources.api.pages import iterate_pages
from resources.sources.jdbc.client import client
from resources.sources.jdbc.questions import Questions
from resources.sources.schema import check_names, named_columns
from resources.tables.registry import find_table

_SECONDS = 15.0


def look_at_database(connection: JdbcConnection, source: JdbcSource) -> str:
    """Return one line about a database and its columns.

    Raises:
        ConfigurationError: a column that the definition names is missing.
        SourceError: the database refuses, or does not answer (SourceUnreachable).
    """
    query = Questions(source, DIALECTS[connection.system], UTC).columns()
    with client(connection, _SECONDS) as database:
        names = list(readable_types(database.describe(query), source.label))
    check_names(source, names)
    return f"{connection}: readable, {_describe_columns(names, source)}"


def log_in(connection: JdbcConnection) -> str:
    """Return one line about a database that no source reads.

    Raises:
        SourceError: the database refuses, or does not answer (SourceUnreachable).
    """
    with client(connection, _SECONDS) as database:
        database.describe("SELECT 1 AS a")
    return f"{connection}: lets its user in"


def look_at_api(connection: ApiConnection, source: ApiSource) -> str:
    """Return one line about an API, after a request for one page.

    A source with placeholders is not requested: only windows have their values. A status that means "no
    rows" (``ignore_http_codes``) is an error here, since it may come from a mistyped path.

    Raises:
        SourceError: the API refuses, or does not answer (SourceUnreachable).
    """
    if source.placeholders:
        return f"{connection}: not checked (a request needs a window or a unit)"
    with ApiClient(connection, int(source.max_page_bytes), retry_for=timedelta(seconds=_SECONDS)) as client:
        strict = source.model_copy(update={"ignore_http_codes": (), "max_records": None})
        page = next(iterate_pages(client, strict, sample_request(source)))
    return f"{connection}: answers, {pluralize(len(page.document.records), 'record')} on the first page of {source.path}"


def look_at_table(place: Place, source: TableSource) -> str:
    """Return one line about a table of the lake and its columns.

    Raises:
        ConfigurationError: a column that the definition names is missing.
        SourceError: there is no table, or it cannot be read.
    """
    table = find_table(place)
    version, names = table.contents.newest_version(), table.contents.columns()
    check_names(source, names)
    return f"{place}: readable, version {version}, {_describe_columns(names, source)}"


def _describe_columns(names: list[str], source: RowsSource) -> str:
    columns_by_key = named_columns(source)
    return f"{source.label} has {len(names)} columns{', including ' + ', '.join(columns_by_key.values()) if columns_by_key else ''}"
