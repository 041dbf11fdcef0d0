"""Where a stream's epochs read: versions of a table, or files above a path watermark (docs/streams.md).

Each gives the input of epochs, and its rows with the number of their chunk in ``VERSION``: what came first has the lower one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import BadPart, NeedsDecision
from partitions.path.closing import closed
from partitions.path.plan import plan as plan_of_files
from partitions.path.position_of_state import position
from partitions.path.state import PathState
from partitions.plan import Skip
from partitions.sentinels import Watermark
from partitions.sources import TableSource
from partitions.stream.inputs import (
    Chunk,
    Files,
    Input,
    Versions,
    begun_behind,
    files_in_epochs,
    versions_in_epochs,
)
from partitions.stream.slices import EpochSlice
from partitions.stream.state import StreamState
from resources.kinds.state_of_entry import cold_start_of
from resources.sources.files.paths import SOURCE_FILE
from resources.sources.files.source import FileSource
from resources.sources.table import TableRows
from resources.tables.contract.appends import VERSION, Appended, Mark
from resources.tables.unreadable import lacks_file
from resources.watermarks.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Waiting(NamedTuple):
    """The input that a source has for epochs.

    Attributes:
        inputs: of epochs, in their order.
        held_back: what waits for a later run, and why.
        since: where a filtered cold start began.
        warnings: what an operator should hear of it.
        calls: to a store.
    """

    inputs: Sequence[Input]
    held_back: Sequence[Skip] = ()
    since: Watermark | None = None
    warnings: Sequence[str] = ()
    calls: int = 0


class Epochs(Protocol):
    """A source, as epochs read it."""

    @property
    def remarks(self) -> Sequence[str]:
        """What a user should hear of what was read so far, each once."""
        ...

    def waiting(self, entry: Entry | None, state: StreamState, now: datetime) -> Waiting:
        """Look for input above a state. Starts no Spark.

        Raises:
            NeedsDecision: the source is another one now, or does not tell what was not read yet.
            SourceError: there is no source, or it has changed rows.
        """
        ...

    def covers(self, state: StreamState, other: StreamState) -> bool:
        """Return whether a state has read what another one has."""
        ...

    def pin(self, spark: SparkSession, pending: Sequence[EpochSlice]) -> str | None:
        """Return the schema that all epochs are read with, as text; None while nothing tells it."""
        ...

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Raise SchemaError if the source does not match the pinned schema."""
        ...

    def check_unchanged(self, given: Any) -> None:
        """Raise BadPart if some of an epoch's input is not there, or has changed since it was planned."""
        ...

    def rows(self, spark: SparkSession, given: Any, pinned: str) -> DataFrame:
        """Return the rows of an epoch's input, with the pinned columns in their order, and ``VERSION``.

        Raises:
            NeedsDecision: the input is not there any more.
            BadPart: some of it cannot be read.
        """
        ...

    def find_bad_part(self, spark: SparkSession, given: Any, pinned: str, error: Exception) -> BadPart | None:
        """Return the part of the input that a read has failed at; None if it is not the source's fault."""
        ...


@dataclass(frozen=True)
class EpochsOfVersions(Epochs):
    """A table that only grows: each version is a chunk.

    Attributes:
        dataflow: what the user declared.
        table: that is read.
    """

    dataflow: Dataflow
    table: TableRows

    @property
    def remarks(self) -> Sequence[str]:
        """None: the plan says it all."""
        return ()

    @override
    def waiting(self, entry: Entry | None, state: StreamState, now: datetime) -> Waiting:
        """Look at the table's log."""
        at = state.position
        since = Mark(at["version"], at.get("id")) if "version" in at else None
        try:
            found, before = self.table.first_chunks() if since is None else (self.table.chunks(since), since)
        except NeedsDecision as gone:
            raise self._other_source(gone.message, gone.code) from gone
        if since is None and before is not None and self._begins_at_latest:
            return Waiting((begun_behind(found.table, before),))
        if since is not None and (found.table != at["table"] or found.newest < since.version):
            raise self._other_source(
                f"expected table {self.dataflow.source.shown} of which versions up to {since.version} were read, found another table of that name,"
                " or an older version of it",
                "source_replaced",
            )
        chunks = [Chunk(each.version, each.files, each.bytes, each.id, each.whole) for each in found.versions]
        skipped = [
            f"{each.changes}: it is passed over (source.on_change: skip)"
            for each in found.versions
            if each.changes
        ]
        inputs = versions_in_epochs(self.dataflow.stream.checkpoint, found.table, chunks, before)
        return Waiting(inputs, warnings=skipped)

    @property
    def _begins_at_latest(self) -> bool:
        source = self.dataflow.source
        return isinstance(source, TableSource) and source.from_ == "latest"

    def covers(self, state: StreamState, other: StreamState) -> bool:
        """Compare versions, if they are of one table."""
        after, before = state.position, other.position
        same = after.get("table") == before.get("table")
        return not before or not same or after.get("version", -1) >= before.get("version", -1)

    @override
    def pin(self, spark: SparkSession, pending: Sequence[EpochSlice]) -> str | None:
        """Return the table's columns."""
        return self.table.pin(spark)

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Compare the table's columns."""
        self.table.check_schema(spark, pinned, self.dataflow.name)

    def check_unchanged(self, given: Versions) -> None:
        """Versions do not change."""

    def rows(self, spark: SparkSession, given: Versions, pinned: str) -> DataFrame:
        """Return the rows that the versions append."""
        return self.table.read_chunks(spark, self._chunks_of(given), pinned)

    @override
    def find_bad_part(
        self, spark: SparkSession, given: Versions, pinned: str, error: Exception
    ) -> BadPart | None:
        """Return the last version, if it cannot be read; an epoch has no other parts.

        Raises:
            NeedsDecision: code ``versions_gone``: it can, and files that earlier ones have added are gone.
        """
        bad = self.table.find_unreadable_chunk(spark, Mark(given.last, given.id), error)
        if bad is None and lacks_file(error):
            raise self._other_source(
                f"expected the files that versions {given.first} to {given.last} of table {self.dataflow.source.shown} have added, found some gone:"
                " they were joined with others and vacuumed before they were read",
                "versions_gone",
            ) from error
        return bad

    def _chunks_of(self, given: Versions) -> Sequence[Appended]:
        if not given.files:  # what was there before the first run
            return ()
        since = None if given.since is None else Mark(given.since, given.since_id)
        try:
            found = self.table.chunks(since, given.last).versions
        except NeedsDecision as gone:
            raise self._other_source(gone.message, gone.code) from gone
        files, size = sum(each.files for each in found), sum(each.bytes for each in found)
        last = found[-1] if found else None
        read = None if last is None else (last.version, given.id and last.id, files, size)
        if read != (given.last, given.id, given.files, given.bytes):
            raise self._other_source(
                f"expected versions {given.first} to {given.last} of table {self.dataflow.source.shown}, found others in its log",
                "versions_gone",
            )
        return found

    def _other_source(self, message: str, code: str) -> NeedsDecision:
        name = self.dataflow.name
        return NeedsDecision(
            f"dataflow {name}: {message}. Reset the state with --replace to sort what the table holds now",
            code=code,
            choices=(f"strandline state reset {name} --replace --reason TEXT",),
        )


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
    def remarks(self) -> Sequence[str]:
        """What the source has to say of the files."""
        return self.source.remarks

    def waiting(self, entry: Entry | None, state: StreamState, now: datetime) -> Waiting:
        """List above the path watermark, in full."""
        definition, read = self.dataflow.stream.above_files, PathState.of(state.position.get("path"))
        listing = self.source.list_above(position(definition, read, now, cold_start_of(entry)))
        number = entry.number if entry else 0
        found = plan_of_files(
            definition, read, listing.listed, now, dataflow=self.dataflow.name, number=number
        )
        warned = Waiting((), found.skips, None, found.warnings, listing.listed.calls)
        if not found.slices:
            return warned
        files = [file for slice_ in found.slices for file in slice_.files]
        inputs = files_in_epochs(
            definition.checkpoint, found.slices[0].before, files, self.dataflow.stream.split_columns
        )
        if not found.skips and definition.scope == "partition":
            last = inputs[-1]
            assert isinstance(last, Files)
            inputs[-1] = replace(last, after=closed(definition, PathState.of(last.after), now))
        return warned._replace(inputs=inputs, since=found.slices[0].since)

    def covers(self, state: StreamState, other: StreamState) -> bool:
        """Compare the path watermarks."""
        after, before = (PathState.of(each.position.get("path")) for each in (state, other))
        return after.covers(before, self.dataflow.stream.above_files.template)

    def pin(self, spark: SparkSession, pending: Sequence[EpochSlice]) -> str | None:
        """Return the declared schema, or one inferred from a bounded sample."""
        inputs = [slice_.input for slice_ in pending]
        return self.source.pin(
            spark, [file for given in inputs if isinstance(given, Files) for file in given.given]
        )

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Compare ``source.schema``."""
        self.source.check_schema(spark, pinned)

    def check_unchanged(self, given: Files) -> None:
        """Compare size and version of every file with what was listed."""
        self.source.check_unchanged(given.given)

    def rows(self, spark: SparkSession, given: Files, pinned: str) -> DataFrame:
        """Return the rows of exactly these files; a file's number is its place among them."""
        from pyspark.sql import functions as F

        rows = self.source.read(spark, given.given, pinned, origin=True)
        if given.one_chunk:
            return rows.drop(SOURCE_FILE).withColumn(VERSION, F.lit(0).cast("long"))
        places = [(file.path, place) for place, file in enumerate(given.given)]
        told = F.broadcast(spark.createDataFrame(places, f"{SOURCE_FILE} string, {VERSION} long"))
        return rows.join(told, SOURCE_FILE).drop(SOURCE_FILE)

    def find_bad_part(
        self, spark: SparkSession, given: Files, pinned: str, error: Exception
    ) -> BadPart | None:
        """Return the file that Spark names, with its line if a record does not parse."""
        return self.source.find_bad_file(spark, {file.path: file for file in given.given}, pinned, error)
