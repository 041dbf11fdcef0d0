"""Read the rows of batches that Spark has written to its outbox (docs/reference/streams-on-spark.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from partitions.spark_stream.batch_progress import BatchProgress
from partitions.spark_stream.batches import BatchSlice
from resources.connections.places import Place
from resources.kinds.contract.reading import Reading, ReportsBatches, SliceBase
from resources.kinds.spark_stream.folder import StreamFolder
from resources.kinds.spark_stream.inputs import Inputs
from resources.kinds.spark_stream.outbox import Outbox
from resources.sources.files.pinned import PinnedSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class SparkStreamReading(Reading[BatchSlice], ReportsBatches[BatchSlice]):
    """Reader of one stream's batches.

    Attributes:
        inputs: the sources, whose query shows the columns.
        folders: place with a folder for each life of the dataflow's state.
    """

    same_query_for_all_slices: ClassVar[bool] = True
    """Slices differ only in their folders."""

    inputs: Inputs
    folders: Place

    @property
    def warnings(self) -> Sequence[str]:
        """Warnings of the sources about their files."""
        return self.inputs.warnings

    @override
    def pin(self, spark: SparkSession, pending: Sequence[BatchSlice]) -> str | None:
        """Return the columns of the query as text."""
        return PinnedSchema(self.inputs.query(spark).schema.json(), ()).to_text()

    @override
    def fix(self, slice_: BatchSlice, base: SliceBase) -> BatchSlice:
        """Return the slice unchanged: a finished batch in the outbox never changes."""
        return slice_

    def read(self, spark: SparkSession, slice_: BatchSlice | None, pinned: str) -> DataFrame:
        """Return the rows of a slice's batches.

        Raises:
            NeedsDecision: code ``outbox_lost``: the rows of a batch are missing.
        """
        schema = PinnedSchema.of(pinned).struct
        if slice_ is None:
            return spark.createDataFrame([], schema)
        folder = self._folder_of(slice_)
        places = {number: folder.rows_of(number) for number in slice_.batches}
        missing_batch = next((number for number, place in places.items() if place is None), None)
        if missing_batch is not None:
            raise Outbox(self.inputs.dataflow.name, folder).rows_lost(str(missing_batch))
        return spark.read.schema(schema).parquet(*(place.spark_url for place in places.values() if place))

    def reports(self, slice_: BatchSlice) -> Sequence[BatchProgress]:
        """Return Spark's progress reports of a slice's batches, as far as they were stored."""
        folder = self._folder_of(slice_)
        return [report for number in slice_.batches if (report := folder.report(number)) is not None]

    def _folder_of(self, slice_: BatchSlice) -> StreamFolder:
        return StreamFolder(self.folders.child(slice_.after.position["folder"]))
