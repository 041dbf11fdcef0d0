"""The part of a kind that reads: the schema, a slice's exact input, and its rows."""

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
    """The context in which a slice's input is fixed.

    Attributes:
        spark: the run's session.
        entry: the newest entry, on which the slice was planned. In some kinds the slice's rows depend on
            rows before it.
        pinned: text of the schema that the slice is read with.
        now: the run's clock, aware.
    """

    spark: SparkSession
    entry: Entry | None
    pinned: str
    now: datetime


class Reading(ABC, Generic[SliceT]):
    """Reader of one dataflow's slices."""

    @property
    @abstractmethod
    def warnings(self) -> Sequence[str]:
        """Warnings about the input read so far, each once."""

    @property
    @abstractmethod
    def same_query_for_all_slices(self) -> bool:
        """Whether the queries of two slices differ only in their files."""

    @abstractmethod
    def pin(self, spark: SparkSession, pending: Sequence[SliceT]) -> str | None:
        """Return the schema for all slices as text; None if the input does not show one yet."""

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Raise SchemaError if the source or definition does not match the pinned schema."""

    @abstractmethod
    def fix(self, slice_: SliceT, base: SliceBase) -> SliceT:
        """Return the slice with its exact input.

        Raises:
            BadPart: a part is missing, or has changed since it was planned.
        """

    def check_unchanged(self, slice_: SliceT) -> None:
        """Raise BadPart if the slice's input has changed since it was fixed. Table versions never change."""

    @abstractmethod
    def read(self, spark: SparkSession, slice_: SliceT | None, pinned: str) -> DataFrame:
        """Return the slice's rows; without a slice, no rows with the same schema."""


@runtime_checkable
class ReadsVersions(Protocol[SliceT]):
    """A kind whose source may have versions: all slices of a plan read the same one."""

    def at_one_version(self, slices: Sequence[SliceT]) -> list[SliceT]:
        """Return the slices, all set to read the source's newest version."""
        ...


@runtime_checkable
class BuildsOnState(Protocol[SliceContra]):
    """A kind whose slices also depend on rows that wait beside the source."""

    def check_fixed(self, slice_: SliceContra, base: SliceBase) -> None:
        """Raise if the input that a dead run fixed for a slice is incomplete.

        Raises:
            BadPart: some of its input cannot be read.
            NeedsDecision: rows that it needs are missing.
        """
        ...

    def count_rows(self, slice_: SliceContra) -> int:
        """Return how many rows the queries of a fixed slice read."""
        ...


@runtime_checkable
class KnowsColumns(Protocol):
    """A kind that knows the columns of its rows without asking Spark, if one query fits all slices."""

    def columns(self, pinned: str) -> StructType | None:
        """Return the columns of rows that are read with a schema; None if only Spark knows them."""
        ...


@runtime_checkable
class ReportsMissingColumns(Protocol[SliceContra]):
    """A kind whose source may lose columns; the rows have NULL there."""

    def missing_columns(
        self, spark: SparkSession, slice_: SliceContra, pinned: str
    ) -> Sequence[LackingColumn]:
        """Return the pinned columns that the source of some rows lacked; call it after reading the slice."""
        ...


@runtime_checkable
class ReportsBatches(Protocol[SliceContra]):
    """A kind whose engine reports the progress of each of its batches."""

    def reports(self, slice_: SliceContra) -> Sequence[BatchProgress]:
        """Return the engine's progress reports for the batches of a slice."""
        ...
