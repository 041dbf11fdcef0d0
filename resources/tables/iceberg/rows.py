"""Read rows of an Iceberg table with pyiceberg: counts, values, and which commits wrote them.

Belongs here: reading. Filters, and what a row means, are the planner's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from partitions.errors import SourceError, shorten_to_line
from partitions.predicate import EVERYTHING, Predicate
from partitions.target import COMMIT_COLUMN
from resources.tables.column_check import check_columns
from resources.tables.contract.spans import FileSpan
from resources.tables.iceberg.commit import DIGITS, OWNS_COLUMN, commit_value, group_commits
from resources.tables.iceberg.filters import expressions, to_expression
from resources.tables.iceberg.metadata import Metadata, Snapshot
from resources.tables.python_values import python_value
from resources.tables.text_counts import count_texts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import DataFile
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
        return _scan_count(metadata, snapshot, to_expression(rows, metadata.version_schema))
    return snapshot.rows if snapshot.rows is not None else _scan_count(metadata, snapshot, None)


def text_counts(metadata: Metadata, column: str, rows: Predicate) -> pa.Table:
    """Return each text of a column with its number of rows that meet a condition.

    See :meth:`resources.tables.contract.contents.TableContents.text_counts`.

    Raises:
        SourceError: the rows cannot be read.
    """
    condition = to_expression(rows, metadata.version_schema) if rows != EVERYTHING else None
    return count_texts(_read_batches(metadata, metadata.current, [column], condition), column)


def count_of_commit(metadata: Metadata, snapshot: Snapshot, app_id: str, number: int) -> int:
    """Count the rows of a snapshot that a commit wrote.

    Raises:
        SourceError: the rows cannot be read.
    """
    return _scan_count(metadata, snapshot, expressions().EqualTo(COMMIT_COLUMN, commit_value(app_id, number)))


def highest_number(
    metadata: Metadata, app_id: str, snapshot: Snapshot | None = None, below: int | None = None
) -> int | None:
    """Return the highest number under a tag that has rows; None if there are none.

    Args:
        metadata: metadata of the table.
        app_id: app id of the tag.
        snapshot: snapshot whose rows are read; None: the newest.
        below: only smaller numbers count; None: all count.

    Raises:
        SourceError: the rows cannot be read.
    """
    if not owns_commit_column(metadata):
        return None
    upper = f"{app_id}:" + ("9" * DIGITS + "~" if below is None else f"{below:0{DIGITS}d}")
    in_tag_range = expressions().And(
        expressions().GreaterThanOrEqual(COMMIT_COLUMN, f"{app_id}:"),
        expressions().LessThan(COMMIT_COLUMN, upper),
    )
    searched_snapshot = snapshot or metadata.current
    bounds = _highest_commit_bounds(metadata, searched_snapshot, in_tag_range, f"{app_id}:", upper)
    if bounds is None:
        value = _highest_values(metadata, searched_snapshot, [COMMIT_COLUMN], in_tag_range)[COMMIT_COLUMN]
    else:
        value = max(bounds, default=None)
    return None if value is None else int(value.rpartition(":")[2])


def holds_commit_of(metadata: Metadata, snapshot: Snapshot, app_id: str | None) -> bool:
    """Return whether a snapshot has rows of a dataflow; None: of any dataflow."""
    if not owns_commit_column(metadata):
        return False
    rows = (
        expressions().StartsWith(COMMIT_COLUMN, f"{app_id}:")
        if app_id
        else expressions().NotNull(COMMIT_COLUMN)
    )
    return _has_rows(metadata, snapshot, rows)


def owns_commit_column(metadata: Metadata) -> bool:
    """Return whether the table's schema has the column of commits.

    A property would prove nothing, because any writer may remove it.
    """
    return any(
        field["name"] == COMMIT_COLUMN and field["type"] == "string" for field in metadata.schema["fields"]
    )


def hides_commit_column(metadata: Metadata) -> bool:
    """Return whether readers get rows without the column of commits.

    They do if Strandline writes the table. Another writer may have a column of that name.
    """
    return metadata.properties.get(OWNS_COLUMN) == COMMIT_COLUMN or any(
        commit.strandline_metadata for commit in group_commits(metadata.lineage())
    )


def holds_any(metadata: Metadata, snapshot: Snapshot | None, rows: Predicate) -> bool:
    """Return whether a snapshot has a row that meets a condition.

    Raises:
        SourceError: the rows cannot be read.
    """
    return snapshot is not None and _has_rows(
        metadata, snapshot, to_expression(rows, metadata.version_schema)
    )


def first_rows(metadata: Metadata, columns: Sequence[str], limit: int, rows: Predicate) -> pa.Table:
    """Return rows of the newest snapshot that meet a condition.

    See :meth:`resources.tables.contract.contents.TableContents.first_rows`.
    """
    import pyarrow as pa

    condition = to_expression(rows, metadata.version_schema)
    batches = list(_read_batches(metadata, metadata.current, columns, condition, limit))
    if batches:
        return pa.Table.from_batches(batches).select(list(columns))
    return pa.table({name: [] for name in columns})


def highest_values(
    metadata: Metadata, snapshot: Snapshot | None, columns: Sequence[str], rows: Predicate | None
) -> dict[str, Any]:
    """Return the highest value of columns in some rows of a snapshot.

    See :meth:`resources.tables.contract.contents.TableContents.highest_values`.

    Raises:
        SourceError: the rows cannot be read.
    """
    condition = None if rows is None else to_expression(rows, metadata.version_schema)
    return _highest_values(metadata, snapshot, columns, condition)


def distinct_rows(metadata: Metadata, columns: Sequence[str], max_rows: int) -> Iterator[dict[str, Any]]:
    """Return the distinct rows of some columns in the newest snapshot, sorted, NULLs first.

    See :meth:`resources.tables.contract.contents.TableContents.distinct_rows`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column_types = {field["name"]: field["type"] for field in metadata.version_schema["fields"]}
    check_columns(metadata.table_location, column_types, columns, hidden=(COMMIT_COLUMN,))
    distinct_values: pa.Table | None = None
    for batch in _read_batches(metadata, metadata.current, columns, None):
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
        table = _open_table(metadata)
        value = bound_reader(_column(table, column))
        file_bounds = [(value(file.upper_bounds), file.record_count) for file in _data_files(table, snapshot)]
    except Exception as error:
        raise _unreadable_error(metadata, error) from error
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
        table = _open_table(metadata)
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
            for file in _data_files(table, snapshot)
        ]
    except Exception as error:
        raise _unreadable_error(metadata, error) from error
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


def _highest_commit_bounds(
    metadata: Metadata, snapshot: Snapshot | None, in_tag_range: BooleanExpression, prefix: str, upper: str
) -> list[str] | None:
    """Return the commit column's highest value in each file that has such rows, from manifests.

    Manifests hold these values in full. None if the highest value of a file is outside the range.
    """
    if snapshot is None:
        return []
    try:
        table = _open_table(metadata)
        column = table.schema().find_field(COMMIT_COLUMN).field_id
        files = [
            file
            for file in _data_files(table, snapshot, in_tag_range)
            if _may_hold(file, column, prefix.encode(), upper.encode())
        ]
    except Exception as error:
        raise _unreadable_error(metadata, error) from error
    bounds = [((file.upper_bounds or {}).get(column) or b"").decode() for file in files]
    are_complete = all(bound.startswith(prefix) and bound < upper for bound in bounds)
    return bounds if are_complete else None


def _highest_values(
    metadata: Metadata,
    snapshot: Snapshot | None,
    columns: Sequence[str],
    rows: BooleanExpression | None,
) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    highest: dict[str, Any] = dict.fromkeys(columns)
    for batch in _read_batches(metadata, snapshot, columns, rows):
        for name in columns:
            values = batch.column(name)
            if pa.types.is_floating(values.type):  # a watermark cannot be infinity or NaN
                values = values.filter(pc.is_finite(values))
            value = pc.max(values).as_py()
            if value is not None and (highest[name] is None or value > highest[name]):
                highest[name] = value
    return highest


def _has_rows(metadata: Metadata, snapshot: Snapshot, rows: BooleanExpression) -> bool:
    column = metadata.version_schema["fields"][0]["name"]
    batches = _read_batches(metadata, snapshot, [column], rows, limit=1)
    return any(batch.num_rows for batch in batches)


def _scan_count(metadata: Metadata, snapshot: Snapshot, rows: BooleanExpression | None) -> int:
    try:
        scan = _open_table(metadata).scan(
            row_filter=rows or expressions().AlwaysTrue(), snapshot_id=snapshot.id
        )
        return int(scan.count())
    except Exception as error:
        raise _unreadable_error(metadata, error) from error


def _read_batches(
    metadata: Metadata,
    snapshot: Snapshot | None,
    columns: Sequence[str],
    rows: BooleanExpression | None,
    limit: int | None = None,
) -> Iterator[pa.RecordBatch]:
    if snapshot is None:
        return
    try:
        scan = _open_table(metadata).scan(
            row_filter=rows or expressions().AlwaysTrue(),
            selected_fields=tuple(dict.fromkeys(columns)),
            case_sensitive=False,
            snapshot_id=snapshot.id,
            limit=limit,
        )
        yield from scan.to_arrow_batch_reader()
    except Exception as error:
        raise _unreadable_error(metadata, error) from error


def _may_hold(file: DataFile, column: int, lower: bytes, upper: bytes) -> bool:
    """Return whether a file's bounds allow texts of a column from ``lower`` to below ``upper``."""
    low, high = ((bounds or {}).get(column) for bounds in (file.lower_bounds, file.upper_bounds))
    if low is None or high is None:
        return (file.null_value_counts or {}).get(column) != file.record_count
    return high >= lower and low < upper


def _data_files(
    table: StaticTable, snapshot: Snapshot, rows: BooleanExpression | None = None
) -> Iterator[DataFile]:
    """Yield the data files of a snapshot that may have some rows.

    If there are equality deletes, pyiceberg plans no scan, so all data files are yielded.
    """
    from pyiceberg.manifest import DataFileContent

    if not snapshot.count("total-equality-deletes"):
        scan = table.scan(row_filter=rows or expressions().AlwaysTrue(), snapshot_id=snapshot.id)
        yield from (task.file for task in scan.plan_files())
        return
    current_snapshot = table.snapshot_by_id(snapshot.id)
    for manifest in current_snapshot.manifests(table.io) if current_snapshot else ():
        for entry in manifest.fetch_manifest_entry(table.io):
            if entry.data_file.content == DataFileContent.DATA:
                yield entry.data_file


def _open_table(metadata: Metadata) -> StaticTable:
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(metadata.location, dict(metadata.storage))


def _unreadable_error(metadata: Metadata, error: Exception) -> SourceError:
    if isinstance(error, SourceError):
        return error
    current = metadata.current
    if current is not None and current.count("total-equality-deletes"):
        return SourceError(
            f"table {metadata.table_location}: expected rows that can be read without Spark, found "
            "equality deletes of another writer. Merge them into their files: `strandline maintain` with "
            "maintenance.optimize, or rewrite_data_files with delete-file-threshold 1 and "
            "remove-dangling-deletes",
            code="equality_deletes",
        )
    reason = shorten_to_line(str(error)) or type(error).__name__
    return SourceError(f"table {metadata.table_location}: cannot be read: {reason}")
