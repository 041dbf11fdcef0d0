"""What a stream reads its epochs from: the contract of its inputs (docs/reference/streams.md).

An input gives the rows of an epoch with the number of their chunk in ``VERSION``: what came first has the lower one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from partitions.errors import BadPart
from partitions.plan import Skip
from partitions.sentinels import Watermark
from partitions.stream.inputs import Input
from partitions.stream.slices import EpochSlice
from partitions.stream.state import StreamState
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
    def warnings(self) -> Sequence[str]:
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

    def check_unchanged(self, epoch_input: Any) -> None:
        """Raise BadPart if some of an epoch's input is not there, or has changed since it was planned."""
        ...

    def rows(self, spark: SparkSession, epoch_input: Any, pinned: str) -> DataFrame:
        """Return the rows of an epoch's input, with the pinned columns in their order, and ``VERSION``.

        Raises:
            NeedsDecision: the input is not there any more.
            BadPart: some of it cannot be read.
        """
        ...

    def find_bad_part(
        self, spark: SparkSession, epoch_input: Any, pinned: str, error: Exception
    ) -> BadPart | None:
        """Return the part of the input that a read has failed at; None if it is not the source's fault."""
        ...
