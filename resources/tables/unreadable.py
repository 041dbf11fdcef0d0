"""Versions of tables that cannot be read any more: their files were cleaned up, or the table was dropped or made again (docs/chains.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from resources.connections.object_store_errors import spark_failure
from resources.spark.failures import cause
from resources.spark.process import engine_lost
from resources.tables.contract.commits import Version
from resources.tables.contract.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MISSING = "[PATH_NOT_FOUND]"
"""What Spark says of a file that is gone, before it reads any."""

_GONE = ("PATH_NOT_FOUND", "FILE_NOT_EXIST", "FileNotFoundException", "Location does not exist")

UNREADABLE_VERSION = "unreadable_version"
"""Code of a BadPart: a version of a table cannot be read. A slice that was begun on it is given up and planned again."""


def unreadable_version(spark: SparkSession, table: Table, version: Version, error: Exception) -> str | None:
    """Return why a version cannot be read; None if it can, or if a store or the engine does not answer.

    Args:
        spark: a session.
        table: that is read.
        version: of it.
        error: of a write, which may have another reason. If Spark did not get as far as rows, none are read here.
    """
    from pyspark.errors import AnalysisException

    try:
        rows = table.contents.read(spark, version)
        _ = rows.schema
        if not isinstance(error, AnalysisException) or _MISSING in str(error):
            rows.write.format("noop").mode("overwrite").save()
    except Exception as of_table:  # noqa: BLE001 - whatever Spark says of the table is what is wrong with it
        of_store = spark_failure(str(of_table))
        if engine_lost(of_table) or (of_store and of_store[1].transient):
            return None
        return f"version {version} cannot be read: {cause(of_table)}"
    return None


def lacks_file(error: Exception) -> bool:
    """Return whether a read failed since a file is not there."""
    return any(words in str(error) for words in _GONE)
