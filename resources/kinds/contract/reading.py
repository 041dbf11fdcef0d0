"""The part of a kind that reads: the schema, what exactly a slice is read from, and its rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, runtime_checkable

from partitions.loads import LackingColumn
from resources.kinds.contract.slices import SliceContra, SliceT
from resources.watermarks.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from partitions.spark_stream.batch_progress import BatchProgress


class SliceBase(NamedTuple):
    """What a slice is fixed on: of some kinds what its rows become depends on the rows before.

    Attributes:
        spark: the run's session.
        entry: the newest, which the slice was planned on.
        pinned: text of the schema that it is read with.
        now: the run's clock, aware.
    """

    spark: SparkSession
    entry: Entry | None
    pinned: str
    now: datetime


class Reading(ABC, Generic[SliceT]):
    """Reads the slices of one dataflow."""

    @property
    @abstractmethod
    def remarks(self) -> Sequence[str]:
        """What a user should hear of what was read so far, each once."""

    @property
    @abstractmethod
    def one_query(self) -> bool:
        """Whether the queries of two slices differ in nothing but their files."""

    @abstractmethod
    def pin(self, spark: SparkSession, pending: Sequence[SliceT]) -> str | None:
        """Return the schema that all slices are read with, as text; None while nothing tells it."""

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Raise SchemaError if the source or definition does not match the pinned schema."""

    @abstractmethod
    def fix(self, slice_: SliceT, base: SliceBase) -> SliceT:
        """Return the slice with what exactly it is read from; raise BadPart if some of it is not there, or has changed since it was planned."""

    def check_unchanged(self, slice_: SliceT) -> None:
        """Raise BadPart if what a slice is read from has changed since it was fixed; versions, and what has no parts, do not."""

    @abstractmethod
    def read(self, spark: SparkSession, slice_: SliceT | None, pinned: str) -> DataFrame:
        """Return the slice's rows; without a slice no rows, of the same schema."""


@runtime_checkable
class ReadsVersions(Protocol[SliceT]):
    """A kind whose source may have versions: the slices of a plan read the same one."""

    def at_one_version(self, slices: Sequence[SliceT]) -> list[SliceT]:
        """Return the slices, which read the newest version of the source."""
        ...


@runtime_checkable
class BuildsOnState(Protocol[SliceContra]):
    """A kind whose slices are fixed on rows that wait beside the source."""

    def check_fixed(self, slice_: SliceContra, base: SliceBase) -> None:
        """Raise unless what a slice was fixed on by a run that died is still there.

        Raises:
            BadPart: some of its input cannot be read.
            NeedsDecision: rows that it needs are gone.
        """
        ...

    def rows_of(self, slice_: SliceContra) -> int:
        """Return how many rows the queries of a fixed slice go over."""
        ...


@runtime_checkable
class KnowsColumns(Protocol):
    """A kind that can tell which columns it reads of slices that one query is good for."""

    def columns(self, pinned: str) -> StructType | None:
        """Return the columns of the rows that are read with a schema, given as text; None if only Spark can tell."""
        ...


@runtime_checkable
class TellsLacking(Protocol[SliceContra]):
    """A kind whose source may lose columns, whose rows have NULL in them then."""

    def lacking(self, spark: SparkSession, slice_: SliceContra, pinned: str) -> Sequence[LackingColumn]:
        """Return the pinned columns that the source of some rows of a slice does not have, once its rows were read."""
        ...


@runtime_checkable
class ReportsBatches(Protocol[SliceContra]):
    """A kind whose engine says of each of its batches what it did."""

    def reports(self, slice_: SliceContra) -> Sequence[BatchProgress]:
        """Return what the engine has said of the batches of a slice."""
        ...
