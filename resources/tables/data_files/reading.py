"""Rows of data files, read by their paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from resources.connections.places import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType


_PATTERN = frozenset("{}[]*?\\")
"""Characters that make a pattern of a path."""


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
