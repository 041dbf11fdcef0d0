"""What the commit of a slice of windows x units deletes, and the rows that it counts.

See docs/reference/windows.md, Target.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.instants import as_datetime
from partitions.loads import Append, Load, Order, OrderByColumn, Replace, ReplaceAll, load_for_target
from partitions.predicate import EVERYTHING, NOTHING, Predicate
from partitions.sentinels import Watermark
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.kinds.contract.writing import (
    KeepsStats,
    ReadsWhole,
    StatsReader,
    WatchesRows,
    WriteStats,
    Writing,
)
from resources.kinds.window.columns import WindowColumns
from resources.kinds.window.work_unit_stats import observe
from resources.watermarks.lists import SEEN_WORK_UNITS, StoredList

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class WindowWriting(Writing[WindowSlice], WatchesRows[WindowSlice], KeepsStats, ReadsWhole[WindowSlice]):
    """Loads of windows x units.

    Attributes:
        dataflow: the definition, which says how its target is loaded.
        window_columns: the columns that tell a row's window and unit.
    """

    dataflow: Dataflow
    window_columns: WindowColumns

    def load(self, slice_: WindowSlice, rows: DataFrame) -> Load:
        """Return the target's load; if the slice replaces its windows, the load deletes their rows.

        A forced slice does, and a slice of a target with ``replace_by_watermark``. Rows of the table with
        a later time stay, unless the slice replaces windows of an earlier cut, whose starts are earlier.
        """
        if not slice_.works:
            return Append()
        order = self._order
        guard = () if slice_.old else order
        load = load_for_target(self.dataflow.target, self._replaced(slice_, rows), order, guard)
        return ReplaceAll() if load == Replace(EVERYTHING) else load

    @override
    def load_of_rejected(self) -> Load:
        """Return the target's load; a row of a later time stays."""
        return load_for_target(self.dataflow.target, NOTHING, self._order)

    @override
    def own_rows(self, slice_: WindowSlice, rows: DataFrame) -> Predicate:
        """Return the rows of the slice's windows; all rows if the windows are all that the table has."""
        if not slice_.works:
            return NOTHING
        if self.dataflow.target.load == "overwrite":
            return EVERYTHING
        return self.window_columns.where(slice_.works, rows, slice_.old)

    def _replaced(self, slice_: WindowSlice, rows: DataFrame) -> Predicate:
        """Return the rows that the slice deletes, whatever their keys."""
        target = self.dataflow.target
        if target.load == "overwrite":
            return EVERYTHING
        if slice_.replaces or target.replace_by_watermark:
            return self.window_columns.where(slice_.works, rows, slice_.old)
        return NOTHING

    @property
    def _order(self) -> Order:
        """The order of rows: by the time column, else by the windows' starts."""
        name = self.window_columns.time
        return (OrderByColumn(name),) if name else ()

    @override
    def is_superseded(self, slice_: WindowSlice, watermark: Watermark) -> bool:
        """Return whether a window that ends later than the slice's is loaded."""
        return slice_.is_superseded(WindowState.of(watermark).highest)

    @override
    def start_of(self, slice_: WindowSlice) -> datetime | None:
        """Return the start of the slice's last window; None without windows of time."""
        starts = [work.start for work in slice_.works if work.start is not None]
        return as_datetime(max(starts)) if starts else None

    def check_rows(self, rows: DataFrame) -> None:
        """Raise if the rows lack a window or unit column after the user's step."""
        self.window_columns.check(rows)

    def observe(self, rows: DataFrame, slice_: WindowSlice) -> tuple[DataFrame, StatsReader]:
        """Observe the number and the digest of each work unit's rows."""
        return observe(
            rows, slice_.works, lambda work: predicate_sql(self.window_columns.where((work,), rows), SPARK)
        )

    def stats_to_rows(self, stats: WriteStats) -> StoredList:
        """Return rows and digest of each work unit, for the simulator."""
        return StoredList(SEEN_WORK_UNITS, [[*key, *value] for key, value in stats.items()])
