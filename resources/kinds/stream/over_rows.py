"""Over-windows: rows with values of their neighbours, and the rows that later rows need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.stream.emission_rules import is_carried, leaves_over_window
from partitions.stream.operators import OverWindow
from partitions.stream.over import NUMBERING, OverCall, Reach
from partitions.stream.side_table_names import CARRY
from partitions.stream.state import Carry
from resources.kinds.stream import judged_rows as R
from resources.kinds.stream.epoch import Decision, Epoch
from resources.kinds.stream.sorted_rows import SortedRows
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec


_HAS_LEFT, _PLACE, _ALL_ROWS, _ROWS_LEFT = (
    "_strandline_has_left",
    "_strandline_place",
    "_strandline_all",
    "_strandline_left",
)
"""Helper columns: whether a row left in an earlier epoch, its place in its partition (from 1), how many
rows the partition has, and how many of them left in earlier epochs.

The first one is also stored with carried rows.
"""

_TIMES_SO_FAR = "_strandline_times"
"""Helper column: the number of distinct event times in the partition, up to the row's own."""

_NUMBERS = {name: f"_strandline_{name}" for name in NUMBERING}
"""Columns with a row's numbers, by function; they are stored with carried rows that have left."""


@dataclass(frozen=True)
class OverRows(SortedRows):
    """Rows with over-window values; each leaves once all rows that its values look ahead to are there.

    A row counts as there once it is below the global watermark. The last such rows of each partition
    are carried to the next epoch: values of later rows need them, and the numbers of rows that have
    left.

    Attributes:
        over: the operator that adds the values.
    """

    over: OverWindow

    @property
    def _calls(self) -> Mapping[str, OverCall]:
        return {name: column.call for name, column in self.over.columns.items()}

    @property
    def _reach(self) -> Reach:
        """Rows around a row that its values need; numbering continues from the row before."""
        reach = Reach.of(self._calls.values())
        has_numbering = any(call.fn in NUMBERING for call in self._calls.values())
        return Reach(reach.ahead, max(reach.behind, int(has_numbering)))

    def _ahead(self, epoch: Epoch) -> int:
        """Return how many later rows of its partition a row waits for; 0 if the epoch lets all rows out."""
        return 0 if epoch.ends else self._reach.ahead

    def decide(self, epoch: Epoch) -> Decision:
        """Return the decision about the rows, with the rows to carry."""
        from pyspark.sql import functions as F

        decision, reach, before = super().decide(epoch), self._reach, epoch.before.carry
        releases_carried = epoch.ends and before is not None and before.waiting
        if not (decision.emitted or releases_carried) or not (reach.ahead or reach.behind):
            return decision._replace(carry=before)
        groups = [F.col(quoted(name)) for name in self.over.partition_by]
        rows_by_group = self._available(epoch).groupBy(*groups)
        counts_by_group = rows_by_group.agg(
            F.count("*").alias("all"),
            F.count(F.when(F.col(_HAS_LEFT).isNotNull(), 1)).alias("old"),
            F.count(F.when(~F.coalesce(_HAS_LEFT, F.lit(False)), 1)).alias("new"),
        )
        waits = F.least("new", F.lit(self._ahead(epoch)))
        context = F.least(F.col("all") - waits, F.lit(reach.behind))
        totals = counts_by_group.agg(
            F.sum("old").alias("old"), F.sum(waits).alias("waits"), F.sum(waits + context).alias("rows")
        ).first()
        assert totals is not None
        if before is not None:
            self.buffer.check_held(CARRY, before.epoch, before.rows, totals["old"])
        waiting_before = before.waiting if before else 0
        emitted = decision.emitted + waiting_before - totals["waits"]
        return decision._replace(emitted=emitted, carry=Carry(epoch.number, totals["rows"], totals["waits"]))

    def rows(self, epoch: Epoch, *, small: bool) -> DataFrame:
        """Return the rows that leave with their values, in order, in disjoint parts."""
        from pyspark.sql import functions as F

        placed, definition = self._placed(epoch), self.dataflow.stream
        window = self._window(epoch)
        for number, call in enumerate(self._calls.values()):
            placed = placed.withColumn(f"_strandline_value_{number}", _value(call, window))
        leaving = placed.where(
            ~F.col(_HAS_LEFT) & leaves_over_window(F.col(_PLACE), F.col(_ALL_ROWS), self._ahead(epoch))
        )
        values = [F.col(f"_strandline_value_{number}").alias(name) for number, name in enumerate(self._calls)]
        emitted = leaving.select(*epoch.own, *values)
        return R.in_order(emitted, (definition.event_time, *definition.order_by), small=small)

    def carry(self, epoch: Epoch) -> DataFrame | None:
        """Return the last rows of each partition, for later rows; rows that have left have their numbers."""
        from pyspark.sql import functions as F

        reach, placed = self._reach, self._placed(epoch)
        place, rows, ahead = F.col(_PLACE), F.col(_ALL_ROWS), self._ahead(epoch)
        has_left = (place <= F.col(_ROWS_LEFT)) | leaves_over_window(place, rows, ahead)
        numbers = [F.when(has_left, F.col(name)).alias(name) for name in _NUMBERS.values()]
        carried = placed.where(is_carried(place, F.col(_ROWS_LEFT), rows, ahead, reach.behind))
        return carried.select(*epoch.own, has_left.alias(_HAS_LEFT), *numbers)

    def _available(self, epoch: Epoch) -> DataFrame:
        """Return the carried rows, and new rows below the global watermark, whose ``_HAS_LEFT`` is NULL."""
        from pyspark.sql import functions as F

        nulls = [F.lit(None).cast("long").alias(name) for name in _NUMBERS.values()]
        rows = self.below(epoch, epoch.value)
        rows = rows.select(*epoch.own, R.TIME, F.lit(None).cast("boolean").alias(_HAS_LEFT), *nulls)
        if epoch.before.carry is None:
            return rows
        carried = self.buffer.carried(epoch.spark, epoch.type_name, epoch.before.carry)
        return rows.unionByName(carried.select(*epoch.own, R.TIME, _HAS_LEFT, *_NUMBERS.values()))

    def _window(self, epoch: Epoch) -> WindowSpec:
        """Return the window of a partition's rows in event-time order.

        All columns break ties, so that each query orders rows the same way.
        """
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        schema, order_by = epoch.judged.schema, self.dataflow.stream.order_by
        ties: list[Any] = [F.col(quoted(name)).asc_nulls_first() for name in order_by]
        for name in epoch.columns:
            data_type = schema[name].dataType.typeName()
            column = F.col(quoted(name))
            is_nested = data_type in ("array", "map", "struct", "variant")
            ties.append(F.to_json(F.struct(column)) if is_nested else column)
        groups = [F.col(quoted(name)) for name in self.over.partition_by]
        return Window.partitionBy(*groups).orderBy(R.TIME, *ties)

    def _placed(self, epoch: Epoch) -> DataFrame:
        """Return the available rows with place and numbers, and the row counts of their partition."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        groups = [F.col(quoted(name)) for name in self.over.partition_by]
        partition, window = Window.partitionBy(*groups), self._window(epoch)
        tied = Window.partitionBy(*groups, R.TIME)
        number, rank, dense = (F.col(_NUMBERS[name]) for name in NUMBERING)
        has_left = F.coalesce(F.col(_HAS_LEFT), F.lit(False))
        rows = self._available(epoch).withColumn(_HAS_LEFT, has_left)
        rows = rows.withColumn(_PLACE, F.row_number().over(window).cast("long"))
        rows = rows.withColumn(_ALL_ROWS, F.count("*").over(partition))
        rows = rows.withColumn(_ROWS_LEFT, F.count(F.when(F.col(_HAS_LEFT), 1)).over(partition))
        last_number = F.coalesce(F.max(number).over(partition), F.lit(0))
        rows = rows.withColumn(_NUMBERS["row_number"], last_number + F.col(_PLACE) - F.col(_ROWS_LEFT))
        # Rows of one event time share a rank: the rank of those that have left, else the number of the first.
        shared_rank = F.coalesce(F.max(rank).over(tied), F.min(number).over(tied))
        rows = rows.withColumn(_NUMBERS["rank"], shared_rank)
        times = F.dense_rank().over(Window.partitionBy(*groups).orderBy(R.TIME)).cast("long")
        rows = rows.withColumn(_TIMES_SO_FAR, times)
        highest_dense_rank = F.coalesce(F.max(dense).over(partition), F.lit(0))
        times_left = F.coalesce(
            F.max(F.when(F.col(_HAS_LEFT), F.col(_TIMES_SO_FAR))).over(partition), F.lit(0)
        )
        return rows.withColumn(_NUMBERS["dense_rank"], highest_dense_rank + F.col(_TIMES_SO_FAR) - times_left)


def _value(call: OverCall, window: WindowSpec) -> Column:
    """Return the column that computes one value of a row."""
    from pyspark.sql import functions as F

    if call.fn in NUMBERING:
        return F.col(_NUMBERS[call.fn])
    column = F.col(quoted(call.column))
    match call.fn:
        case "lag":
            return F.lag(column, call.offset).over(window)
        case "lead":
            return F.lead(column, call.offset).over(window)
        case "max":
            return F.max(column).over(window.rowsBetween(*call.frame))
    return F.sum(column).over(window.rowsBetween(*call.frame))
