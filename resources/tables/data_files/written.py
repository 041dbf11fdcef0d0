"""Write data files with Spark for a commit of our own, and find the written files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from partitions.errors import SourceError, StrandlineError, TargetError
from resources.connections.places import Place
from resources.listing.failures import store_failures
from resources.listing.removal import remove_folder
from resources.spark.settings import temporary_settings
from resources.tables.contract.conflict_retries import NeedsEngine
from resources.tables.data_files.footers import local_footer, object_footer
from resources.tables.data_files.statistics import delta_statistics, utc_text
from resources.tables.folder_values import NULL_FOLDER, check_folder_values

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


_OPTIONS = {
    # Version 1 publishes files when the whole job succeeds; version 2 would publish each task's at once.
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
"""S3 has no rename: the committer completes all uploads when the job succeeds."""


MAX_REWRITTEN_BYTES = 64 * 2**20
"""Most bytes of files that a commit rewrites in part without a check whether they hold rows to delete."""


class WrittenFile(NamedTuple):
    """A file that Spark wrote.

    Attributes:
        path: path relative to the place of its folder.
        size: size in bytes.
        modified: milliseconds since the epoch.
        footer: footer of the file.
    """

    path: str
    size: int
    modified: int
    footer: FileMetaData

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.footer.num_rows)


@dataclass(frozen=True)
class DataFile:
    """A file with rows.

    Attributes:
        path: path relative to the table's folder.
        partition: texts of its partition columns' values, as Delta's log has them; None is NULL.
        size: size in bytes.
        modified: milliseconds since the epoch.
        rows: number of rows.
        statistics: JSON text for Delta's log.
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
    """Write rows as Parquet files into a new folder: all of them or none.

    Args:
        rows: rows to write.
        folder: folder that does not exist yet.
        partition_by: partition columns.
        copies: whether files in a bucket are copied into the folder one by one, as Spark does without a
            committer for S3.
        compression: compression of the files; None: the session's.

    Raises:
        RowsRefused: code ``partition_value``: a folder name cannot hold a value.
    """
    with check_folder_values(rows, partition_by, folder) as checked_rows:
        _save(checked_rows, folder, partition_by, copies=copies, compression=compression)


def _save(
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
    with temporary_settings(rows.sparkSession, _COMMITTER):
        writer.options(**_S3_OPTIONS).save(folder.spark_url)


@contextmanager
def removing_failed_files(table: Place, parent: Place, folder: str) -> Iterator[None]:
    """Remove a folder of new files if the block that writes them and reads their footers fails.

    Args:
        table: place of the table.
        parent: where the folder lies.
        folder: its name.

    Raises:
        NeedsEngine: Spark lacks the committer for S3.
        TargetError: the files cannot be read.
    """
    try:
        yield
    except Exception as error:
        remove_files(parent, folder)
        if lacks_committer(error):
            raise NeedsEngine("Spark was started without the committer for S3") from error
        if isinstance(error, SourceError):
            raise TargetError(
                f"table {table}: the files just written cannot be read: {error.message}"
            ) from error
        raise


def lacks_committer(error: Exception) -> bool:
    """Return whether a write failed because Spark lacks the S3 committer.

    A user's own server may have started without its jar.
    """
    return any(name in str(error) for name in _COMMITTER.values())


def collect_data_files(
    table: Place, folder: str, schema: StructType, rows: DataFrame, partition_by: Sequence[str]
) -> list[DataFile]:
    """Return the files with rows below a folder of a table, sorted by path; delete files without rows.

    Args:
        table: place of the table.
        folder: folder, relative to the table.
        schema: schema of the rows, partition columns included.
        rows: rows that were passed to :func:`write_files`.
        partition_by: partition columns that were passed to it.

    Raises:
        SourceError: the folder cannot be listed, or a file cannot be read.
        TargetError: code ``files_missing``: as :func:`find_written_files`.
        ValueError: Python cannot represent a partition value, such as a time after the year 9999.
    """
    with store_failures(table):
        files = drop_empty_files(table, find_written_files(table, folder, rows, partition_by))
        return [_data_file(*file, schema) for file in files]


def drop_empty_files(table: Place, files: Sequence[WrittenFile]) -> list[WrittenFile]:
    """Return the files that have rows, and delete the others.

    Spark writes an empty file if its first task has no rows.
    """
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


def find_written_files(
    table: Place, folder: str, rows: DataFrame, partition_by: Sequence[str] = ()
) -> list[WrittenFile]:
    """Return the files that Spark wrote below a folder, sorted by path.

    Args:
        table: place that the folder is relative to.
        folder: folder that was written.
        rows: rows that were passed to :func:`write_files`.
        partition_by: partition columns that were passed to it.

    Raises:
        SourceError: the folder cannot be listed, or a file cannot be read.
        TargetError: code ``files_missing``: Spark wrote into another store, or someone deleted the files. A
            commit without them would lose the rows. Spark writes a file even for no rows, unless the table
            is partitioned.
    """
    with store_failures(table):
        written_files = (
            _local_files(table.local, folder) if table.local is not None else _object_files(table, folder)
        )
        files = sorted(written_files, key=itemgetter(0))
    if files or (partition_by and rows.isEmpty()):
        return files
    raise TargetError(
        f"folder {table.child(folder)}: expected the files that Spark has just written, found none. "
        "Nothing was committed. If Spark runs elsewhere, it and this process must reach the same store "
        "under this name: mount a folder on every machine of Spark; a bucket name must mean the same "
        "store to everyone who shares the Spark server (docs/how-to/cluster.md). If another job deletes "
        "unreferenced files, as VACUUM does, make it keep those of the last day",
        code="files_missing",
    )


def remove_files(table: Place, folder: str) -> None:
    """Remove a folder of a table; VACUUM deletes files that cannot be removed now."""
    with suppress(StrandlineError):
        remove_folder(table.child(folder))


def _local_files(table: Path, folder: str) -> Iterator[WrittenFile]:
    for path in (Path(parent, name) for parent, _, names in os.walk(table / folder) for name in names):
        relative = path.relative_to(table).as_posix()
        if _is_result_of_job(relative):
            status = path.stat()
            yield WrittenFile(relative, status.st_size, status.st_mtime_ns // 1_000_000, local_footer(path))


def _object_files(table: Place, folder: str) -> Iterator[WrittenFile]:
    for page in table.store.list(f"{folder}/"):
        for meta in page:
            # Some stores also list folders, as empty objects.
            if meta["size"] and _is_result_of_job(meta["path"]):
                footer = object_footer(table, meta["path"], meta["size"])
                modified = int(meta["last_modified"].timestamp() * 1000)
                yield WrittenFile(meta["path"], meta["size"], modified, footer)


def _is_result_of_job(path: str) -> bool:
    """Return whether a file is a result of Spark's job.

    Below the job's folder are partition folders, whose columns may begin with any letter, and the
    committer's own folders with the output of failed tasks.
    """
    _, *folders, name = path.split("/")
    return all("=" in folder for folder in folders) and not name.startswith(("_", "."))


def _data_file(path: str, size: int, modified: int, footer: FileMetaData, schema: StructType) -> DataFile:
    partition = dict(_partition_value(part, schema) for part in path.split("/")[1:-1])
    statistics = delta_statistics(
        footer, [schema_field for schema_field in schema.fields if schema_field.name not in partition]
    )
    return DataFile(path, partition, size, modified, footer.num_rows, statistics)


def _partition_value(folder: str, schema: StructType) -> tuple[str, str | None]:
    """Return the column and the value that a folder stands for.

    Spark writes instants in UTC, the session's zone.
    """
    from pyspark.sql.types import TimestampType

    name, _, text = folder.partition("=")
    column, value = unquote(name), unquote(text)
    if text == NULL_FOLDER:
        return column, None
    if isinstance(schema[column].dataType, TimestampType):
        return column, utc_text(datetime.fromisoformat(value))
    return column, value
