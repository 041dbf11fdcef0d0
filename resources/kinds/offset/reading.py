"""Read the rows of commits, or of the files of a first read, with the table's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from partitions.offset.slices import OffsetSlice
from resources.kinds.contract.reading import Reading, SliceBase
from resources.kinds.offset.change_rows import check_change_columns
from resources.kinds.offset.past_commits import gone_for_replay
from resources.kinds.offset.source_log import SourceLog
from resources.sources.schema import pinned_struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class OffsetReading(Reading[OffsetSlice]):
    """Reader of a table's commits.

    Attributes:
        dataflow: the definition.
        log: the table's log.
    """

    same_query_for_all_slices: ClassVar[bool] = False
    """The queries name the versions."""

    dataflow: Dataflow
    log: SourceLog

    @property
    @override
    def warnings(self) -> Sequence[str]:
        """No warnings: the plan has them all."""
        return ()

    @override
    def pin(self, spark: SparkSession, pending: Sequence[OffsetSlice]) -> str | None:
        """Return the table's columns as text.

        Raises:
            ConfigurationError: some have the names of the columns of changes, and the load needs these.
        """
        pinned = self.log.rows.pin(spark)
        check_change_columns(self.dataflow, pinned_struct(pinned).names, of_step=False)
        return pinned

    @override
    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Raise SchemaError if the table's columns do not match the pinned ones."""
        self.log.rows.check_schema(spark, pinned, self.dataflow.name)

    @override
    def fix(self, slice_: OffsetSlice, base: SliceBase) -> OffsetSlice:
        """Return the slice: its commits never change.

        Raises:
            NeedsDecision: code ``versions_gone``: files of them were cleaned before they were read.
        """
        try:
            self.log.check_files(slice_.input)
        except NeedsDecision as error:
            if slice_.why == "replay":
                raise gone_for_replay(self.log, slice_.input.words) from error
            raise
        return slice_

    @override
    def read(self, spark: SparkSession, slice_: OffsetSlice | None, pinned: str) -> DataFrame:
        """Return the slice's rows; without a slice, no rows with the same schema."""
        return self.log.read(spark, slice_, pinned)
