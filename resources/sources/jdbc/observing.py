"""What a database reveals about a watermark's columns without a scan.

These are their types, the highest values of indexed columns, and the number of rows without a value.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from partitions.column.source import SourceObservation
from partitions.errors import SourceError
from partitions.predicate import AllOf, Among
from partitions.sources import JdbcSource
from partitions.sources.database_types import readable_types
from partitions.spelling import describe_missing
from partitions.unit_values import ValueType
from resources.connections.jdbc import JdbcConnection
from resources.sources.jdbc.client import Client, CursorColumn, client, is_unknown_column
from resources.sources.jdbc.questions import Questions


def observe_columns(
    database: Client,
    connection: JdbcConnection,
    source: JdbcSource,
    questions: Questions,
    columns: Sequence[str],
) -> SourceObservation:
    """Return the clock, the columns' types, and what indexes reveal, all of one snapshot.

    Args:
        database: the open connection.
        connection: for a second connection that lists the columns if some are unknown.
        source: the definition.
        questions: about the source.
        columns: the watermark's columns.

    Raises:
        SourceError: columns are unknown, no run can read one of the source's columns, or the database
        refuses.
    """
    now = database.clock()
    described_columns = _describe(database, connection, source, questions, columns)
    readable_types(database.describe(questions.columns()), source.label)
    kinds_of: dict[str, ValueType] = {column.name: column.kind for column in described_columns if column.kind}
    refused = {column.name: column.why for column in described_columns if not column.kind}
    indexed, never_null = indexed_and_never_null(database, questions)
    highest = {
        name: database.value(questions.highest(name, kind))
        for name, kind in kinds_of.items()
        if name in indexed and kind not in ("text", "flag")
    }
    nulls = _count_nulls(database, questions, columns, indexed, never_null)
    return SourceObservation(
        now, kinds_of, highest, nulls, refused_columns=refused, source=_identity(database, source)
    )


def indexed_and_never_null(database: Client, questions: Questions) -> tuple[set[str], set[str]]:
    """Return the columns that lead an index, and those that are never NULL; none for a query."""
    query = questions.known_columns()
    rows = database.ask(query) if query is not None else ()
    return {row[0] for row in rows if row[1]}, {row[0] for row in rows if row[2]}


def _describe(
    database: Client,
    connection: JdbcConnection,
    source: JdbcSource,
    questions: Questions,
    columns: Sequence[str],
) -> Sequence[CursorColumn]:
    """Return the watermark's columns.

    Raises:
        SourceError: columns are unknown.
    """
    try:
        described_columns = database.describe(questions.only(columns))
    except Exception as error:
        if is_unknown_column(error):
            with client(connection) as second_connection:  # PostgreSQL lets an error end the transaction
                _check_names(
                    source,
                    columns,
                    [column.name for column in second_connection.describe(questions.columns())],
                )
        raise
    own_names = [column.own_name or column.name for column in described_columns]
    if all(name.casefold() == own_name.casefold() for name, own_name in zip(columns, own_names, strict=True)):
        _check_names(source, columns, own_names)
    return described_columns


def _check_names(source: JdbcSource, columns: Sequence[str], names: Sequence[str]) -> None:
    missing = [column for column in columns if column not in names]
    if missing:
        raise SourceError(
            f"watermark.columns: expected columns of {source.label}, found {describe_missing(missing, names)}. "
            "Name existing columns, or restore the old names at the source"
        )


def _count_nulls(
    database: Client, questions: Questions, columns: Sequence[str], indexed: set[str], never_null: set[str]
) -> int | None:
    """Return the number of rows without a value in any column; None if only a scan could count them."""
    if never_null & set(columns):
        return 0
    null_rows = AllOf(tuple(Among(column, (None,)) for column in columns))
    return int(database.value(questions.count(null_rows))) if indexed & set(columns) else None


def _identity(database: Client, source: JdbcSource) -> str | None:
    """Return the identity of the tables that are read, as JSON: it differs for a recreated table."""
    query = database.dialect.identity(source.table_parts)
    rows = database.ask(query) if query is not None else ()
    tables = {name: id_ for _, name, id_ in rows if id_ is not None}
    return json.dumps({"server": rows[0][0], "tables": tables}, sort_keys=True) if tables else None
