"""Some columns of a table of the lake as plain rows, without Spark: what a list of units is made of (spec 03, Units).

Belongs here: reading. Filters, and what a row means, are the planner's.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from partitions.errors import SourceError, TargetError, in_one_line
from resources.places import Place
from resources.writers.delta_log import DeltaLog

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

MOST = 1_000_000
"""Distinct rows. A list of units that is longer is a mistake: a column that is no id."""


def rows(place: Place, fields: Sequence[str], most: int = MOST) -> Iterator[dict[str, Any]]:
    """The distinct rows of a Delta table's newest version, sorted by the fields in their order, NULLs first.

    Types are kept: whole numbers are int, text is str, instants are aware and in UTC, times without zone are naive, decimals
    are Decimal.

    Args:
        place: of the table.
        fields: names of columns with single values; at least one.
        most: distinct rows that are taken.

    Raises:
        SourceError: where there is no table, a column is not there or holds nested values, there are more rows, or the table cannot be
            read. Never is any of these an empty list.
    """
    table = _table(place)
    _check(table, place, fields)
    batches = _distinct(table, place, fields, most + 1)
    if sum(batch.num_rows for batch in batches) > most:
        raise SourceError(
            f"table {place}: expected at most {most:,} distinct rows of {', '.join(fields)}, found more. Name columns that are ids, or a"
            " table of fewer rows"
        )
    return chain.from_iterable(batch.to_pylist() for batch in batches)


def scanned_rows(table: DeltaTable, place: Place) -> int:
    """How many rows a table holds, by reading it.

    Raises:
        SourceError: if it cannot be read.
    """
    from deltalake import QueryBuilder

    try:
        found = QueryBuilder().register("source", table).execute("SELECT count(*) FROM source")
        return int(next(iter(found)).column(0)[0].as_py())
    except Exception as error:
        raise SourceError(f"table {place}: cannot be read: {error}") from error


def _table(place: Place) -> DeltaTable:
    try:
        table = DeltaLog(place).table()
    except TargetError as error:
        raise SourceError(error.message) from error
    if table is None:
        raise SourceError(
            f"table {place}: expected a Delta table, found none. Load it first, or correct its name",
            code="source_missing",
        )
    return table


def _check(table: DeltaTable, place: Place, fields: Sequence[str]) -> None:
    from deltalake.schema import PrimitiveType

    known = {field.name: field.type for field in table.schema().fields}
    for name in fields:
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


def _distinct(table: DeltaTable, place: Place, fields: Sequence[str], most: int) -> list[pa.RecordBatch]:
    """As a query: the same reader without one gives deleted rows, and NULL in columns that are mapped by name."""
    import pyarrow as pa
    from deltalake import QueryBuilder

    names = ", ".join('"' + name.replace('"', '""') + '"' for name in fields)
    order = ", ".join(f"{number} NULLS FIRST" for number in range(1, len(fields) + 1))
    # With DISTINCT, or without the count, room is made for as many rows as the limit before the first is read.
    query = f"SELECT {names}, count(*) FROM source GROUP BY {names} ORDER BY {order} LIMIT {most}"  # noqa: S608 - names are quoted
    try:
        found = QueryBuilder().register("source", table).execute(query)
        return [pa.record_batch(batch).select(range(len(fields))) for batch in found]
    except Exception as error:
        said = in_one_line(str(error)) or type(error).__name__
        raise SourceError(f"table {place}: cannot be read: {said}") from error
