"""Data files that Spark writes for a commit of our own, and how they are found again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from partitions.errors import StrandlineError, TargetError
from resources.connections.places import Place
from resources.listing.failures import store_failures
from resources.listing.removal import remove_folder
from resources.spark.settings import settings_for_a_while
from resources.tables.data_files.footers import local_footer, read_footer
from resources.tables.data_files.statistics import statistics_of, utc_text
from resources.tables.folder_values import NULL_FOLDER, kept_by_folders

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


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


def remove_files(table: Place, folder: str) -> None:
    """Remove a folder of a table; what cannot be removed is VACUUM's."""
    with suppress(StrandlineError):
        remove_folder(table.child(folder))


def _local(table: Path, folder: str) -> Iterator[Written]:
    for path in (Path(parent, name) for parent, _, names in os.walk(table / folder) for name in names):
        relative = path.relative_to(table).as_posix()
        if _is_of_the_job(relative):
            status = path.stat()
            yield Written(relative, status.st_size, status.st_mtime_ns // 1_000_000, local_footer(path))


def _remote(table: Place, folder: str) -> Iterator[Written]:
    for page in table.store.list(f"{folder}/"):
        for meta in page:
            # Some stores list folders, too, which are empty.
            if meta["size"] and _is_of_the_job(meta["path"]):
                footer = read_footer(table, meta["path"], meta["size"])
                modified = int(meta["last_modified"].timestamp() * 1000)
                yield Written(meta["path"], meta["size"], modified, footer)


def _is_of_the_job(path: str) -> bool:
    """Whether a file is a result of Spark's job.

    Below its folder are folders of partitions, whose columns may begin with any letter, and the committer's own, which hold what failed tasks wrote.
    """
    _, *folders, name = path.split("/")
    return all("=" in folder for folder in folders) and not name.startswith(("_", "."))


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
        return column, utc_text(datetime.fromisoformat(value))
    return column, value
