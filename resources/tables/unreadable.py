"""Explain why a table version cannot be read: cleaned up, dropped or recreated.

See docs/how-to/chains.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from resources.connections.object_store_errors import spark_failure
from resources.spark.failures import root_cause
from resources.spark.process import describe_engine_loss
from resources.tables.contract.commits import Version
from resources.tables.contract.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_PATH = "[PATH_NOT_FOUND]"
"""Spark's error for a missing path, raised before it reads a row."""

_MISSING_FILE = ("PATH_NOT_FOUND", "FILE_NOT_EXIST", "FileNotFoundException", "Location does not exist")

UNREADABLE_VERSION = "unreadable_version"
"""Code of a BadPart for a table version that cannot be read. A slice that began with the version is planned again."""


def unreadable_version(spark: SparkSession, table: Table, version: Version, error: Exception) -> str | None:
    """Return why a version cannot be read; None if it can, or if a store or the engine does not answer.

    Args:
        spark: session.
        table: table that the slice reads.
        version: version that the slice reads.
        error: error of the write, which may have another cause. An AnalysisException came before any row
            was read, so this reads none either.
    """
    from pyspark.errors import AnalysisException

    try:
        rows = table.contents.read(spark, version)
        _ = rows.schema
        if not isinstance(error, AnalysisException) or _NO_PATH in str(error):
            rows.write.format("noop").mode("overwrite").save()
    except Exception as read_error:  # noqa: BLE001 - any error of the read is the reason
        store_failure = spark_failure(str(read_error))
        if describe_engine_loss(read_error) or (store_failure and store_failure[1].transient):
            return None
        return f"version {version} cannot be read: {root_cause(read_error)}"
    return None


def lacks_file(error: Exception) -> bool:
    """Return whether a read failed because a file is missing."""
    return any(words in str(error) for words in _MISSING_FILE)
