"""Read rows of an Iceberg table with pyiceberg: counts and values.

Belongs here: reading. Filters, and what a row means, are the planner's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from partitions.errors import SourceError
from partitions.predicate import EVERYTHING, Predicate
from partitions.target import COMMIT_COLUMN
from resources.tables.column_check import check_columns
from resources.tables.contract.spans import FileSpan
from resources.tables.iceberg.filters import to_expression
from resources.tables.iceberg.metadata import Metadata, Snapshot
from resources.tables.iceberg.scan import (
    arrow_types,
    data_files,
    has_rows,
    highest_values_of,
    open_table_at,
    read_batches,
    scan_count,
    unreadable_error,
)
from resources.tables.python_values import python_value
from resources.tables.text_counts import count_texts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import StaticTable
    from pyiceberg.types import NestedField


def count_rows(metadata: Metadata, snapshot: Snapshot | None = None, rows: Predicate = EVERYTHING) -> int:
    """Count rows of a snapshot (None: the newest), from its summary if possible.

    It scans if rows were deleted by value, or if only some rows count.

    Raises:
        SourceError: the rows cannot be read.
    """
    snapshot = snapshot or metadata.current
    if snapshot is None:
        return 0
    if rows != EVERYTHING:
        return scan_count(metadata, snapshot, to_expression(rows, metadata.version_schema))
    return snapshot.rows if snapshot.rows is not None else scan_count(metadata, snapshot, None)


def text_counts(metadata: Metadata, column: str, rows: Predicate) -> pa.Table:
    """Return each text of a column with its number of rows that meet a condition.

    See :meth:`resources.tables.contract.contents.TableContents.text_counts`.

    Raises:
        SourceError: the rows cannot be read.
    """
    condition = to_expression(rows, metadata.version_schema) if rows != EVERYTHING else None
    return count_texts(read_batches(metadata, metadata.current, [column], condition), column)


def holds_any(metadata: Metadata, snapshot: Snapshot | None, rows: Predicate) -> bool:
    """Return whether a snapshot has a row that meets a condition.

    Raises:
        SourceError: the rows cannot be read.
    """
    return snapshot is not None and has_rows(metadata, snapshot, to_expression(rows, metadata.version_schema))


def first_rows(metadata: Metadata, columns: Sequence[str], limit: int, rows: Predicate) -> pa.Table:
    """Return rows of the newest snapshot that meet a condition.

    See :meth:`resources.tables.contract.contents.TableContents.first_rows`.
    """
    import pyarrow as pa

    condition = to_expression(rows, metadata.version_schema)
    batches = list(read_batches(metadata, metadata.current, columns, condition, limit))
    if batches:
        return pa.Table.from_batches(batches).select(list(columns))
    return pa.table({name: [] for name in columns})


def select_rows(
    metadata: Metadata,
    snapshot: Snapshot | None,
    rows: Predicate,
    columns: Sequence[str] | None,
    hidden: Sequence[str] = (),
) -> pa.RecordBatchReader:
    """Return the rows of a snapshot that meet a condition, with the types of its columns.

    See :meth:`resources.tables.contract.contents.TableContents.arrow_rows`.

    Args:
        metadata: metadata of the table.
        snapshot: snapshot whose rows are read; None: no rows.
        rows: condition of the rows.
        columns: columns to return; None: all except the hidden ones.
        hidden: columns that only Strandline uses.
    """
    import pyarrow as pa

    types = arrow_types(metadata, snapshot)
    names = [name for name in types if name not in hidden] if columns is None else list(columns)
    schema = pa.schema([(name, types[name]) for name in names])
    condition = to_expression(rows, metadata.version_schema) if rows != EVERYTHING else None
    batches = read_batches(metadata, snapshot, names, condition)
    return pa.RecordBatchReader.from_batches(schema, (batch.select(names).cast(schema) for batch in batches))


def highest_values(
    metadata: Metadata, snapshot: Snapshot | None, columns: Sequence[str], rows: Predicate | None
) -> dict[str, Any]:
    """Return the highest value of columns in some rows of a snapshot.

    See :meth:`resources.tables.contract.contents.TableContents.highest_values`.

    Raises:
        SourceError: the rows cannot be read.
    """
    condition = None if rows is None else to_expression(rows, metadata.version_schema)
    return highest_values_of(metadata, snapshot, columns, condition)


def distinct_rows(metadata: Metadata, columns: Sequence[str], max_rows: int) -> Iterator[dict[str, Any]]:
    """Return the distinct rows of some columns in the newest snapshot, sorted, NULLs first.

    See :meth:`resources.tables.contract.contents.TableContents.distinct_rows`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column_types = {field["name"]: field["type"] for field in metadata.version_schema["fields"]}
    check_columns(metadata.table_location, column_types, columns, hidden=(COMMIT_COLUMN,))
    distinct_values: pa.Table | None = None
    for batch in read_batches(metadata, metadata.current, columns, None):
        # Number the columns, because one may be requested twice.
        batch_table = pa.table(
            [batch.column(name) for name in columns], names=[f"c{number}" for number in range(len(columns))]
        )
        batch_values = (
            batch_table if distinct_values is None else pa.concat_tables([distinct_values, batch_table])
        )
        distinct_values = batch_values.group_by(batch_values.column_names, use_threads=False).aggregate([])
        if distinct_values.num_rows > max_rows:
            raise SourceError(
                f"table {metadata.table_location}: expected at most {max_rows:,} distinct rows of "
                f"{', '.join(columns)}, found more. Name columns that identify units, or a smaller table"
            )
    if distinct_values is None:
        return iter(())
    order: Any = [(name, "ascending", "at_start") for name in distinct_values.column_names]
    sorted_rows = distinct_values.take(pc.sort_indices(distinct_values, sort_keys=order))
    return iter(sorted_rows.rename_columns(list(columns)).to_pylist())


def file_maxima(metadata: Metadata, snapshot: Snapshot | None, column: str) -> list[tuple[Any, int]]:
    """Return each file's highest value from the manifests.

    See :meth:`resources.tables.contract.contents.TableContents.file_maxima`.
    """
    if snapshot is None:
        return []
    try:
        table = open_table_at(metadata)
        value = bound_reader(_column(table, column))
        file_bounds = [(value(file.upper_bounds), file.record_count) for file in data_files(table, snapshot)]
    except Exception as error:
        raise unreadable_error(metadata, error) from error
    return [(highest, rows) for highest, rows in file_bounds if highest is not None]


def file_spans(
    metadata: Metadata, snapshot: Snapshot | None, group: str, column: str
) -> list[FileSpan] | None:
    """Return each file's span from the manifests.

    See :meth:`resources.tables.contract.spans.TellsSpans.file_spans`.
    """
    if snapshot is None:
        return []
    if snapshot.count("total-delete-files"):
        return None
    try:
        table = open_table_at(metadata)
        of_group, value = bound_reader(_column(table, group)), bound_reader(_column(table, column))
        lowest_and_spans = [
            (
                of_group(file.lower_bounds),
                FileSpan(
                    of_group(file.upper_bounds),
                    value(file.lower_bounds),
                    value(file.upper_bounds),
                    file.record_count,
                ),
            )
            for file in data_files(table, snapshot)
        ]
    except Exception as error:
        raise unreadable_error(metadata, error) from error
    are_complete = all(None not in span and span.group == lowest for lowest, span in lowest_and_spans)
    return [span for _, span in lowest_and_spans] if are_complete else None


def bound_reader(column: NestedField) -> Callable[[Mapping[int, bytes] | None], Any]:
    """Return a function that reads a column's bound from a file's bounds.

    The function returns None if there is no bound.
    """
    import pyarrow as pa
    from pyiceberg.conversions import from_bytes
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    field_type: Any = column.field_type
    arrow = schema_to_pyarrow(field_type)

    def value(bounds: Mapping[int, bytes] | None) -> Any:
        bound = (bounds or {}).get(column.field_id)
        # bounds of dates and instants are numbers, so convert them through Arrow
        return None if bound is None else python_value(pa.scalar(from_bytes(field_type, bound), arrow))

    return value


def _column(table: StaticTable, name: str) -> NestedField:
    return table.schema().find_field(name, case_sensitive=False)
