"""Open database transactions that may still write rows of a source.

See docs/reference/columns.md, Rows that are committed late.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from partitions.column.open_transactions import OpenTransaction, TransactionsUnknown, WritingTransactions
from resources.sources.jdbc.client import Client

_NEVER = TransactionsUnknown(
    "MariaDB and MySQL do not show which transactions may still write to a table", always=True
)


def open_writers(database: Client, columns: Sequence[str]) -> WritingTransactions | TransactionsUnknown:
    """Return the transactions that are open now, or why the database does not reveal them.

    Args:
        database: its transaction has read the source, so that it holds locks on its tables.
        columns: the watermark's columns.
    """
    dialect = database.dialect
    query = dialect.locked_tables()
    if query is None:
        return _NEVER
    tables = database.ask(query)
    reason = next((f"{name}: {reason}" for _, name, reason in tables if reason), None)
    if reason is not None or not tables:
        return TransactionsUnknown(reason or "the query reads no table")
    oids = [oid for oid, *_ in tables]
    sequences = database.ask(dialect.sequences(oids, columns))
    cached_sequence = next(((name, cache) for _, name, cache in sequences if cache > 1), None)
    if cached_sequence is not None:
        return TransactionsUnknown(
            f"each session takes {cached_sequence[1]} numbers of the sequence {cached_sequence[0]} at once, and may use them in any later transaction (CACHE)"
        )
    *preparations, query = dialect.open_transactions(oids, [oid for oid, *_ in sequences])
    for statement in preparations:
        database.ask(statement)
    return _writers(database.ask(query))


def _writers(rows: Sequence[tuple[Any, ...]]) -> WritingTransactions:
    """Sort the rows of ``Dialect.open_transactions``; the last row describes only the server."""
    server = str(rows[-1][-1])
    writing = tuple(_transaction(row) for row in rows if row[0])
    readers = [row for row in rows if row[0] is False]
    hidden = tuple(_transaction(row) for row in readers if row[5] is None)
    visible_readers = [row for row in readers if row[5] is not None]
    oldest = min(visible_readers, key=lambda row: row[5], default=None)
    return WritingTransactions(
        server,
        writing,
        hidden,
        oldest[5] if oldest else None,
        _transaction(oldest).words if oldest else "",
    )


def _transaction(row: tuple[Any, ...]) -> OpenTransaction:
    _, identity, number, process, name, began, _ = row
    is_prepared = process is None
    who = f"prepared transaction {name or number}" if is_prepared else f"process {process}"
    application = f" ({name})" if name and not is_prepared else ""
    since = f", open since {began:%Y-%m-%d %H:%M:%S} UTC" if isinstance(began, datetime) else ""
    return OpenTransaction(identity or "", number, is_prepared, f"{who}{application}{since}")
