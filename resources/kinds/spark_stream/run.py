"""Run a streaming query once over all present input, batch by batch, into an outbox.

If Spark's checkpoint does not record a batch as finished, Spark runs it again under the same
number. Two runs at the same moment may also run the same batch. Each attempt therefore has a
folder of its own, and only one finished attempt counts. So a batch has each row once, whatever
was killed or ran beside it. The commit protocol then loads the batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from partitions.spark_stream.batch_progress import BatchProgress
from resources.connections.places import Place
from resources.spark.settings import temporary_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_SETTINGS: Mapping[str, str] = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    # Only Hadoop's own local file system can copy RocksDB's files. Hadoop caches one file system per scheme, and
    # the cached one is another.
    "fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "fs.file.impl.disable.cache": "true",
    # By default a query keeps the progress of its last 100 batches, and a backlog may have more.
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
}
"""Settings of a session while its query runs."""

_ATTEMPTS = 8
"""The most attempts to start a query."""

_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"


def batch_folder(batch_id: int) -> str:
    """Return the name of a batch's folder in an outbox; names sort by the batch's number."""
    return f"{batch_id:010d}"


def run_available(
    rows: DataFrame, *, output_mode: str, policy: str, checkpoint: Place, outbox: Place
) -> Sequence[BatchProgress]:
    """Run a query over all input that exists at its start, and return its batches' progress.

    Args:
        rows: streaming DataFrame of the query.
        output_mode: append, update or complete.
        policy: min or max: which of several watermarks counts. An existing checkpoint keeps its own
            policy.
        checkpoint: place of Spark's checkpoint.
        outbox: place that gets a folder for each batch, and in it a folder of Parquet files for each
            attempt.

    Raises:
        Exception: Spark's error; batches that finished before stay finished.
    """
    with temporary_settings(rows.sparkSession, {**_SETTINGS, _POLICY: policy}):
        query = _start(rows, output_mode, checkpoint, outbox)
        try:
            query.awaitTermination()
            # Spark also reports idle moments, under the number of a batch that does not exist.
            return [
                BatchProgress.of(progress)
                for progress in query.recentProgress
                if "addBatch" in progress["durationMs"]
            ]
        finally:
            query.stop()


def _start(rows: DataFrame, output_mode: str, checkpoint: Place, outbox: Place) -> StreamingQuery:
    """Start a query; try again if the server's Python process is slow to start."""
    for remaining in reversed(range(_ATTEMPTS)):
        try:
            return (
                rows.writeStream.foreachBatch(_writer(outbox.spark_url))
                .outputMode(output_mode)
                .option("checkpointLocation", checkpoint.spark_url)
                .trigger(availableNow=True)
                .start()
            )
        except Exception as error:
            if not remaining or "connect back" not in str(error):  # the root cause has other words
                raise
    raise AssertionError


def _writer(outbox: str) -> Callable[[DataFrame, int], None]:
    """Return the function that writes each batch; it is self-contained.

    Spark Connect runs it in a process of the server.
    """

    def write(batch: DataFrame, batch_id: int) -> None:
        from uuid import uuid4

        batch.write.parquet(f"{outbox}/{batch_id:010d}/{uuid4().hex}")

    return write
