"""Read counts, bounds and distinct values of a Delta table without Spark.

Lists of units come from here (docs/reference/windows.md, Units).

Belongs here: reading. Filters, and what a row means, are the planner's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from partitions.decimal_bounds import decimal_digits, fit_bounds
from partitions.errors import SourceError, TargetError
from partitions.predicate import EVERYTHING, Predicate, columns_of
from resources.connections.places import Place
from resources.dialects.datafusion import DATAFUSION, DataFusion
from resources.dialects.predicates import predicate_sql
from resources.tables.column_check import check_columns
from resources.tables.contract.spans import FileSpan
from resources.tables.delta import arrow_rows
from resources.tables.delta.arrow_rows import needs_arrow, raising_unreadable, reader_of, unreadable_error
from resources.tables.delta.inexact_statistics import is_long_decimal, misread_columns
from resources.tables.delta.log import DeltaLog
from resources.tables.python_values import python_value
from resources.tables.text_counts import no_texts

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable


_DELETION_VECTORS = "deletionVectors"
"""Feature of tables whose statistics also count deleted rows."""
_FLOATS = ("float", "double")
_FINITE = f" FILTER (WHERE {{0}} BETWEEN -{sys.float_info.max!r} AND {sys.float_info.max!r})"
"""Filter: a watermark cannot be infinity or NaN, which sorts above all numbers."""


def distinct_rows(log: DeltaLog, columns: Sequence[str], max_rows: int) -> Iterator[dict[str, Any]]:
    """Return the distinct rows of some columns in the newest version, sorted, NULLs first.

    See :meth:`resources.tables.contract.contents.TableContents.distinct_rows`.
    """
    table = source_table(log)
    fields = json.loads(table.schema().to_json())["fields"]
    check_columns(log.place, {field["name"]: field["type"] for field in fields}, columns)
    batches = _read_distinct(table, log.place, columns, max_rows + 1)
    if sum(batch.num_rows for batch in batches) > max_rows:
        raise SourceError(
            f"table {log.place}: expected at most {max_rows:,} distinct rows of {', '.join(columns)}, "
            "found more. Name columns that identify units, or a smaller table"
        )
    return chain.from_iterable(batch.to_pylist() for batch in batches)


def text_counts(log: DeltaLog, column: str, rows: Predicate) -> pa.Table:
    """Return each text of a column with its number of rows that meet a condition.

    See :meth:`resources.tables.contract.contents.TableContents.text_counts`.

    Raises:
        SourceError: the table cannot be read.
    """
    import pyarrow as pa
    from deltalake import QueryBuilder

    table = source_table(log)
    if needs_arrow(table):
        return arrow_rows.text_counts(table, log.place, column, rows)
    name = DATAFUSION.name(column)
    query = f"SELECT {name} AS text, count(*) AS rows FROM source WHERE {name} IS NOT NULL AND {_condition(table, rows)} GROUP BY {name}"  # noqa: S608 - names are quoted, values are literals
    try:
        batches = [
            pa.record_batch(batch) for batch in QueryBuilder().register("source", table).execute(query)
        ]
        counts = pa.Table.from_batches(batches) if batches else no_texts()
        return counts.cast(no_texts().schema)
    except Exception as error:
        raise unreadable_error(log.place, error) from error


def count_rows(log: DeltaLog, version: int | None = None, rows: Predicate = EVERYTHING) -> int:
    """Count rows of a version (None: the newest); 0 if there is no table.

    All rows are counted from file statistics if each file has some; otherwise the table is scanned.

    Raises:
        TargetError: the version cannot be opened.
        SourceError: it cannot be read.
    """
    table = log.table(version)
    if table is None:
        return 0
    counts = file_counts(table)
    return _scan_count(table, log.place, rows) if rows != EVERYTHING or None in counts else sum(counts)


def file_counts(table: DeltaTable) -> list[Any]:
    """Return the number of rows of each data file; None for a file without statistics."""
    return list(table.get_add_actions(flatten=True).column("num_records").to_pylist())


def rows_by_statistics(log: DeltaLog) -> int | None:
    """Return the rows of the newest version by its files' statistics; 0 if there is no table.

    None if a file has none, or if deletion vectors may hide rows of a file.
    """
    table = log.table()
    if table is None:
        return 0
    counts = file_counts(table)
    hides_rows = _DELETION_VECTORS in (table.protocol().reader_features or ())
    return None if hides_rows or None in counts else sum(counts)


def holds_any(log: DeltaLog, version: int, rows: Predicate) -> bool:
    """Return whether a version has a row that meets a condition.

    Raises:
        SourceError: it cannot be read.
    """
    from deltalake import QueryBuilder

    table = source_table(log, version)
    if needs_arrow(table):
        return arrow_rows.holds_any(table, log.place, rows)
    query = f"SELECT 1 FROM source WHERE {_condition(table, rows)} LIMIT 1"  # noqa: S608 - names are quoted, values are literals
    try:
        batches = QueryBuilder().register("source", table).execute(query)
        return any(batch.num_rows for batch in batches)
    except Exception as error:
        raise unreadable_error(log.place, error) from error


def first_rows(log: DeltaLog, limit: int, rows: Predicate) -> pa.Table:
    """Return rows of the newest version that meet a condition.

    See :meth:`resources.tables.contract.contents.TableContents.first_rows`.
    """
    import pyarrow as pa
    from deltalake import QueryBuilder

    table = source_table(log)
    if needs_arrow(table):
        return arrow_rows.first_rows(table, log.place, limit, rows)
    query = f"SELECT * FROM source WHERE {_condition(table, rows)} LIMIT {limit}"  # noqa: S608 - names are quoted, values are literals
    try:
        batches = [
            pa.record_batch(batch) for batch in QueryBuilder().register("source", table).execute(query)
        ]
    except Exception as error:
        raise unreadable_error(log.place, error) from error
    return pa.Table.from_batches(batches, None if batches else pa.schema(table.schema().to_arrow()))


def select_rows(
    log: DeltaLog, version: int, rows: Predicate, columns: Sequence[str] | None
) -> pa.RecordBatchReader:
    """Return the rows of a version that meet a condition, with the types of the table's schema.

    See :meth:`resources.tables.contract.contents.TableContents.arrow_rows`.
    """
    import pyarrow as pa
    from deltalake import QueryBuilder

    table = source_table(log, version)
    schema = pa.schema(table.schema().to_arrow())
    names = schema.names if columns is None else columns
    if needs_arrow(table):
        return arrow_rows.select_rows(table, log.place, rows, names)
    select_list = ", ".join(map(DATAFUSION.name, names))
    query = f"SELECT {select_list} FROM source WHERE {_condition(table, rows)}"  # noqa: S608 - names are quoted, values are literals
    schema = pa.schema([pa.field(name, schema.field(name).type) for name in names])
    with raising_unreadable(log.place):
        # DataFusion returns texts and bytes as views, which few libraries take.
        result = QueryBuilder().register("source", table).execute(query)
        batches = pa.RecordBatchReader.from_stream(result).cast(schema)
    return reader_of(log.place, schema, batches)


def highest_values(
    log: DeltaLog, columns: Sequence[str], version: int | None = None, rows: Predicate | None = None
) -> dict[str, Any]:
    """Return the highest value of columns in some rows of a version.

    See :meth:`resources.tables.contract.contents.TableContents.highest_values`.

    Raises:
        SourceError: it cannot be read.
    """
    import pyarrow as pa
    from deltalake import QueryBuilder

    table = source_table(log, version)
    if needs_arrow(table):
        return arrow_rows.highest_values(table, log.place, columns, EVERYTHING if rows is None else rows)
    floats = {field.name for field in table.schema().fields if field.type.type in _FLOATS}
    select_list = ", ".join(
        f"max({DATAFUSION.name(name)}){_FINITE.format(DATAFUSION.name(name)) if name in floats else ''} AS v{number}"
        for number, name in enumerate(columns)
    )
    condition = _condition(table, EVERYTHING if rows is None else rows)
    query = f"SELECT {select_list} FROM source WHERE {condition}"  # noqa: S608 - names are quoted, values are literals
    try:
        batches = QueryBuilder().register("source", table).execute(query)
        (row,) = [row for batch in batches for row in pa.record_batch(batch).to_pylist()]
    except Exception as error:
        raise unreadable_error(log.place, error) from error
    return {name: row[f"v{number}"] for number, name in enumerate(columns)}


def file_maxima(log: DeltaLog, version: int, column: str) -> list[tuple[Any, int]]:
    """Return each file's highest value from statistics.

    See :meth:`resources.tables.contract.contents.TableContents.file_maxima`.
    """
    import pyarrow as pa

    actions = pa.table(source_table(log, version).get_add_actions(flatten=True))
    bound_name = next(
        (name for name in (f"max.{column}", f"partition.{column}") if name in actions.column_names), None
    )
    if bound_name is None:
        return []
    rows = zip(
        map(python_value, actions.column(bound_name)), actions.column("num_records").to_pylist(), strict=True
    )
    return [(value, count) for value, count in rows if value is not None and count is not None]


def file_spans(log: DeltaLog, version: int, group: str, column: str) -> list[FileSpan] | None:
    """Return each file's span from statistics.

    See :meth:`resources.tables.contract.spans.TellsSpans.file_spans`.
    """
    import pyarrow as pa

    table = source_table(log, version)
    actions = pa.table(table.get_add_actions(flatten=True))
    names = [f"min.{group}", f"max.{group}", f"min.{column}", f"max.{column}", "num_records"]
    if actions.num_rows == 0:
        return []
    if _DELETION_VECTORS in (table.protocol().reader_features or ()) or not set(names) <= set(
        actions.column_names
    ):
        return None
    file_bounds = list(zip(*(actions.column(name).to_pylist() for name in names), strict=True))
    are_complete = all(None not in file and file[0] == file[1] for file in file_bounds)
    return [FileSpan(*file[1:]) for file in file_bounds] if are_complete else None


def source_table(log: DeltaLog, version: int | None = None) -> DeltaTable:
    """Open a version (None: the newest) of a table that a source reads.

    Raises:
        SourceError: code ``source_missing``: there is no table; or it cannot be opened.
    """
    try:
        table = log.table(version)
    except TargetError as error:
        raise SourceError(error.message) from error
    if table is None:
        raise missing_table_error(log.place)
    return table


def missing_table_error(place: Place) -> SourceError:
    """Return the error for a source table that does not exist."""
    return SourceError(
        f"table {place}: expected a table, found none. Load it first, or correct its name",
        code="source_missing",
    )


def _condition(table: DeltaTable, rows: Predicate) -> str:
    """Return a condition as DataFusion SQL, with bounds that its decimal columns can hold.

    DataFusion compares decimals with no other bounds. The SQL lets no file be skipped by bounds of long
    decimals, which may be doubles, or of texts that deltalake may misread.
    """
    types = {field.name: getattr(field.type, "type", "") for field in table.schema().fields}
    digits = {
        name: count for name, data_type in types.items() if (count := decimal_digits(data_type)) is not None
    }
    long_decimals = frozenset(name for name, data_type in types.items() if is_long_decimal(data_type))
    return predicate_sql(
        fit_bounds(rows, digits), DataFusion(long_decimals | misread_columns(table, columns_of(rows)))
    )


def _scan_count(table: DeltaTable, place: Place, rows: Predicate) -> int:
    from deltalake import QueryBuilder

    if needs_arrow(table):
        return arrow_rows.count(table, place, rows)
    query = f"SELECT count(*) FROM source WHERE {_condition(table, rows)}"  # noqa: S608 - names are quoted, values are literals
    try:
        batches = QueryBuilder().register("source", table).execute(query)
        return int(next(iter(batches)).column(0)[0].as_py())
    except Exception as error:
        raise unreadable_error(place, error) from error


def _read_distinct(
    table: DeltaTable, place: Place, columns: Sequence[str], max_rows: int
) -> list[pa.RecordBatch]:
    """Return at most ``max_rows`` distinct rows, by a query unless only Arrow can read the table.

    Without a query the same reader returns deleted rows, and NULL in mapped columns.
    """
    import pyarrow as pa
    from deltalake import QueryBuilder

    if needs_arrow(table):
        return arrow_rows.distinct_values(table, place, columns, max_rows)
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    order = ", ".join(f"{number} NULLS FIRST" for number in range(1, len(columns) + 1))
    # With DISTINCT, or without the count, DataFusion allocates memory for as many rows as the limit up front.
    query = f"SELECT {names}, count(*) FROM source GROUP BY {names} ORDER BY {order} LIMIT {max_rows}"  # noqa: S608 - names are quoted
    try:
        batches = QueryBuilder().register("source", table).execute(query)
        return [pa.record_batch(batch).select(range(len(columns))) for batch in batches]
    except Exception as error:
        raise unreadable_error(place, error) from error
