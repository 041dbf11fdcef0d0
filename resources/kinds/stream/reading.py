"""Read an epoch: judge its input, and return the rows that leave (docs/reference/streams.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, StrandlineError
from partitions.stream.operators import EPOCH
from partitions.stream.slices import EpochSlice
from partitions.target import HELPER_PREFIX
from resources.kinds.contract.reading import BuildsOnState, Reading, SliceBase
from resources.kinds.stream.bad_parts import StreamBadParts
from resources.kinds.stream.emission import refusals_of_spark
from resources.kinds.stream.epochs import Epochs
from resources.kinds.stream.judging import Judging, rows_read
from resources.sources.schema import pinned_struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_SMALL_BYTES, _SMALL_ROWS = 128 * 2**20, 1_000_000
"""One task sorts the rows that leave if input bytes and rows are both below these limits."""


@dataclass(frozen=True)
class StreamReading(Reading[EpochSlice], BuildsOnState[EpochSlice]):
    """Reader of one stream's epochs.

    Attributes:
        dataflow: the definition.
        epochs: the source.
        judging: decides about each row.
        bad_parts: finds the part of the input that cannot be read.
    """

    same_query_for_all_slices: ClassVar[bool] = False
    """The query contains the watermarks."""

    dataflow: Dataflow
    epochs: Epochs
    judging: Judging
    bad_parts: StreamBadParts

    @property
    def warnings(self) -> Sequence[str]:
        """Warnings of the source about the input read so far, each once."""
        return self.epochs.warnings

    def pin(self, spark: SparkSession, pending: Sequence[EpochSlice]) -> str | None:
        """Return the source's schema as text; None if the input does not show one yet.

        Raises:
            ConfigurationError: Spark refuses the operator, or names of columns collide.
        """
        pinned = self.epochs.pin(spark, pending)
        if pinned is not None:
            self._check_columns(spark, pinned)
        return pinned

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Raise if the source or the operator does not match the pinned schema.

        Raises:
            SchemaError: the source does not match it.
            ConfigurationError: Spark refuses the operator, or names of columns collide.
        """
        self.epochs.check_schema(spark, pinned)
        self._check_columns(spark, pinned)

    def _check_columns(self, spark: SparkSession, pinned: str) -> None:
        """Raise ConfigurationError if a name is reserved or occurs twice, or Spark refuses the operator.

        Names are compared without case.
        """
        reserved_names = [
            name for name in pinned_struct(pinned).names if name.casefold().startswith(HELPER_PREFIX)
        ]
        if reserved_names:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: source: expected no column whose name starts with "
                f"{HELPER_PREFIX}, found {', '.join(reserved_names)}. Rename it at the source"
            )
        if not self.dataflow.operators:
            return
        with refusals_of_spark(self.dataflow):
            columns = self.read(spark, None, pinned).schema.names
        lower_names = [name.lower() for name in columns]
        duplicates = sorted({name for name in columns if lower_names.count(name.lower()) > 1})
        if duplicates:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: operators: expected output names that no column of the "
                f"source has, found {', '.join(duplicates)}. Rename them"
            )

    def check_unchanged(self, slice_: EpochSlice) -> None:
        """Raise BadPart if a file has changed since it was listed; table versions never change."""
        if not slice_.reads_nothing:
            self.epochs.check_unchanged(slice_.input)

    def count_rows(self, slice_: EpochSlice) -> int:
        """Return the number of rows that an epoch reads: its own, and those of segments."""
        judgement = slice_.judged
        return judgement.tally.rows_in + rows_read(judgement.before, judgement.after.value)

    def fix(self, slice_: EpochSlice, base: SliceBase) -> EpochSlice:
        """Return the slice with the decisions about its rows and watermarks.

        Raises:
            BadPart: a part of the input cannot be read, or has changed since it was planned.
            ConfigurationError: a column is missing, or has a type that is no event time.
            StrandlineError: code ``late_rows``: rows are late, and the definition refuses them; code
                ``buffer_full``: more rows would wait than the definition allows.
            NeedsDecision: code ``buffer_lost``: the buffer does not hold the rows that the state counts.
        """
        self.check_unchanged(slice_)
        with self._raising_bad_part(base.spark, slice_, base.pinned):
            return self.judging.judge(base.spark, base.entry, slice_, base.pinned, base.now)

    def check_fixed(self, slice_: EpochSlice, base: SliceBase) -> None:
        """Count again, and raise unless the buffer still holds the rows that a fixed epoch needs.

        Raises:
            BadPart: a part of the input cannot be read.
            NeedsDecision: code ``buffer_lost``.
        """
        with self._raising_bad_part(base.spark, slice_, base.pinned):
            self.judging.decide(self.judging.epoch(base.spark, slice_, base.pinned))

    @contextmanager
    def _raising_bad_part(self, spark: SparkSession, slice_: EpochSlice, pinned: str) -> Iterator[None]:
        """Raise the part of the input that cannot be read in place of the Spark error that it caused."""
        try:
            yield
        except StrandlineError:
            raise
        except Exception as error:
            if (bad := self.bad_parts.find(spark, slice_, pinned, error)) is None:
                raise
            raise bad from error

    def read(self, spark: SparkSession, slice_: EpochSlice | None, pinned: str) -> DataFrame:
        """Return the rows that leave in an epoch, or the windows that close, in order, in disjoint parts."""
        from pyspark.sql import functions as F

        if slice_ is None:
            epoch, small = self.judging.no_epoch(spark, pinned), True
        else:
            epoch = self.judging.epoch(spark, slice_, pinned)
            small = slice_.input.bytes < _SMALL_BYTES and slice_.judged.tally.emitted < _SMALL_ROWS
        rows = self.judging.emission.rows(epoch, small=small)
        return rows.withColumn(EPOCH, F.lit(epoch.number).cast("long"))
