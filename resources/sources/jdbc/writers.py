"""The transactions that are open at a database and may still write rows of a source (docs/reference/columns.md, Rows that are committed late)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from partitions.column.writers import OpenTransaction, TransactionsUnknown, WritingTransactions
from resources.sources.jdbc.client import Client

_NEVER = TransactionsUnknown(
    "MariaDB and MySQL do not tell which transactions may still write to a table", always=True
)


def open_writers(database: Client, columns: Sequence[str]) -> WritingTransactions | TransactionsUnknown:
    """Return the transactions that are open right now, or why the database does not tell them.

    Args:
        database: whose transaction has read the source, so that it holds locks on its tables.
        columns: of the watermark.
    """
    dialect = database.dialect
    query = dialect.locked_tables()
    if query is None:
        return _NEVER
    tables = database.ask(query)
    why = next((f"{name}: {why}" for _, name, why in tables if why), None)
    if why is not None or not tables:
        return TransactionsUnknown(why or "no table is behind it")
    oids = [oid for oid, *_ in tables]
    sequences = database.ask(dialect.sequences(oids, columns))
    cached = next(((name, cache) for _, name, cache in sequences if cache > 1), None)
    if cached is not None:
        return TransactionsUnknown(
            f"each session takes {cached[1]} numbers of the sequence {cached[0]} at once, and may use them in any later transaction (CACHE)"
        )
    *before, query = dialect.open_transactions(oids, [oid for oid, *_ in sequences])
    for each in before:
        database.ask(each)
    return _writers(database.ask(query))


def _writers(rows: Sequence[tuple[Any, ...]]) -> WritingTransactions:
    """Sort the rows of ``Dialect.open_transactions``; the last of them tells of the server alone."""
    server = str(rows[-1][-1])
    writing = tuple(_transaction(row) for row in rows if row[0])
    others = [row for row in rows if row[0] is False]
    hidden = tuple(_transaction(row) for row in others if row[5] is None)
    seen = [row for row in others if row[5] is not None]
    oldest = min(seen, key=lambda row: row[5], default=None)
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
