"""Scan the rows and the data files of an Iceberg snapshot with pyiceberg."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from partitions.errors import SourceError, shorten_to_line
from resources.tables.iceberg.filters import expressions
from resources.tables.iceberg.metadata import Metadata, Snapshot

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import StaticTable


def read_batches(
    metadata: Metadata,
    snapshot: Snapshot | None,
    columns: Sequence[str],
    rows: BooleanExpression | None,
    limit: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield columns of a snapshot's rows; nothing without a snapshot.

    Args:
        metadata: metadata of the table.
        snapshot: snapshot whose rows are read.
        columns: names, in any letters' case.
        rows: condition of the rows; None: all rows.
        limit: how many rows at most; None: all.

    Raises:
        SourceError: the rows cannot be read.
    """
    if snapshot is None:
        return
    try:
        scan = open_table_at(metadata).scan(
            row_filter=rows or expressions().AlwaysTrue(),
            selected_fields=tuple(dict.fromkeys(columns)),
            case_sensitive=False,
            snapshot_id=snapshot.id,
            limit=limit,
        )
        yield from scan.to_arrow_batch_reader()
    except Exception as error:
        raise unreadable_error(metadata, error) from error


def arrow_types(metadata: Metadata, snapshot: Snapshot | None) -> dict[str, pa.DataType]:
    """Return the Arrow type of each column of a snapshot, in its order; None: of the newest schema.

    Raises:
        SourceError: the columns cannot be read.
    """
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    try:
        table = open_table_at(metadata)
        schema = table.schema() if snapshot is None else table.scan(snapshot_id=snapshot.id).projection()
        fields = schema_to_pyarrow(schema, include_field_ids=False)
    except Exception as error:
        raise unreadable_error(metadata, error) from error
    return {field.name: field.type for field in fields}


def highest_values_of(
    metadata: Metadata,
    snapshot: Snapshot | None,
    columns: Sequence[str],
    rows: BooleanExpression | None,
) -> dict[str, Any]:
    """Return the highest value of each column, None if it has none; infinity and NaN do not count.

    Raises:
        SourceError: the rows cannot be read.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    highest: dict[str, Any] = dict.fromkeys(columns)
    for batch in read_batches(metadata, snapshot, columns, rows):
        for name in columns:
            values = batch.column(name)
            if pa.types.is_floating(values.type):  # a watermark cannot be infinity or NaN
                values = values.filter(pc.is_finite(values))
            value = pc.max(values).as_py()
            if value is not None and (highest[name] is None or value > highest[name]):
                highest[name] = value
    return highest


def has_rows(metadata: Metadata, snapshot: Snapshot, rows: BooleanExpression) -> bool:
    """Return whether a snapshot has a row that meets a condition."""
    column = metadata.version_schema["fields"][0]["name"]
    batches = read_batches(metadata, snapshot, [column], rows, limit=1)
    return any(batch.num_rows for batch in batches)


def scan_count(metadata: Metadata, snapshot: Snapshot, rows: BooleanExpression | None) -> int:
    """Count the rows of a snapshot that meet a condition (None: all) by reading them.

    Raises:
        SourceError: the rows cannot be read.
    """
    try:
        scan = open_table_at(metadata).scan(
            row_filter=rows or expressions().AlwaysTrue(), snapshot_id=snapshot.id
        )
        return int(scan.count())
    except Exception as error:
        raise unreadable_error(metadata, error) from error


def data_files(
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


def open_table_at(metadata: Metadata) -> StaticTable:
    """Return pyiceberg's view of the table as this metadata file tells it."""
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(metadata.location, dict(metadata.storage))


def unreadable_error(metadata: Metadata, error: Exception) -> SourceError:
    """Return an error that names the table, and what to do if the cause is known."""
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
