"""Which rows of the table go in the commit of a slice of windows x units, and what is counted of each (docs/reference/windows.md, Target)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.loads import Append, Load, Order, OrderByColumn, Replace, ReplaceAll, load_for_target
from partitions.predicate import EVERYTHING, NOTHING, Predicate
from partitions.window.slices import WindowSlice
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.kinds.contract.writing import KeepsStats, StatsReader, WatchesRows, WriteStats, Writing
from resources.kinds.window.columns import WindowColumns
from resources.kinds.window.observed_changes import observe
from resources.watermarks.lists import SEEN_WORK_UNITS, StoredList

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class WindowWriting(Writing[WindowSlice], WatchesRows[WindowSlice], KeepsStats):
    """Loads of windows x units.

    Attributes:
        dataflow: which says how its target is loaded.
        window_columns: which columns tell a row's window and unit.
    """

    dataflow: Dataflow
    window_columns: WindowColumns

    def load(self, slice_: WindowSlice, rows: DataFrame) -> Load:
        """As the target says; exactly what was read goes if the target replaces by watermark or the slice is forced.

        A window that is loaded late leaves the rows of later times as they are; not if windows are cut otherwise now, whose starts are earlier.
        """
        if not slice_.works:
            return Append()
        order = self._order
        guard = () if slice_.old else order
        load = load_for_target(self.dataflow.target, self._replaced(slice_, rows), order, guard)
        return ReplaceAll() if load == Replace(EVERYTHING) else load

    def _replaced(self, slice_: WindowSlice, rows: DataFrame) -> Predicate:
        """The rows that the slice deletes, whatever their keys."""
        target = self.dataflow.target
        if target.load == "overwrite":
            return EVERYTHING
        if slice_.replaces or target.replace_by_watermark:
            return self.window_columns.where(slice_.works, rows, slice_.old)
        return NOTHING

    @property
    def _order(self) -> Order:
        """Later times are later; without a column with times the windows' starts are."""
        name = self.window_columns.time
        return (OrderByColumn(name),) if name else ()

    def check_rows(self, rows: DataFrame) -> None:
        """Rows must still tell their window and unit after the user's step."""
        self.window_columns.check(rows)

    def observe(self, rows: DataFrame, slice_: WindowSlice) -> tuple[DataFrame, StatsReader]:
        """Rows, and whether they changed, of each work unit."""
        return observe(
            rows, slice_.works, lambda work: predicate_sql(self.window_columns.where((work,), rows), SPARK)
        )

    def stats_to_rows(self, stats: WriteStats) -> StoredList:
        """Rows and digest of each work unit, for the simulator."""
        return StoredList(SEEN_WORK_UNITS, [[*key, *value] for key, value in stats.items()])
