"""The sources of a stream, as Spark's engine reads them on: folders of files, and append-only Delta tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from resources.places import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READERS: Mapping[str, str] = {"ndjson": "json", "csv": "csv", "parquet": "parquet"}
"""Formats of files to the names of Spark's readers."""

_LOCAL = {
    # A run of a stream has Hadoop's own local file system, for RocksDB; that one has no names with a colon.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "recursiveFileLookup": "true",
    # Else a file that is modified a week before the newest one, as a copy that keeps its times, is passed over in silence.
    "maxFileAge": "36500d",
}

_USUAL: Mapping[str, Mapping[str, str]] = {"csv": {"header": "true", "escape": '"'}}
"""What runs of other kinds tell the reader of a format, too, unless the user says otherwise."""

_PROTECTING = {
    # Else a record that does not parse becomes NULLs, in silence.
    "mode": "FAILFAST",
    # Else a header with the columns in another order is passed over.
    "enforceSchema": "false",
}


def files_stream(
    session: SparkSession,
    root: Place,
    form: str,
    schema: str,
    options: Mapping[str, str],
    files_per_batch: int | None,
) -> DataFrame:
    """Return the files below a root as a stream: each once, by modification time, whenever it comes.

    Args:
        session: of the run.
        root: a folder or a prefix.
        form: one of :data:`READERS`.
        schema: of all files, DDL.
        options: of Spark's reader.
        files_per_batch: at most so many in a batch; None: all that wait.
    """
    told = {**_LOCAL, **_USUAL.get(form, {}), **options, **_PROTECTING}
    reader = session.readStream.format(READERS[form]).schema(schema).options(**told)
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    return reader.load(root.spark_url)


def table_stream(session: SparkSession, table: Place, files_per_batch: int | None) -> DataFrame:
    """Return the rows that were appended to a Delta table as a stream, from the first on. Spark stops at a version that changes or removes rows.

    Args:
        session: of the run.
        table: where it lies.
        files_per_batch: of the table, at most so many in a batch; None: all that wait.
    """
    reader = session.readStream.format("delta")
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    return reader.load(table.spark_url)
