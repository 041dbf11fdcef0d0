"""Reading of the rows between a slice's bounds, with the source's columns.

See docs/reference/columns.md.
"""

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
from partitions.predicate import EVERYTHING, Predicate
from partitions.reconcile.repair import RepairedKeys
from resources.kinds.contract import reading as contract
from resources.kinds.contract.reading import Reading, SliceBase
from resources.sources.source import (
    AnswersSql,
    FetchesRows,
    HasRemarks,
    PinsRows,
    ReadsAbove,
    TellsLacking,
    at_version,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class ColumnReading(Reading[ColumnSlice], contract.ReportsMissingColumns[ColumnSlice]):
    """Reader of rows above a watermark.

    Attributes:
        dataflow: the definition.
        rows: the source.
        above: the same source, as a reader of rows above a watermark.
    """

    same_query_for_all_slices: ClassVar[bool] = False
    """Bounds stand in the query."""

    dataflow: Dataflow
    rows: PinsRows
    above: ReadsAbove

    @property
    def warnings(self) -> Sequence[str]:
        """The source's warnings; the plan has the others."""
        return self.rows.remarks if isinstance(self.rows, HasRemarks) else ()

    @override
    def pin(self, spark: SparkSession, pending: Sequence[ColumnSlice]) -> str | None:
        """Return the source's columns."""
        return self.rows.pin(spark)

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Compare the source's columns with the pinned ones."""
        self.rows.check_schema(spark, pinned, self.dataflow.name)

    @override
    def fix(self, slice_: ColumnSlice, base: SliceBase) -> ColumnSlice:
        """Return the slice with bounds for columns whose highest values only the fetched rows show.

        The plan has fixed all other bounds, and the version.

        Raises:
            SourceError: the source refuses, or does not answer; or no row has a value any more, so that no
                state would record that rows without a value were read.
        """
        unbounded = [
            range_.column for range_ in slice_.ranges if range_.upper is None or self._saves_bound_of(slice_)
        ]
        if not unbounded or not isinstance(self.above, FetchesRows):
            return slice_
        highest = self.above.fetched_up_to(slice_.rows_to_fetch, unbounded)
        before = ColumnState.of(slice_.before)
        fixed = tuple(
            _up_to(range_, highest[range_.column], before.bounds.get(range_.column))
            if range_.column in highest
            else range_
            for range_ in slice_.ranges
        )
        if not any(range_.is_bounded for range_ in fixed):
            raise SourceError(
                f"dataflow {self.dataflow.name}: expected a row with a value in "
                f"{', '.join(self.dataflow.column.columns)}, as when the run was planned, found none. The "
                "run stopped before it changed anything; the next run looks again"
            )
        return replace(slice_, ranges=fixed)

    def _saves_bound_of(self, slice_: ColumnSlice) -> bool:
        """Return whether a slice's bounds become the watermark only because a step of the user follows."""
        is_due = slice_.why == "run" and not slice_.replaces
        return is_due and self.dataflow.has_step and not self.dataflow.source.incremental_support.saves_bound

    def read(self, spark: SparkSession, slice_: ColumnSlice | None, pinned: str) -> DataFrame:
        """Return the rows between the bounds, in parts of similar size.

        A replacing slice reads all rows that it deletes.
        """
        parts = self._parts(slice_) if slice_ is not None else ()
        return at_version(self.above, slice_.version if slice_ else None).read_rows(spark, parts, pinned)

    def _parts(self, slice_: ColumnSlice) -> Sequence[Predicate]:
        repairs = slice_.repairs
        if repairs is None:
            return _parts(slice_)
        if isinstance(repairs, RepairedKeys) and not isinstance(self.above, AnswersSql):
            # Each part of such a source may be a scan; the repair leaves other rows out.
            return repairs.rows_to_read if len(repairs.rows_to_read) == 1 else (EVERYTHING,)
        return repairs.rows_to_read

    @override
    def missing_columns(
        self, spark: SparkSession, slice_: ColumnSlice, pinned: str
    ) -> Sequence[LackingColumn]:
        """Return the pinned columns that the rows read last lacked."""
        return self.rows.lacking(spark, pinned) if isinstance(self.rows, TellsLacking) else ()


def _parts(slice_: ColumnSlice) -> Sequence[Predicate]:
    """Return the rows of a slice, cut as planned; rows without a value belong to the first part."""
    if not slice_.cuts:
        return (slice_.rows,)
    (range_,) = slice_.ranges
    first, *others = cut_range(range_, slice_.cuts)
    return (replace(slice_, ranges=(first,)).rows, *(part.rows for part in others))


def _up_to(range_: ColumnRange, highest: Any, stored: ReadBound | None) -> ColumnRange:
    """Return the range up to the highest fetched value, at most its bound.

    It never ends below the stored value.
    """
    if range_.upper is None:
        return range_.up_to(highest)
    reached = ReadBound(highest) if highest is not None else stored
    if stored is not None and reached is not None and stored.covers(reached):
        reached = stored
    if reached is None or reached.covers(ReadBound(range_.upper, range_.upper_inclusive)):
        return range_
    return replace(range_, upper=reached.value, upper_inclusive=reached.inclusive)
