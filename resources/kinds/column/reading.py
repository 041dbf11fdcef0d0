"""The rows of exactly the bounds of a slice, with the columns that the source tells (docs/reference/columns.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from partitions.column.predicates import ColumnRange, cut_range
from partitions.column.slices import ColumnSlice
from partitions.column.state import ColumnState, ReadBound
from partitions.dataflow import Dataflow
from partitions.errors import SourceError
from partitions.loads import LackingColumn
from partitions.predicate import Predicate
from resources.kinds.contract import reading as contract
from resources.kinds.contract.reading import Reading, SliceBase
from resources.sources.source import FetchesRows, HasRemarks, PinsRows, ReadsAbove, TellsLacking, at_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class ColumnReading(Reading[ColumnSlice], contract.ReportsMissingColumns[ColumnSlice]):
    """Reads rows above a watermark.

    Attributes:
        dataflow: what the user declared.
        rows: its source.
        above: the same source, as rows above a watermark are read from it.
    """

    same_query_for_all_slices: ClassVar[bool] = False
    """Bounds stand in the query."""

    dataflow: Dataflow
    rows: PinsRows
    above: ReadsAbove

    @property
    def warnings(self) -> Sequence[str]:
        """What the source has to say; the plan says the rest."""
        return self.rows.remarks if isinstance(self.rows, HasRemarks) else ()

    @override
    def pin(self, spark: SparkSession, pending: Sequence[ColumnSlice]) -> str | None:
        """What the source says of its columns."""
        return self.rows.pin(spark)

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Compare the source's columns with what was pinned."""
        self.rows.check_schema(spark, pinned, self.dataflow.name)

    @override
    def fix(self, slice_: ColumnSlice, base: SliceBase) -> ColumnSlice:
        """The bounds are fixed with the plan, and so is the version; but for columns of which only the fetched rows tell how far they go.

        Raises:
            SourceError: the source refuses, or does not answer; or no row has a value any more, so that no state would tell that those
                without one were read.
        """
        open_ = [
            range_.column for range_ in slice_.ranges if range_.upper is None or self._saves_bound_of(slice_)
        ]
        if not open_ or not isinstance(self.above, FetchesRows):
            return slice_
        highest = self.above.fetched_up_to(slice_.rows_to_fetch, open_)
        before = ColumnState.of(slice_.before)
        fixed = tuple(
            _up_to(range_, highest[range_.column], before.bounds.get(range_.column))
            if range_.column in highest
            else range_
            for range_ in slice_.ranges
        )
        if not any(range_.is_bounded for range_ in fixed):
            raise SourceError(
                f"dataflow {self.dataflow.name}: expected a row with a value in {', '.join(self.dataflow.column.columns)}, as a look has found just"
                " before, found none any more. Nothing was begun; the next run looks again"
            )
        return replace(slice_, ranges=fixed)

    def _saves_bound_of(self, slice_: ColumnSlice) -> bool:
        """Whether the bounds of a slice become the watermark only because a step of the user follows: not those that the source was told."""
        is_due = slice_.why == "run" and not slice_.replaces
        return is_due and self.dataflow.has_step and not self.dataflow.source.incremental_support.saves_bound

    def read(self, spark: SparkSession, slice_: ColumnSlice | None, pinned: str) -> DataFrame:
        """The rows between the bounds, in parts of about the same size; of those that replace others, with all that are deleted."""
        parts = _parts(slice_) if slice_ is not None else ()
        return at_version(self.above, slice_.version if slice_ else None).read_rows(spark, parts, pinned)

    @override
    def missing_columns(
        self, spark: SparkSession, slice_: ColumnSlice, pinned: str
    ) -> Sequence[LackingColumn]:
        """Return what the source tells of the rows that were read last."""
        return self.rows.lacking(spark, pinned) if isinstance(self.rows, TellsLacking) else ()


def _parts(slice_: ColumnSlice) -> Sequence[Predicate]:
    """The rows of a slice, cut where the plan says; those without a value go with the first part."""
    if not slice_.cuts:
        return (slice_.rows,)
    (range_,) = slice_.ranges
    first, *others = cut_range(range_, slice_.cuts)
    return (replace(slice_, ranges=(first,)).rows, *(part.rows for part in others))


def _up_to(range_: ColumnRange, highest: Any, stored: ReadBound | None) -> ColumnRange:
    """The range up to the highest value that was fetched; of one that has a bound the lower of both, and never below what is stored."""
    if range_.upper is None:
        return range_.up_to(highest)
    reached = ReadBound(highest) if highest is not None else stored
    if stored is not None and reached is not None and stored.covers(reached):
        reached = stored
    if reached is None or reached.covers(ReadBound(range_.upper, range_.upper_inclusive)):
        return range_
    return replace(range_, upper=reached.value, upper_inclusive=reached.inclusive)
