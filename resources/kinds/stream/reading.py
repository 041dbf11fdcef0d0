"""The rows that leave in an epoch, which is judged as it is fixed (docs/reference/streams.md)."""

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


_SMALL, _FEW = 128 * 2**20, 1_000_000
"""Bytes of input, and rows that leave, which one task sorts."""


@dataclass(frozen=True)
class StreamReading(Reading[EpochSlice], BuildsOnState[EpochSlice]):
    """Reads epochs.

    Attributes:
        dataflow: what the user declared.
        epochs: its source.
        judging: decides what becomes of each row.
        bad_parts: tells which part of the input cannot be read.
    """

    same_query_for_all_slices: ClassVar[bool] = False
    """Watermarks stand in the query."""

    dataflow: Dataflow
    epochs: Epochs
    judging: Judging
    bad_parts: StreamBadParts

    @property
    def warnings(self) -> Sequence[str]:
        """What the source has to say of what was read."""
        return self.epochs.warnings

    def pin(self, spark: SparkSession, pending: Sequence[EpochSlice]) -> str | None:
        """Return the source's columns, if the operator can be applied to them."""
        pinned = self.epochs.pin(spark, pending)
        if pinned is not None:
            self._check_columns(spark, pinned)
        return pinned

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Compare the source's columns with what was pinned."""
        self.epochs.check_schema(spark, pinned)
        self._check_columns(spark, pinned)

    def _check_columns(self, spark: SparkSession, pinned: str) -> None:
        """Raise unless names of columns are told apart from each other, and from those of the queries."""
        reserved_names = [
            name for name in pinned_struct(pinned).names if name.casefold().startswith(HELPER_PREFIX)
        ]
        if reserved_names:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: source: expected no column whose name begins with {HELPER_PREFIX}, found {', '.join(reserved_names)}. Rename it where the"
                " source is made"
            )
        if not self.dataflow.operators:
            return
        with refusals_of_spark(self.dataflow):
            columns = self.read(spark, None, pinned).schema.names
        twice = sorted(
            {name for name in columns if [column.lower() for column in columns].count(name.lower()) > 1}
        )
        if twice:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: operators: expected names that no column of the source has, found {', '.join(twice)}"
            )

    def check_unchanged(self, slice_: EpochSlice) -> None:
        """Compare files with what was listed; versions do not change."""
        if not slice_.reads_nothing:
            self.epochs.check_unchanged(slice_.input)

    def count_rows(self, slice_: EpochSlice) -> int:
        """Return the number of an epoch's own rows, plus those of segments that it reads."""
        judgement = slice_.judged
        return judgement.tally.rows_in + rows_read(judgement.before, judgement.after.value)

    def fix(self, slice_: EpochSlice, base: SliceBase) -> EpochSlice:
        """Look at the epoch's input, and decide what becomes of each row and of each watermark.

        Raises:
            BadPart: some of the input cannot be read.
            ConfigurationError: a column is not there, or of a type that is no event time.
            StrandlineError: code ``late_rows``: there are late rows, and must not be; code ``buffer_full``: more rows would wait than may.
            NeedsDecision: code ``buffer_lost``: the buffer does not hold the rows that the state says.
        """
        self.check_unchanged(slice_)
        with self._blaming(base.spark, slice_, base.pinned):
            return self.judging.judge(base.spark, base.entry, slice_, base.pinned, base.now)

    def check_fixed(self, slice_: EpochSlice, base: SliceBase) -> None:
        """Raise unless the buffer still holds the rows that an epoch was fixed on: they are counted once more.

        Raises:
            BadPart: some of the input cannot be read.
            NeedsDecision: code ``buffer_lost``.
        """
        with self._blaming(base.spark, slice_, base.pinned):
            self.judging.decide(self.judging.epoch(base.spark, slice_, base.pinned))

    @contextmanager
    def _blaming(self, spark: SparkSession, slice_: EpochSlice, pinned: str) -> Iterator[None]:
        """Have an error of Spark's told as that of the part of the input that cannot be read."""
        try:
            yield
        except StrandlineError:
            raise
        except Exception as error:
            if (bad := self.bad_parts.find(spark, slice_, pinned, error)) is None:
                raise
            raise bad from error

    def read(self, spark: SparkSession, slice_: EpochSlice | None, pinned: str) -> DataFrame:
        """Return the rows that leave in an epoch, or the windows that close: in order, in disjoint parts."""
        from pyspark.sql import functions as F

        if slice_ is None:
            epoch, small = self.judging.no_epoch(spark, pinned), True
        else:
            epoch = self.judging.epoch(spark, slice_, pinned)
            small = slice_.input.bytes < _SMALL and slice_.judged.tally.emitted < _FEW
        rows = self.judging.emission.rows(epoch, small=small)
        return rows.withColumn(EPOCH, F.lit(epoch.number).cast("long"))
