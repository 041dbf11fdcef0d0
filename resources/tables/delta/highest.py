"""The highest values of a commit's rows, read from its files without Spark: what a write that nobody saw has loaded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from partitions.errors import SourceError, in_one_line
from resources.tables.delta.commit import file_name
from resources.tables.delta.log import DeltaLog

if TYPE_CHECKING:
    from deltalake import DeltaTable


def highest(log: DeltaLog, version: int, columns: Sequence[str]) -> dict[str, Any]:
    """Read them; see :meth:`resources.tables.table.Table.highest`.

    Raises:
        TargetError: if the log cannot be read.
        SourceError: if a file cannot be read.
    """
    table, paths = log.table(version), log.added(version)
    if table is None:
        return dict.fromkeys(columns)
    names = _physical_names(table)
    partitioned = [column for column in columns if column in table.metadata().partition_columns]
    values: dict[str, list[Any]] = {column: [] for column in columns}
    for column in partitioned:
        values[column] += _partition_values(table, column, paths)
    stored = [column for column in columns if column not in partitioned]
    for path in paths if stored else ():
        found = _in_file(log, path, [names.get(column, column) for column in stored])
        for column in stored:
            values[column].append(found[names.get(column, column)])
    return {
        column: max((value for value in of if value is not None), default=None)
        for column, of in values.items()
    }


def _physical_names(table: DeltaTable) -> dict[str, str]:
    """The names that columns have in the files, of tables with column mapping."""
    fields = table.schema().fields
    key = "delta.columnMapping.physicalName"
    return {field.name: str(field.metadata[key]) for field in fields if key in field.metadata}


def _partition_values(table: DeltaTable, column: str, paths: Iterable[str]) -> list[Any]:
    import pyarrow as pa

    added = {file_name(path) for path in paths}
    actions = pa.table(table.get_add_actions(flatten=True))
    rows = zip(
        actions.column("path").to_pylist(), actions.column(f"partition.{column}").to_pylist(), strict=True
    )
    return [value for path, value in rows if file_name(str(path)) in added]


def _in_file(log: DeltaLog, path: str, columns: Sequence[str]) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.compute as pc
    from deltalake.fs import DeltaStorageHandler
    from pyarrow import fs, parquet

    place = log.place
    try:
        files = fs.PyFileSystem(DeltaStorageHandler(place.url, place.storage_options or None))
        with files.open_input_file(unquote(path)) as opened:
            rows = parquet.ParquetFile(opened).read(columns=list(columns))
        return {name: pc.max(rows.column(name)).as_py() for name in columns}
    except (OSError, KeyError, pa.ArrowException) as error:
        raise SourceError(f"table {place}: cannot read {path}: {in_one_line(str(error))}") from error
