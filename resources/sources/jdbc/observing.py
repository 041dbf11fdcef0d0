"""What a database tells of a watermark's columns without a scan: their types, the highest values of those with an index, rows without a value."""

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
from resources.sources.jdbc.client import Client, Column, client, is_unknown_column
from resources.sources.jdbc.questions import Questions


def observe_columns(
    database: Client,
    connection: JdbcConnection,
    source: JdbcSource,
    questions: Questions,
    columns: Sequence[str],
) -> SourceObservation:
    """Ask for the clock, the columns' types, and what indexes tell; all of one snapshot.

    Args:
        database: that is asked.
        connection: of it, for one more that tells the names of columns if some are unknown.
        source: that is observed.
        questions: about it.
        columns: of the watermark.

    Raises:
        SourceError: there are no such columns, no run can read one of the source's, or the database refuses.
    """
    now = database.clock()
    described = _describe(database, connection, source, questions, columns)
    readable_types(database.describe(questions.columns()), source.label)
    kinds_of: dict[str, ValueType] = {column.name: column.kind for column in described if column.kind}
    refused = {column.name: column.why for column in described if not column.kind}
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
    """The columns that an index begins with, and those that are never NULL; none of a query."""
    query = questions.known_columns()
    rows = database.ask(query) if query is not None else ()
    return {row[0] for row in rows if row[1]}, {row[0] for row in rows if row[2]}


def _describe(
    database: Client,
    connection: JdbcConnection,
    source: JdbcSource,
    questions: Questions,
    columns: Sequence[str],
) -> Sequence[Column]:
    """Return the watermark's columns.

    Raises:
        SourceError: there are no such columns.
    """
    try:
        described = database.describe(questions.only(columns))
    except Exception as error:
        if is_unknown_column(error):
            with client(connection) as other:  # PostgreSQL lets an error end the transaction
                _check_names(source, columns, [column.name for column in other.describe(questions.columns())])
        raise
    own_names = [column.own_name or column.name for column in described]
    if all(name.casefold() == own.casefold() for name, own in zip(columns, own_names, strict=True)):
        _check_names(source, columns, own_names)
    return described


def _check_names(source: JdbcSource, columns: Sequence[str], names: Sequence[str]) -> None:
    missing = [column for column in columns if column not in names]
    if missing:
        raise SourceError(
            f"watermark.columns: expected columns of {source.label}, found {describe_missing(missing, names)}. Name those that are there,"
            " or put the old names back at the source"
        )


def _count_nulls(
    database: Client, questions: Questions, columns: Sequence[str], indexed: set[str], never_null: set[str]
) -> int | None:
    """The number of rows without a value in any of the columns; None if only a scan would tell."""
    if never_null & set(columns):
        return 0
    without = AllOf(tuple(Among(column, (None,)) for column in columns))
    return int(database.value(questions.count(without))) if indexed & set(columns) else None


def _identity(database: Client, source: JdbcSource) -> str | None:
    """What tells the tables that are read from others of their names, as JSON."""
    query = database.dialect.identity(source.table_parts)
    rows = database.ask(query) if query is not None else ()
    tables = {name: id_ for _, name, id_ in rows if id_ is not None}
    return json.dumps({"server": rows[0][0], "tables": tables}, sort_keys=True) if tables else None
