"""One run of a streaming query over all present input, batch by batch, into an outbox.

Spark runs a batch again, under the same number, if its checkpoint does not say that it has ended; and so
do two runs at the same moment. Each attempt has a folder of its own, and one that has ended counts: so a
batch has each row once, whatever was killed, and whoever ran beside. What becomes of the batches is the
commit protocol's.
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
    # RocksDB's files are copied by Hadoop's own local file system only. Its instances are kept by scheme, and the one that is there is another.
    "fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "fs.file.impl.disable.cache": "true",
    # A query tells of its last batches only, and a backlog may have many.
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
}
_ATTEMPTS = 3
_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"


def batch_folder(batch_id: int) -> str:
    """Return the name of a batch's folder in an outbox; they sort by number."""
    return f"{batch_id:010d}"


def run_available(
    rows: DataFrame, *, output_mode: str, policy: str, checkpoint: Place, outbox: Place
) -> Sequence[BatchProgress]:
    """Run a query over all input that is there when it begins, and return its batches' progress.

    Args:
        rows: a streaming DataFrame.
        output_mode: append, update or complete.
        policy: of several watermarks, min or max. A checkpoint that has begun keeps its own.
        checkpoint: Spark's folder for it.
        outbox: gets a folder for each batch, and in it one of Parquet files for each attempt.

    Raises:
        Exception: of Spark's; what has ended before stays ended.
    """
    with temporary_settings(rows.sparkSession, {**_SETTINGS, _POLICY: policy}):
        query = _started(rows, output_mode, checkpoint, outbox)
        try:
            query.awaitTermination()
            # Spark reports its idle moments, too, under the number of a batch that there is not.
            return [
                BatchProgress.of(progress)
                for progress in query.recentProgress
                if "addBatch" in progress["durationMs"]
            ]
        finally:
            query.stop()


def _started(rows: DataFrame, output_mode: str, checkpoint: Place, outbox: Place) -> StreamingQuery:
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
            if not remaining or "connect back" not in str(error):  # its cause says so in other words
                raise
    raise AssertionError


def _writer(outbox: str) -> Callable[[DataFrame, int], None]:
    """Return a self-contained function, since Spark Connect runs it in a process of the server."""

    def write(batch: DataFrame, batch_id: int) -> None:
        from uuid import uuid4

        batch.write.parquet(f"{outbox}/{batch_id:010d}/{uuid4().hex}")

    return write
