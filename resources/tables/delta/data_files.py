"""Parquet files that Spark has written for a commit: found in their folder, with what their footers say of rows and columns.

Belongs here: what the Delta protocol wants of a file that is added. Which files are added is the commit's to say.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData
    from pyspark.sql.types import DataType, StructType

_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_INDEXED = 32
"""Columns that statistics are kept of, as Delta does by default; those of a struct count each."""
_PREFIX = 32
"""Characters of a text in the statistics."""
_LAST = "\U0010ffff"
_LEGACY_CALENDAR = b"org.apache.spark.legacyDateTime"
"""In the footer of a file whose days and times Spark counts in another calendar than the footer's own bounds."""


@dataclass(frozen=True)
class DataFile:
    """A file with rows.

    Attributes:
        path: relative to the table's folder.
        partition: texts of its partition columns' values, as Delta's log has them; None is NULL.
        size: in bytes.
        modified: milliseconds since the epoch.
        rows: how many it has.
        statistics: the JSON text of Delta's log.
    """

    path: str
    partition: Mapping[str, str | None]
    size: int
    modified: int
    rows: int
    statistics: str = field(repr=False)


def written_files(table: Path, folder: str, schema: StructType) -> list[DataFile]:
    """Return the files with rows below a folder of a table, in order of their paths.

    Args:
        table: the table's folder.
        folder: relative to it.
        schema: of the rows, partition columns included.

    Raises:
        OSError: if one cannot be read.
    """
    files = (_data_file(table, path, schema) for path in sorted(_parquet_files(table / folder)))
    return [file for file in files if file.rows]


def _parquet_files(folder: Path) -> Iterator[Path]:
    """The files of a folder of Spark's: below it are folders of partitions, whose columns may begin with any letter, and of tasks that have failed."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if "=" in name]
        yield from (Path(parent, name) for name in names if not name.startswith(("_", ".")))


def _data_file(table: Path, path: Path, schema: StructType) -> DataFile:
    import pyarrow.parquet as pq

    relative, status = path.relative_to(table), path.stat()
    with path.open("rb") as file:
        footer = pq.read_metadata(file)
    partition = dict(_partition_value(part, schema) for part in relative.parts[1:-1])
    return DataFile(
        relative.as_posix(),
        partition,
        status.st_size,
        status.st_mtime_ns // 1_000_000,
        footer.num_rows,
        _statistics(footer, [each for each in schema.fields if each.name not in partition]),
    )


def _partition_value(folder: str, schema: StructType) -> tuple[str, str | None]:
    """The column and the value that a folder stands for. Instants are written as Spark shows them in UTC, the session's zone."""
    from pyspark.sql.types import TimestampType

    name, _, text = folder.partition("=")
    column, value = unquote(name), unquote(text)
    if text == _NULL_FOLDER:
        return column, None
    if isinstance(schema[column].dataType, TimestampType):
        return column, _utc(datetime.fromisoformat(value))
    return column, value


def _statistics(footer: FileMetaData, columns: Sequence[Any]) -> str:
    """The JSON text: rows, and bounds and NULLs of each column that the footer tells of."""
    leaves = list(_leaves([(field.name, field.dataType) for field in columns]))
    lower: dict[str, Any] = {}
    upper: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    indexed = 0
    for number, (path, repeated) in enumerate(leaves):
        if indexed == _INDEXED:
            break
        indexed += 1
        if repeated:  # a list or a map: what the footer counts are its elements
            continue
        groups = [footer.row_group(group).column(number).statistics for group in range(footer.num_row_groups)]
        if any(group is None or not group.has_null_count for group in groups):
            continue
        _put(nulls, path, str(sum(group.null_count for group in groups)))
        bounds = None if _LEGACY_CALENDAR in (footer.metadata or {}) else _bounds(groups)
        if bounds is not None:
            _put(lower, path, bounds[0])
            _put(upper, path, bounds[1])
    parts = {"minValues": lower, "maxValues": upper, "nullCount": nulls}
    return _object({"numRecords": str(footer.num_rows), **parts})


def _leaves(
    columns: Sequence[tuple[str, DataType]], path: tuple[str, ...] = (), *, repeated: bool = False
) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The columns of the file in their order, each with its path, and whether it lies in a list or map."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    for name, kind in columns:
        here = (*path, name)
        match kind:
            case StructType():
                inner = [(each.name, each.dataType) for each in kind.fields]
                yield from _leaves(inner, here, repeated=repeated)
            case ArrayType():
                yield from _leaves([("element", kind.elementType)], here, repeated=True)
            case MapType():
                inner = [("key", kind.keyType), ("value", kind.valueType)]
                yield from _leaves(inner, here, repeated=True)
            case _:
                yield here, repeated


def _bounds(groups: Sequence[Any]) -> tuple[str, str] | None:
    """The lowest and the highest value as JSON texts; None if the footer does not tell, or statistics cannot hold them."""
    some = [group for group in groups if group.num_values]
    if not some or not all(group.has_min_max for group in some):
        return None
    try:
        lower, upper = min(group.min for group in some), max(group.max for group in some)
    except (ValueError, OverflowError, TypeError):  # a time before year 1 or after 9999, say
        return None
    lowest, highest = _json(lower, upwards=False), _json(upper, upwards=True)
    return None if lowest is None or highest is None else (lowest, highest)


def _json(value: Any, *, upwards: bool) -> str | None:
    """A bound as JSON; one of a long text is rounded away from the values."""
    match value:
        case bool() | bytes():
            return None
        case int():
            return str(value)
        case float():
            return json.dumps(value) if value - value == 0 else None  # neither infinite nor NaN
        case Decimal():
            return f"{value:f}"
        case datetime():
            return json.dumps(_utc(value) if value.tzinfo else value.isoformat(timespec="microseconds"))
        case date():
            return json.dumps(value.isoformat())
        case str():
            return _text(value, upwards=upwards)
    return None


def _text(value: str, *, upwards: bool) -> str | None:
    if len(value) <= _PREFIX or not upwards:
        return json.dumps(value[:_PREFIX])
    # Nothing is above the last character: if it is cut off, no bound of this length is known.
    return None if value[_PREFIX] == _LAST else json.dumps(value[:_PREFIX] + _LAST)


def _utc(value: datetime) -> str:
    """An instant; one without a zone is in UTC."""
    there = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return f"{there.isoformat(timespec='microseconds')}Z"


def _put(nested: dict[str, Any], path: tuple[str, ...], value: str) -> None:
    for name in path[:-1]:
        nested = nested.setdefault(name, {})
    nested[path[-1]] = value


def _object(values: Mapping[str, Any]) -> str:
    """JSON of texts that are JSON themselves: a decimal keeps all of its digits."""
    parts = (
        f"{json.dumps(name)}:{value if isinstance(value, str) else _object(value)}"
        for name, value in values.items()
    )
    return f"{{{','.join(parts)}}}"
