"""Epochs over the files above a path watermark (docs/reference/streams.md)."""

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
from resources.kinds.stream.epochs import Epochs, Waiting
from resources.loop.missing_source import warn_of_emptied_source
from resources.sources.files.paths import SOURCE_FILE
from resources.sources.files.source import FileSource
from resources.tables.contract.commit_log import VERSION
from resources.watermarks.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class EpochsOfFiles(Epochs):
    """A source of files: each file above the path watermark is a chunk.

    Attributes:
        dataflow: the definition.
        source: the files.
    """

    dataflow: Dataflow
    source: FileSource

    @property
    def warnings(self) -> Sequence[str]:
        """Warnings of the source about its files, each once."""
        return self.source.remarks

    def waiting(self, entry: Entry | None, state: StreamState, now: datetime) -> Waiting:
        """Return the files above the path watermark, from a full listing, cut into epochs."""
        definition, path_state = self.dataflow.stream.above_files, PathState.of(state.position.get("path"))
        listing = self.source.list_above(listing_start(definition, path_state, now, cold_start_of(entry)))
        number = entry.number if entry else 0
        planned = plan_of_files(
            definition, path_state, listing.listed, now, dataflow=self.dataflow.name, state_number=number
        )
        emptied = [] if listing.listed.files else warn_of_emptied_source(entry, self.source)
        warnings = (*planned.warnings, *emptied)
        no_files = Waiting((), planned.skips, None, warnings, listing.listed.calls)
        if not planned.slices:
            return no_files
        files = [file for slice_ in planned.slices for file in slice_.files]
        inputs = cut_files(
            definition.checkpoint, planned.slices[0].before, files, self.dataflow.stream.split_columns
        )
        if not planned.skips and definition.scope == "partition":
            last = inputs[-1]  # no older file is left to load, so old partitions may be closed
            assert isinstance(last, Files)
            inputs[-1] = replace(last, after=close_old_partitions(definition, PathState.of(last.after), now))
        return no_files._replace(inputs=inputs, since=planned.slices[0].since)

    def covers(self, state: StreamState, other: StreamState) -> bool:
        """Return whether no value of the path watermark falls from ``other`` to ``state``."""
        after, before = (PathState.of(stream.position.get("path")) for stream in (state, other))
        return after.covers(before, self.dataflow.stream.above_files.template)

    def pin(self, spark: SparkSession, pending: Sequence[EpochSlice]) -> str | None:
        """Return the declared schema, or one inferred from a bounded sample of the files."""
        files = [
            file
            for slice_ in pending
            if isinstance(slice_.input, Files)
            for file in slice_.input.source_files
        ]
        return self.source.pin(spark, files)

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Raise SchemaError if ``source.schema`` does not match the pinned schema."""
        self.source.check_schema(spark, pinned)

    def check_unchanged(self, epoch_input: Files) -> None:
        """Raise BadPart if the size or version of a file differs from the listing."""
        self.source.check_unchanged(epoch_input.source_files)

    def rows(self, spark: SparkSession, epoch_input: Files, pinned: str) -> DataFrame:
        """Return the rows of exactly these files; ``VERSION`` is the file's place among them, from 0."""
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
        """Return the file that caused a Spark error, with the line of a record that does not parse."""
        return self.source.find_bad_file(
            spark, {file.path: file for file in epoch_input.source_files}, pinned, error
        )
