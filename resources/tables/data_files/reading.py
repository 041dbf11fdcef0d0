"""Read rows of data files by their paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from resources.connections.places import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType


PLAIN_PATH = re.compile(r"(?!/)(?:[A-Za-z0-9_.=/+~-])+")
"""A path below a table's folder that no log and no address escapes."""
_GLOB_CHARACTERS = frozenset("{}[]*?\\")
"""Characters that turn a path into a pattern."""


def files_reader(session: SparkSession, schema: StructType) -> DataFrameReader:
    """Return a reader that reads every Parquet file it gets, whatever the session ignores in sources.

    Args:
        session: session that reads.
        schema: schema of the files. Metadata that a source attached to its columns is dropped.
    """
    from pyspark.sql.types import StructType

    plain = StructType.fromJson(_without_metadata(schema.jsonValue()))
    options = {"__globPaths__": "false", "ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
    return session.read.schema(plain).options(**options)


def _without_metadata(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_metadata(item) for item in value]
    if isinstance(value, dict):
        return {key: {} if key == "metadata" else _without_metadata(item) for key, item in value.items()}
    return value


def is_spark_readable(path: str) -> bool:
    """Return whether Spark's file readers accept a path: they treat some as patterns and hide others."""
    name = path.rpartition("/")[2]
    return not (_GLOB_CHARACTERS & set(path) or name.startswith(("_", ".")) or name.endswith("._COPYING_"))


def read_files(rows: DataFrame, folder: Place, paths: Sequence[str]) -> DataFrame:
    """Return the rows of files below a folder, with partition columns from the folders below it.

    Args:
        rows: frame of the same session with the columns of the files.
        folder: base folder, such as a table.
        paths: paths of the files, relative to the folder.
    """
    reader = files_reader(rows.sparkSession, rows.schema).option("basePath", folder.spark_url)
    return reader.parquet(*(folder.child(path).spark_url for path in paths))


def read_existing_files(spark: SparkSession, paths: Sequence[str], schema: StructType) -> DataFrame:
    """Return the rows of files, and fail if one is missing.

    Spark checks that a file exists before it lists it, and reads a file that vanishes in between as empty.
    So it checks once more after the listing: a file that exists then existed during the listing. The
    second read has no rows, and no part in the job.
    """
    return _check_after_listing(lambda: files_reader(spark, schema).parquet(*paths))


def read_with_file_names(
    spark: SparkSession, paths: Sequence[str], schema: StructType, file_column: str
) -> DataFrame:
    """Return the rows of files as :func:`read_existing_files` does, with the name of each row's file."""

    def read() -> DataFrame:
        rows = files_reader(spark, schema).parquet(*paths)
        # Not by the name `_metadata`, which a column of the files may have.
        return rows.withColumn(file_column, rows.metadataColumn("_metadata").getField("file_name"))

    return _check_after_listing(read)


def _check_after_listing(read: Callable[[], DataFrame]) -> DataFrame:
    # Embedded Spark lists the files once, when the frame is created; a server lists them for each query.
    return read().unionAll(read().limit(0))
