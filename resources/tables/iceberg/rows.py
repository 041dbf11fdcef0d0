"""Rows of an Iceberg table without Spark, read with pyiceberg: how many there are, values of columns, and which commits wrote them.

Belongs here: reading. Filters, and what a row means, are the planner's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from partitions.errors import SourceError, in_one_line
from partitions.predicate import EVERYTHING, Predicate
from partitions.target import COMMIT_COLUMN
from resources.tables.column_check import check_columns
from resources.tables.contract.spans import FileSpan
from resources.tables.iceberg.commit import DIGITS, OWNS_COLUMN, commit_value, commits_of
from resources.tables.iceberg.filters import expression, words
from resources.tables.iceberg.metadata import Metadata, Snapshot
from resources.tables.python_values import python_value

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import StaticTable
    from pyiceberg.types import NestedField


def count_rows(metadata: Metadata, snapshot: Snapshot | None = None, rows: Predicate = EVERYTHING) -> int:
    """Count the rows of a snapshot (None: the newest): its summary tells, or a scan if rows were deleted by their values, or some are asked for.

    Raises:
        SourceError: if it cannot be read.
    """
    snapshot = snapshot or metadata.current
    if snapshot is None:
        return 0
    if rows != EVERYTHING:
        return _scan_count(metadata, snapshot, expression(rows, metadata.version_schema))
    return snapshot.rows if snapshot.rows is not None else _scan_count(metadata, snapshot, None)


def count_of_commit(metadata: Metadata, snapshot: Snapshot, app_id: str, number: int) -> int:
    """Count the rows of a snapshot that a commit has written.

    Raises:
        SourceError: if it cannot be read.
    """
    return _scan_count(metadata, snapshot, words().EqualTo(COMMIT_COLUMN, commit_value(app_id, number)))


def highest_number(
    metadata: Metadata, app_id: str, snapshot: Snapshot | None = None, below: int | None = None
) -> int | None:
    """Return the highest number under a tag of which there are rows; None if there are none.

    Args:
        metadata: of the table.
        app_id: of the tag.
        snapshot: whose rows are looked at; None: the newest.
        below: a number; it and those above do not count. None: all count.

    Raises:
        SourceError: if the rows cannot be read.
    """
    if not owns_commit_column(metadata):
        return None
    upper = f"{app_id}:" + ("9" * DIGITS + "~" if below is None else f"{below:0{DIGITS}d}")
    mine = words().And(
        words().GreaterThanOrEqual(COMMIT_COLUMN, f"{app_id}:"), words().LessThan(COMMIT_COLUMN, upper)
    )
    wanted = snapshot or metadata.current
    bounds = _highest_bounds(metadata, wanted, mine, f"{app_id}:", upper)
    if bounds is None:
        value = _highest(metadata, wanted, [COMMIT_COLUMN], mine)[COMMIT_COLUMN]
    else:
        value = max(bounds, default=None)
    return None if value is None else int(value.rpartition(":")[2])


def holds_commit_of(metadata: Metadata, snapshot: Snapshot, app_id: str | None) -> bool:
    """Return whether a snapshot has rows of a dataflow, or, for None, of any."""
    if not owns_commit_column(metadata):
        return False
    rows = words().StartsWith(COMMIT_COLUMN, f"{app_id}:") if app_id else words().NotNull(COMMIT_COLUMN)
    return _has_rows(metadata, snapshot, rows)


def owns_commit_column(metadata: Metadata) -> bool:
    """Return whether the table has the column of commits: its columns tell. Of a property, which any writer may remove, nothing follows."""
    return any(
        field["name"] == COMMIT_COLUMN and field["type"] == "string" for field in metadata.schema["fields"]
    )


def hides_commit_column(metadata: Metadata) -> bool:
    """Return whether readers get rows without the column of commits: Strandline writes the table, and no other writer has called a column of theirs so."""
    return metadata.properties.get(OWNS_COLUMN) == COMMIT_COLUMN or any(
        commit.ours for commit in commits_of(metadata.lineage())
    )


def holds_any(metadata: Metadata, snapshot: Snapshot | None, rows: Predicate) -> bool:
    """Return whether a snapshot has at least one of these rows.

    Raises:
        SourceError: if it cannot be read.
    """
    return snapshot is not None and _has_rows(metadata, snapshot, expression(rows, metadata.version_schema))


def highest_values(
    metadata: Metadata, snapshot: Snapshot | None, columns: Sequence[str], rows: Predicate | None
) -> dict[str, Any]:
    """Return the highest value of columns in some rows of a snapshot; see :meth:`resources.tables.contract.table.Table.highest_values`.

    Raises:
        SourceError: if it cannot be read.
    """
    condition = None if rows is None else expression(rows, metadata.version_schema)
    return _highest(metadata, snapshot, columns, condition)


def distinct_rows(metadata: Metadata, columns: Sequence[str], most: int) -> Iterator[dict[str, Any]]:
    """Read distinct rows of the newest snapshot; see :meth:`resources.tables.contract.table.Table.distinct_rows`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known = {field["name"]: field["type"] for field in metadata.version_schema["fields"]}
    check_columns(metadata.table_location, known, columns, hidden=(COMMIT_COLUMN,))
    found: pa.Table | None = None
    for batch in _batches(metadata, metadata.current, columns, None):
        # Columns are numbered meanwhile: the same one may be asked for twice.
        read = pa.table(
            [batch.column(name) for name in columns], names=[f"c{at}" for at in range(len(columns))]
        )
        both = read if found is None else pa.concat_tables([found, read])
        found = both.group_by(both.column_names, use_threads=False).aggregate([])
        if found.num_rows > most:
            raise SourceError(
                f"table {metadata.table_location}: expected at most {most:,} distinct rows of {', '.join(columns)}, found more. Name columns"
                " that are ids, or a table of fewer rows"
            )
    if found is None:
        return iter(())
    order: Any = [(name, "ascending", "at_start") for name in found.column_names]
    sorted_rows = found.take(pc.sort_indices(found, sort_keys=order))
    return iter(sorted_rows.rename_columns(list(columns)).to_pylist())


def file_maxima(metadata: Metadata, snapshot: Snapshot | None, column: str) -> list[tuple[Any, int]]:
    """Return what the manifests tell; see :meth:`resources.tables.contract.table.Table.file_maxima`."""
    if snapshot is None:
        return []
    try:
        table = _table(metadata)
        value = bound_of(_column(table, column))
        found = [(value(file.upper_bounds), file.record_count) for file in _data_files(table, snapshot)]
    except Exception as error:
        raise _unreadable(metadata, error) from error
    return [(highest, rows) for highest, rows in found if highest is not None]


def file_spans(
    metadata: Metadata, snapshot: Snapshot | None, group: str, column: str
) -> list[FileSpan] | None:
    """Return what the manifests tell; see :meth:`resources.tables.contract.spans.TellsSpans.file_spans`."""
    if snapshot is None:
        return []
    if snapshot.count("total-delete-files"):
        return None
    try:
        table = _table(metadata)
        of_group, value = bound_of(_column(table, group)), bound_of(_column(table, column))
        found = [
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
        raise _unreadable(metadata, error) from error
    told = all(None not in span and span.group == lowest for lowest, span in found)
    return [span for _, span in found] if told else None


def bound_of(column: NestedField) -> Callable[[Mapping[int, bytes] | None], Any]:
    """Return what reads a column's bound from those of a file; it gives None if there is none."""
    import pyarrow as pa
    from pyiceberg.conversions import from_bytes
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    kind: Any = column.field_type
    arrow = schema_to_pyarrow(kind)

    def value(bounds: Mapping[int, bytes] | None) -> Any:
        bound = (bounds or {}).get(column.field_id)
        # of days and instants it is the number
        return None if bound is None else python_value(pa.scalar(from_bytes(kind, bound), arrow))

    return value


def _column(table: StaticTable, name: str) -> NestedField:
    return table.schema().find_field(name, case_sensitive=False)


def _highest_bounds(
    metadata: Metadata, snapshot: Snapshot | None, mine: BooleanExpression, prefix: str, upper: str
) -> list[str] | None:
    """The highest value of the column of commits in each file with some, as the manifests tell it, which have it whole; None if a file has others above."""
    if snapshot is None:
        return []
    try:
        table = _table(metadata)
        column = table.schema().find_field(COMMIT_COLUMN).field_id
        files = [
            file
            for file in _data_files(table, snapshot, mine)
            if _may_hold(file, column, prefix.encode(), upper.encode())
        ]
    except Exception as error:
        raise _unreadable(metadata, error) from error
    bounds = [((file.upper_bounds or {}).get(column) or b"").decode() for file in files]
    known = all(bound.startswith(prefix) and bound < upper for bound in bounds)
    return bounds if known else None


def _highest(
    metadata: Metadata,
    snapshot: Snapshot | None,
    columns: Sequence[str],
    rows: BooleanExpression | None,
) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    highest: dict[str, Any] = dict.fromkeys(columns)
    for batch in _batches(metadata, snapshot, columns, rows):
        for name in columns:
            values = batch.column(name)
            if pa.types.is_floating(values.type):  # infinity and NaN are no values that a watermark can have
                values = values.filter(pc.is_finite(values))
            value = pc.max(values).as_py()
            if value is not None and (highest[name] is None or value > highest[name]):
                highest[name] = value
    return highest


def _has_rows(metadata: Metadata, snapshot: Snapshot, rows: BooleanExpression) -> bool:
    column = metadata.version_schema["fields"][0]["name"]
    batches = _batches(metadata, snapshot, [column], rows, limit=1)
    return any(batch.num_rows for batch in batches)


def _scan_count(metadata: Metadata, snapshot: Snapshot, rows: BooleanExpression | None) -> int:
    try:
        scan = _table(metadata).scan(row_filter=rows or words().AlwaysTrue(), snapshot_id=snapshot.id)
        return int(scan.count())
    except Exception as error:
        raise _unreadable(metadata, error) from error


def _batches(
    metadata: Metadata,
    snapshot: Snapshot | None,
    columns: Sequence[str],
    rows: BooleanExpression | None,
    limit: int | None = None,
) -> Iterator[pa.RecordBatch]:
    if snapshot is None:
        return
    try:
        scan = _table(metadata).scan(
            row_filter=rows or words().AlwaysTrue(),
            selected_fields=tuple(dict.fromkeys(columns)),
            case_sensitive=False,
            snapshot_id=snapshot.id,
            limit=limit,
        )
        yield from scan.to_arrow_batch_reader()
    except Exception as error:
        raise _unreadable(metadata, error) from error


def _may_hold(file: DataFile, column: int, lower: bytes, upper: bytes) -> bool:
    """Whether a file may have texts of a column from one to below another one, as its manifest tells it."""
    low, high = ((bounds or {}).get(column) for bounds in (file.lower_bounds, file.upper_bounds))
    if low is None or high is None:
        return (file.null_value_counts or {}).get(column) != file.record_count
    return high >= lower and low < upper


def _data_files(
    table: StaticTable, snapshot: Snapshot, rows: BooleanExpression | None = None
) -> Iterator[DataFile]:
    """The data files of a snapshot; those alone that may have some rows, where pyiceberg plans them: it plans no scan beside deletes by values."""
    from pyiceberg.manifest import DataFileContent

    if not snapshot.count("total-equality-deletes"):
        scan = table.scan(row_filter=rows or words().AlwaysTrue(), snapshot_id=snapshot.id)
        yield from (task.file for task in scan.plan_files())
        return
    found = table.snapshot_by_id(snapshot.id)
    for manifest in found.manifests(table.io) if found else ():
        for entry in manifest.fetch_manifest_entry(table.io):
            if entry.data_file.content == DataFileContent.DATA:
                yield entry.data_file


def _table(metadata: Metadata) -> StaticTable:
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(metadata.location, dict(metadata.storage))


def _unreadable(metadata: Metadata, error: Exception) -> SourceError:
    if isinstance(error, SourceError):
        return error
    current = metadata.current
    if current is not None and current.count("total-equality-deletes"):
        return SourceError(
            f"table {metadata.table_location}: expected rows that can be read without Spark, found another writer's deletes by values (equality deletes)."
            " Join them with their files: `strandline maintain` with maintenance.optimize, or rewrite_data_files with delete-file-threshold 1 and"
            " remove-dangling-deletes",
            code="equality_deletes",
        )
    why = in_one_line(str(error)) or type(error).__name__
    return SourceError(f"table {metadata.table_location}: cannot be read: {why}")
