"""The contract of a stream's sources: input for epochs, and its rows (docs/reference/streams.md).

A source numbers the chunks of an epoch's rows in the column ``VERSION``: earlier chunks have
lower numbers.
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
    """The unread input of a source, cut into epochs.

    Attributes:
        inputs: input of each epoch, in order.
        held_back: input that waits for a later run, with the reasons.
        since: where a filtered cold start began; None for any other start.
        warnings: warnings for the operator.
        calls: number of calls to the store.
    """

    inputs: Sequence[Input]
    held_back: Sequence[Skip] = ()
    since: Watermark | None = None
    warnings: Sequence[str] = ()
    calls: int = 0


class Epochs(Protocol):
    """A source that provides input for epochs."""

    @property
    def warnings(self) -> Sequence[str]:
        """Warnings about the input read so far, each once."""
        ...

    def waiting(self, entry: Entry | None, state: StreamState, now: datetime) -> Waiting:
        """Return the input above a state. Starts no Spark.

        Raises:
            NeedsDecision: the source was replaced by another one, or no longer lists all unread input.
            SourceError: the source is missing, or has changed rows.
        """
        ...

    def covers(self, state: StreamState, other: StreamState) -> bool:
        """Return whether a state has read everything that another one has read."""
        ...

    def pin(self, spark: SparkSession, pending: Sequence[EpochSlice]) -> str | None:
        """Return the schema for all epochs as text; None if the input does not show one yet."""
        ...

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Raise SchemaError if the source does not match the pinned schema."""
        ...

    def check_unchanged(self, epoch_input: Any) -> None:
        """Raise BadPart if a part of the input is missing, or has changed since it was planned."""
        ...

    def rows(self, spark: SparkSession, epoch_input: Any, pinned: str) -> DataFrame:
        """Return the rows of an epoch's input: the pinned columns in their order, and ``VERSION``.

        Raises:
            NeedsDecision: the source no longer holds the input.
            BadPart: a part of the input cannot be read.
        """
        ...

    def find_bad_part(
        self, spark: SparkSession, epoch_input: Any, pinned: str, error: Exception
    ) -> BadPart | None:
        """Return the part of the input that caused a read error; None if the source is not the cause."""
        ...
