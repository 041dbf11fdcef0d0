"""Epochs over files above a path watermark: each file is a chunk (docs/reference/streams.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import BadPart
from partitions.path.closing import close_old_partitions
from partitions.path.plan import plan as plan_of_files
from partitions.path.position_of_state import listing_start
from partitions.path.state import PathState
from partitions.stream.inputs import Files, cut_files
from partitions.stream.slices import EpochSlice
from partitions.stream.state import StreamState
from resources.kinds.state_of_entry import cold_start_of
from resources.sources.files.paths import SOURCE_FILE
from resources.sources.files.source import FileSource
from resources.tables.contract.appends import VERSION
from resources.watermarks.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
from resources.kinds.stream.epochs import Epochs, Waiting


@dataclass(frozen=True)
class EpochsOfFiles(Epochs):
    """Files above a path watermark: each is a chunk.

    Attributes:
        dataflow: what the user declared.
        source: its files.
    """

    dataflow: Dataflow
    source: FileSource

    @property
    def warnings(self) -> Sequence[str]:
        """What the source has to say of the files."""
        return self.source.remarks

    def waiting(self, entry: Entry | None, state: StreamState, now: datetime) -> Waiting:
        """List above the path watermark, in full."""
        definition, read = self.dataflow.stream.above_files, PathState.of(state.position.get("path"))
        listing = self.source.list_above(listing_start(definition, read, now, cold_start_of(entry)))
        number = entry.number if entry else 0
        planned = plan_of_files(
            definition, read, listing.listed, now, dataflow=self.dataflow.name, number=number
        )
        warned = Waiting((), planned.skips, None, planned.warnings, listing.listed.calls)
        if not planned.slices:
            return warned
        files = [file for slice_ in planned.slices for file in slice_.files]
        inputs = cut_files(
            definition.checkpoint, planned.slices[0].before, files, self.dataflow.stream.split_columns
        )
        if not planned.skips and definition.scope == "partition":
            last = inputs[-1]
            assert isinstance(last, Files)
            inputs[-1] = replace(last, after=close_old_partitions(definition, PathState.of(last.after), now))
        return warned._replace(inputs=inputs, since=planned.slices[0].since)

    def covers(self, state: StreamState, other: StreamState) -> bool:
        """Compare the path watermarks."""
        after, before = (PathState.of(read.position.get("path")) for read in (state, other))
        return after.covers(before, self.dataflow.stream.above_files.template)

    def pin(self, spark: SparkSession, pending: Sequence[EpochSlice]) -> str | None:
        """Return the declared schema, or one inferred from a bounded sample."""
        inputs = [slice_.input for slice_ in pending]
        return self.source.pin(
            spark,
            [
                file
                for epoch_input in inputs
                if isinstance(epoch_input, Files)
                for file in epoch_input.source_files
            ],
        )

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Compare ``source.schema``."""
        self.source.check_schema(spark, pinned)

    def check_unchanged(self, epoch_input: Files) -> None:
        """Compare size and version of every file with what was listed."""
        self.source.check_unchanged(epoch_input.source_files)

    def rows(self, spark: SparkSession, epoch_input: Files, pinned: str) -> DataFrame:
        """Return the rows of exactly these files; a file's number is its place among them."""
        from pyspark.sql import functions as F

        rows = self.source.read(spark, epoch_input.source_files, pinned, origin=True)
        if epoch_input.one_chunk:
            return rows.drop(SOURCE_FILE).withColumn(VERSION, F.lit(0).cast("long"))
        places = [(file.path, place) for place, file in enumerate(epoch_input.source_files)]
        chunk_numbers = F.broadcast(spark.createDataFrame(places, f"{SOURCE_FILE} string, {VERSION} long"))
        return rows.join(chunk_numbers, SOURCE_FILE).drop(SOURCE_FILE)

    def find_bad_part(
        self, spark: SparkSession, epoch_input: Files, pinned: str, error: Exception
    ) -> BadPart | None:
        """Return the file that Spark names, with its line if a record does not parse."""
        return self.source.find_bad_file(
            spark, {file.path: file for file in epoch_input.source_files}, pinned, error
        )
