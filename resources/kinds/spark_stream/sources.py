"""The sources of a stream on Spark's engine: inboxes of files, and Delta tables that only grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partitions.schema_types import all_nullable
from resources.connections.places import Place
from resources.sources.files.paths import escape_globs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_INBOX_OPTIONS = {
    # Copies keep their files' times, and by default Spark silently skips a file that was modified more than a
    # week before the newest one.
    "maxFileAge": "36500d",
}


def inbox_stream(session: SparkSession, inbox: Place, schema: str, files_per_batch: int | None) -> DataFrame:
    """Return an inbox's rows as a stream: each file once, by modification time.

    Args:
        session: the run's session.
        inbox: the folder that Spark reads; it exists.
        schema: DDL of the schema of all files.
        files_per_batch: most files in a batch; None: all waiting files.
    """
    reader = session.readStream.format("parquet").schema(schema).options(**_INBOX_OPTIONS)
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    parent, _, name = inbox.spark_url.rpartition("/")
    # A glob: without it Spark refuses a checkpoint that has read files elsewhere, as older versions did.
    return reader.load(f"{escape_globs(parent)}/{{{name}}}")


def columns_stream(session: SparkSession, schema: str) -> DataFrame:
    """Return a stream with the columns of files, for a query that never runs."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    declared = session.createDataFrame([], schema).schema
    columns = StructType.fromJson(dict(all_nullable(declared.jsonValue())))
    nothing = session.readStream.format("rate").load()
    return nothing.select(*[F.lit(None).cast(field.dataType).alias(field.name) for field in columns.fields])


def table_stream(session: SparkSession, table: Place, files_per_batch: int | None) -> DataFrame:
    """Return a Delta table's appended rows as a stream, from the first version on.

    Spark stops at a version that changes rows.

    Args:
        session: the run's session.
        table: place of the table.
        files_per_batch: most files of the table in a batch; None: all waiting files.
    """
    reader = session.readStream.format("delta")
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    return reader.load(table.spark_url)
