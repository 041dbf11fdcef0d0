"""The sources of a stream on Spark's engine: inboxes of files, and append-only Delta tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partitions.schema_types import all_nullable
from resources.connections.places import Place
from resources.sources.files.paths import escape_globs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OF_AN_INBOX = {
    # Else a file that is modified a week before the newest one, as a copy that keeps its times, is passed over in silence.
    "maxFileAge": "36500d",
}


def inbox_stream(session: SparkSession, inbox: Place, schema: str, files_per_batch: int | None) -> DataFrame:
    """Return an inbox's rows as a stream: each file once, by modification time.

    Args:
        session: of the run.
        inbox: a folder that is there.
        schema: of all files, DDL.
        files_per_batch: at most so many in a batch; None: all that wait.
    """
    reader = session.readStream.format("parquet").schema(schema).options(**_OF_AN_INBOX)
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    parent, _, name = inbox.spark_url.rpartition("/")
    # As a pattern: else Spark refuses a checkpoint that has read files elsewhere, as one of an older version has.
    return reader.load(f"{escape_globs(parent)}/{{{name}}}")


def columns_stream(session: SparkSession, schema: str) -> DataFrame:
    """Return a stream that has the columns of files, and is never read."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    declared = session.createDataFrame([], schema).schema
    columns = StructType.fromJson(dict(all_nullable(declared.jsonValue())))
    nothing = session.readStream.format("rate").load()
    return nothing.select(*[F.lit(None).cast(field.dataType).alias(field.name) for field in columns.fields])


def table_stream(session: SparkSession, table: Place, files_per_batch: int | None) -> DataFrame:
    """Return a Delta table's appended rows as a stream, from the first; other changes stop it.

    Args:
        session: of the run.
        table: where it lies.
        files_per_batch: of the table, at most so many in a batch; None: all that wait.
    """
    reader = session.readStream.format("delta")
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    return reader.load(table.spark_url)
