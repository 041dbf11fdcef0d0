"""Parquet files that Spark writes for a commit: into a folder of their own, found there with what their footers say of rows and columns.

Belongs here: what the Delta protocol wants of a file that is added; what Iceberg wants is read from the footers by pyiceberg. Which files are added is
the commit's to say.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from partitions.errors import StrandlineError, TargetError
from resources.connections.places import Place
from resources.listing.failures import store_failures
from resources.listing.removal import remove_folder
from resources.spark.settings import settings_for_a_while
from resources.tables.folder_values import NULL_FOLDER, kept_by_folders

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

_OPTIONS = {
    # A job's files become visible when the whole job has succeeded, and each task's at once.
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
_COMMITTER = {
    "spark.sql.sources.commitProtocolClass": "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol",
    "spark.sql.parquet.output.committer.class": "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter",
}
_S3_OPTIONS = {
    "mapreduce.outputcommitter.factory.scheme.s3a": "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory",
    "fs.s3a.committer.name": "magic",
}
"""Uploads of all tasks are completed when the job has succeeded: S3 has no rename."""
MOST_COPIED = 64 * 2**20
"""Bytes of files that a commit reads to write a part of them again, without a look whether they hold rows that go."""
_PATTERN = frozenset("{}[]*?\\")
"""Characters that make a pattern of a path."""
_FOOTER_BYTES = 64 * 2**10
_INDEXED = 32
"""Columns that statistics are kept of, as Delta does by default; those of a struct count each."""
_PREFIX = 32
"""Characters of a text in the statistics."""
_LAST = "\U0010ffff"
_LEGACY_CALENDAR = b"org.apache.spark.legacyDateTime"
"""In the footer of a file whose days and times Spark counts in another calendar than the footer's own bounds."""


class Written(NamedTuple):
    """A file that Spark has written.

    Attributes:
        path: relative to the place of its folder.
        size: in bytes.
        modified: milliseconds since the epoch.
        footer: what the file says of itself.
    """

    path: str
    size: int
    modified: int
    footer: FileMetaData

    @property
    def rows(self) -> int:
        """How many it has."""
        return int(self.footer.num_rows)


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


def write_files(
    rows: DataFrame,
    folder: Place,
    partition_by: Sequence[str],
    *,
    copies: bool = False,
    compression: str | None = None,
) -> None:
    """Write rows as Parquet files into a folder that is not there yet, all or none of them.

    Args:
        rows: to be written.
        folder: for the files.
        partition_by: columns that folders stand for.
        copies: whether files of a bucket are copied into the folder, file by file, as Spark does without a committer for S3.
        compression: of the files; None: the session's.

    Raises:
        RowsRefused: code ``partition_value``: names of folders do not keep a value.
    """
    with kept_by_folders(rows, partition_by, folder) as kept:
        _write_kept(kept, folder, partition_by, copies=copies, compression=compression)


def _write_kept(
    rows: DataFrame,
    folder: Place,
    partition_by: Sequence[str],
    *,
    copies: bool,
    compression: str | None,
) -> None:
    writer = rows.write.format("parquet").mode("error").options(**_OPTIONS)
    if compression is not None:
        writer = writer.option("compression", compression)
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    if folder.local is not None or copies:
        writer.save(folder.spark_url)
        return
    with settings_for_a_while(rows.sparkSession, _COMMITTER):
        writer.options(**_S3_OPTIONS).save(folder.spark_url)


def files_reader(session: SparkSession, schema: StructType) -> DataFrameReader:
    """Return what reads Parquet files of a table, each of them and all of its rows, whatever the session passes over in sources.

    Args:
        session: that reads.
        schema: of the files; what a source has said of its columns means nothing for them.
    """
    from pyspark.sql.types import StructType

    plain = StructType.fromJson(_without_metadata(schema.jsonValue()))
    options = {"__globPaths__": "false", "ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
    return session.read.schema(plain).options(**options)


def _without_metadata(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_metadata(each) for each in value]
    if isinstance(value, dict):
        return {key: {} if key == "metadata" else _without_metadata(each) for key, each in value.items()}
    return value


def is_found(path: str) -> bool:
    """Return whether Spark's readers of files find a file if its path is given to them: they take some for patterns, and hide others."""
    name = path.rpartition("/")[2]
    return not (_PATTERN & set(path) or name.startswith(("_", ".")) or name.endswith("._COPYING_"))


def read_files(rows: DataFrame, folder: Place, paths: Sequence[str]) -> DataFrame:
    """Return the rows of files below a folder, whose folders of partitions count from it.

    Args:
        rows: of the session, with the columns that the files have.
        folder: for example of a table.
        paths: of the files, relative to it.
    """
    reader = files_reader(rows.sparkSession, rows.schema).option("basePath", folder.spark_url)
    return reader.parquet(*(folder.child(path).spark_url for path in paths))


def lacks_committer(error: Exception) -> bool:
    """Return whether Spark has not written because it does not know the committer: a server of the user's own, started without its jar."""
    return any(name in str(error) for name in _COMMITTER.values())


def written_files(
    table: Place, folder: str, schema: StructType, rows: DataFrame, partition_by: Sequence[str]
) -> list[DataFile]:
    """Return the files with rows below a folder of a table, in order of their paths.

    Args:
        table: the table's place.
        folder: relative to it.
        schema: of the rows, partition columns included.
        rows: as they were given to :func:`write_files`.
        partition_by: likewise.

    Raises:
        SourceError: the folder cannot be listed, or a file not be read.
        TargetError: the files are not there.
        ValueError: a partition column has a value that Python has no word for, as a time after the year 9999.
    """
    with store_failures(table):
        found = with_rows(table, found_files(table, folder, rows, partition_by))
        return [_data_file(*each, schema) for each in found]


def with_rows(table: Place, files: Sequence[Written]) -> list[Written]:
    """Return the files that have rows, and remove the others: Spark writes one without rows where its first task has none."""
    for file in files:
        if not file.rows:
            _remove_file(table, file.path)
    return [file for file in files if file.rows]


def _remove_file(table: Place, path: str) -> None:
    with suppress(StrandlineError, OSError), store_failures(table):
        if table.local is not None:
            (table.local / path).unlink(missing_ok=True)
        else:
            table.store.delete([path])


def found_files(
    table: Place, folder: str, rows: DataFrame, partition_by: Sequence[str] = ()
) -> list[Written]:
    """Return the files that Spark has written below a folder of a place, in order of their paths.

    Args:
        table: for example the table's place.
        folder: relative to it.
        rows: as they were given to :func:`write_files`.
        partition_by: likewise.

    Raises:
        SourceError: the folder cannot be listed, or a file not be read.
        TargetError: the files are not there: Spark has written them into a store of its own, or somebody has removed them. A commit without them would
            lose the rows. Of no rows there is a file, too, but where columns stand for folders.
    """
    with store_failures(table):
        listed = _local(table.local, folder) if table.local is not None else _remote(table, folder)
        found = sorted(listed, key=itemgetter(0))
    if found or (partition_by and rows.isEmpty()):
        return found
    raise TargetError(
        f"folder {table.child(folder)}: expected the files that Spark has just written, found none. Nothing was committed. If Spark runs elsewhere, let it"
        " and this process reach the same store under this name: a folder is mounted on each machine of Spark, and a bucket's name means one store to all"
        " who share a Spark (docs/cluster.md). If somebody deletes files that no commit names yet, as VACUUM does, let them wait for a day",
        code="files_missing",
    )


def footer_of(table: Place, path: str, size: int) -> FileMetaData:
    """Return what a file says of itself.

    Args:
        table: for example the table's place.
        path: relative to it.
        size: in bytes.

    Raises:
        SourceError: it cannot be read.
    """
    with store_failures(table):
        return _footer(table, path, size) if table.local is None else _local_footer(table.local / path)


def remove_files(table: Place, folder: str) -> None:
    """Remove a folder of a table; what cannot be removed is VACUUM's."""
    with suppress(StrandlineError):
        remove_folder(table.child(folder))


def is_of_another_calendar(footer: FileMetaData) -> bool:
    """Return whether the days and times of a file are counted in another calendar than readers count in."""
    return _LEGACY_CALENDAR in (footer.metadata or {})


def _local(table: Path, folder: str) -> Iterator[Written]:
    for path in (Path(parent, name) for parent, _, names in os.walk(table / folder) for name in names):
        relative = path.relative_to(table).as_posix()
        if _is_of_the_job(relative):
            status = path.stat()
            yield Written(relative, status.st_size, status.st_mtime_ns // 1_000_000, _local_footer(path))


def _local_footer(path: Path) -> FileMetaData:
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        return pq.read_metadata(file)


def _remote(table: Place, folder: str) -> Iterator[Written]:
    for page in table.store.list(f"{folder}/"):
        for meta in page:
            # Some stores list folders, too, which are empty.
            if meta["size"] and _is_of_the_job(meta["path"]):
                footer = _footer(table, meta["path"], meta["size"])
                modified = int(meta["last_modified"].timestamp() * 1000)
                yield Written(meta["path"], meta["size"], modified, footer)


def _is_of_the_job(path: str) -> bool:
    """Whether a file is a result of Spark's job.

    Below its folder are folders of partitions, whose columns may begin with any letter, and the committer's own, which hold what failed tasks wrote.
    """
    _, *folders, name = path.split("/")
    return all("=" in folder for folder in folders) and not name.startswith(("_", "."))


def _footer(table: Place, path: str, size: int) -> FileMetaData:
    """The footer of an object, in one request as a rule: its length stands before the last four bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tail = bytes(table.store.get_range(path, start=max(0, size - _FOOTER_BYTES), end=size))
    length = int.from_bytes(tail[-8:-4], "little") + 8
    if length > len(tail):
        tail = bytes(table.store.get_range(path, start=size - length, end=size))
    return pq.read_metadata(pa.BufferReader(tail))


def _data_file(path: str, size: int, modified: int, footer: FileMetaData, schema: StructType) -> DataFile:
    partition = dict(_partition_value(part, schema) for part in path.split("/")[1:-1])
    statistics = statistics_of(footer, [each for each in schema.fields if each.name not in partition])
    return DataFile(path, partition, size, modified, footer.num_rows, statistics)


def _partition_value(folder: str, schema: StructType) -> tuple[str, str | None]:
    """The column and the value that a folder stands for. Instants are written as Spark shows them in UTC, the session's zone."""
    from pyspark.sql.types import TimestampType

    name, _, text = folder.partition("=")
    column, value = unquote(name), unquote(text)
    if text == NULL_FOLDER:
        return column, None
    if isinstance(schema[column].dataType, TimestampType):
        return column, _utc(datetime.fromisoformat(value))
    return column, value


def statistics_of(footer: FileMetaData, columns: Sequence[StructField]) -> str:
    """Return the JSON text of Delta's log: rows, and bounds and NULLs of each column that the footer tells of.

    Args:
        footer: of the file, which may have other columns, in any order.
        columns: of the table, without those that folders stand for.
    """
    leaves = islice(_leaves([(field.name, field.dataType) for field in columns]), _INDEXED)
    numbers = _numbers(footer)
    bounded = not is_of_another_calendar(footer)
    lower: dict[str, Any] = {}
    upper: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for path, repeated in leaves:
        number = numbers.get(".".join(path))
        if repeated or number is None:  # a list or a map: what the footer counts are its elements
            continue
        groups = _groups(footer, number)
        if any(group is None or not group.has_null_count for group in groups):
            continue
        _put(nulls, path, str(sum(group.null_count for group in groups)))
        bounds = _bounds(groups) if bounded and _tells_all(footer, number) else None
        if bounds is not None:
            _put(lower, path, bounds[0])
            _put(upper, path, bounds[1])
    parts = {"minValues": lower, "maxValues": upper, "nullCount": nulls}
    return _object({"numRecords": str(footer.num_rows), **parts})


def known_bounds(footer: FileMetaData, path: Sequence[str]) -> tuple[Any, Any] | None:
    """Return the lowest and the highest value of a column, as a file's footer tells them; None if it does not.

    Args:
        footer: of the file.
        path: the names of the column and of the structs around it, from the outside in.
    """
    number = _numbers(footer).get(".".join(path))
    return None if number is None else _lowest_and_highest(_groups(footer, number))


def _numbers(footer: FileMetaData) -> dict[str, int]:
    """The place of each column in a file, by its path; none of two that are called alike, as the column ``a.b`` and the field b of a."""
    paths = [footer.schema.column(number).path for number in range(len(footer.schema))]
    uses = Counter(paths)
    return {path: number for number, path in enumerate(paths) if uses[path] == 1}


def _groups(footer: FileMetaData, number: int) -> list[Any]:
    return [footer.row_group(group).column(number).statistics for group in range(footer.num_row_groups)]


def _tells_all(footer: FileMetaData, number: int) -> bool:
    """Whether a file's bounds of a column are those of all values: writers other than Java's leave NaN out."""
    floating = footer.schema.column(number).physical_type in ("FLOAT", "DOUBLE")
    return not floating or str(footer.created_by).startswith("parquet-mr")


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
    bounds = _lowest_and_highest(groups)
    if bounds is None:
        return None
    lowest, highest = _json(bounds[0], upwards=False), _json(bounds[1], upwards=True)
    return None if lowest is None or highest is None else (lowest, highest)


def _lowest_and_highest(groups: Sequence[Any]) -> tuple[Any, Any] | None:
    if any(group is None for group in groups):
        return None
    some = [group for group in groups if group.num_values]
    if not some or not all(group.has_min_max for group in some):
        return None
    try:
        return min(group.min for group in some), max(group.max for group in some)
    except (ValueError, OverflowError, TypeError):  # a time before year 1 or after 9999, say
        return None


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
        return _quoted(value[:_PREFIX])
    # Nothing is above the last character: if it is cut off, no bound of this length is known.
    return None if value[_PREFIX] == _LAST else _quoted(value[:_PREFIX] + _LAST)


def _quoted(text: str) -> str:
    """JSON of a text, in its own letters: deltalake reads the two escapes of some, such as U+20BB7, as another one, and rows are not found by it."""
    return json.dumps(text, ensure_ascii=False)


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
        f"{_quoted(name)}:{value if isinstance(value, str) else _object(value)}"
        for name, value in values.items()
    )
    return f"{{{','.join(parts)}}}"
