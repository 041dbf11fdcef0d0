"""Rows of a Delta table without Spark: how many there are, and distinct values of some columns (docs/guide-windows.md, Units).

Belongs here: reading. Filters, and what a row means, are the planner's.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from partitions.errors import SourceError, TargetError, in_one_line
from resources.places import Place
from resources.tables.delta.log import DeltaLog

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable


def distinct_rows(log: DeltaLog, columns: Sequence[str], most: int) -> Iterator[dict[str, Any]]:
    """Read distinct rows; see :meth:`resources.tables.table.Table.distinct_rows`."""
    table = source_table(log)
    _check_columns(table, log.place, columns)
    batches = _read_distinct(table, log.place, columns, most + 1)
    if sum(batch.num_rows for batch in batches) > most:
        raise SourceError(
            f"table {log.place}: expected at most {most:,} distinct rows of {', '.join(columns)}, found more. Name columns that are ids, or a"
            " table of fewer rows"
        )
    return chain.from_iterable(batch.to_pylist() for batch in batches)


def count_rows(log: DeltaLog, version: int | None = None) -> int:
    """Count the rows of a version (None: the newest) from its files' statistics, or by a scan if a file has none; 0 if there is no table.

    Raises:
        TargetError: if the version cannot be opened.
        SourceError: if it cannot be read.
    """
    table = log.table(version)
    if table is None:
        return 0
    counts = file_counts(table)
    return _scan(table, log.place) if None in counts else sum(counts)


def file_counts(table: DeltaTable) -> list[Any]:
    """Return the rows of each data file; None for one without statistics."""
    return list(table.get_add_actions(flatten=True).column("num_records").to_pylist())


def source_table(log: DeltaLog) -> DeltaTable:
    """Return the newest version of a table that is read.

    Raises:
        SourceError: code ``source_missing``: there is none; or it cannot be opened.
    """
    try:
        table = log.table()
    except TargetError as error:
        raise SourceError(error.message) from error
    if table is None:
        raise missing(log.place)
    return table


def missing(place: Place) -> SourceError:
    """Return the error for a table that is read and does not exist."""
    return SourceError(
        f"table {place}: expected a Delta table, found none. Load it first, or correct its name",
        code="source_missing",
    )


def _scan(table: DeltaTable, place: Place) -> int:
    from deltalake import QueryBuilder

    try:
        batches = QueryBuilder().register("source", table).execute("SELECT count(*) FROM source")
        return int(next(iter(batches)).column(0)[0].as_py())
    except Exception as error:
        raise SourceError(f"table {place}: cannot be read: {error}") from error


def _check_columns(table: DeltaTable, place: Place, columns: Sequence[str]) -> None:
    from deltalake.schema import PrimitiveType

    known = {field.name: field.type for field in table.schema().fields}
    for name in columns:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            raise SourceError(
                f"table {place}: expected a column {name}{hint}, found the columns {', '.join(known)}"
            )
        if not isinstance(known[name], PrimitiveType):
            raise SourceError(
                f"table {place}: expected a column with single values, found {name}, which holds nested ones"
            )


def _read_distinct(
    table: DeltaTable, place: Place, columns: Sequence[str], most: int
) -> list[pa.RecordBatch]:
    """As a query: the same reader without one gives deleted rows, and NULL in columns that are mapped by name."""
    import pyarrow as pa
    from deltalake import QueryBuilder

    names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    order = ", ".join(f"{number} NULLS FIRST" for number in range(1, len(columns) + 1))
    # With DISTINCT, or without the count, room is made for as many rows as the limit before the first is read.
    query = f"SELECT {names}, count(*) FROM source GROUP BY {names} ORDER BY {order} LIMIT {most}"  # noqa: S608 - names are quoted
    try:
        batches = QueryBuilder().register("source", table).execute(query)
        return [pa.record_batch(batch).select(range(len(columns))) for batch in batches]
    except Exception as error:
        why = in_one_line(str(error)) or type(error).__name__
        raise SourceError(f"table {place}: cannot be read: {why}") from error
