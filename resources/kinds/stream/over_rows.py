"""Over-windows: rows with values of the rows around them, and the rows that later ones need."""

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


_HAS_LEFT, _PLACE, _ALL, _LEFT = (
    "_strandline_has_left",
    "_strandline_place",
    "_strandline_all",
    "_strandline_left",
)
_TIMES_SO_FAR = "_strandline_times"
_NUMBERS = {name: f"_strandline_{name}" for name in NUMBERING}
"""Columns of carried rows: whether the row has left, and its numbers if it has."""


@dataclass(frozen=True)
class OverRows(SortedRows):
    """Return each row once, with its values, when all rows that it looks ahead to are complete.

    What later rows need of those below the global watermark is carried: the last rows of each partition,
    and their numbers.

    Attributes:
        over: the values.
    """

    over: OverWindow

    @property
    def _calls(self) -> Mapping[str, OverCall]:
        return {name: column.call for name, column in self.over.columns.items()}

    @property
    def _reach(self) -> Reach:
        reach = Reach.of(self._calls.values())
        numbers = any(call.fn in NUMBERING for call in self._calls.values())
        return Reach(reach.ahead, max(reach.behind, int(numbers)))

    def _ahead(self, epoch: Epoch) -> int:
        """Return how many rows a row waits for; none if no more rows follow."""
        return 0 if epoch.ends else self._reach.ahead

    def decide(self, epoch: Epoch) -> Decision:
        """Return what becomes of the rows."""
        from pyspark.sql import functions as F

        decision, reach, before = super().decide(epoch), self._reach, epoch.before.carry
        leave_now = epoch.ends and before is not None and before.waiting
        if not (decision.emitted or leave_now) or not (reach.ahead or reach.behind):
            return decision._replace(carry=before)
        groups = [F.col(quoted(name)) for name in self.over.partition_by]
        groups_of_rows = self._available(epoch).groupBy(*groups)
        counts_by_group = groups_of_rows.agg(
            F.count("*").alias("all"),
            F.count(F.when(F.col(_HAS_LEFT).isNotNull(), 1)).alias("old"),
            F.count(F.when(~F.coalesce(_HAS_LEFT, F.lit(False)), 1)).alias("new"),
        )
        waits = F.least("new", F.lit(self._ahead(epoch)))
        context = F.least(F.col("all") - waits, F.lit(reach.behind))
        row = counts_by_group.agg(
            F.sum("old").alias("old"), F.sum(waits).alias("waits"), F.sum(waits + context).alias("rows")
        ).first()
        assert row is not None
        if before is not None:
            self.buffer.check_held(CARRY, before.epoch, before.rows, row["old"])
        waited = before.waiting if before else 0
        emitted = decision.emitted + waited - row["waits"]
        return decision._replace(emitted=emitted, carry=Carry(epoch.number, row["rows"], row["waits"]))

    def rows(self, epoch: Epoch, *, small: bool) -> DataFrame:
        """Return the rows that leave, with their values."""
        from pyspark.sql import functions as F

        placed, definition = self._placed(epoch), self.dataflow.stream
        within = self._within(epoch)
        for number, call in enumerate(self._calls.values()):
            placed = placed.withColumn(f"_strandline_value_{number}", _value(call, within))
        leaving = placed.where(
            ~F.col(_HAS_LEFT) & leaves_over_window(F.col(_PLACE), F.col(_ALL), self._ahead(epoch))
        )
        values = [F.col(f"_strandline_value_{number}").alias(name) for number, name in enumerate(self._calls)]
        out = leaving.select(*epoch.own, *values)
        return R.in_order(out, (definition.event_time, *definition.order_by), small=small)

    def carry(self, epoch: Epoch) -> DataFrame | None:
        """Return the last rows of each partition, with the numbers of those that have left."""
        from pyspark.sql import functions as F

        reach, placed = self._reach, self._placed(epoch)
        place, rows, ahead = F.col(_PLACE), F.col(_ALL), self._ahead(epoch)
        has_left = (place <= F.col(_LEFT)) | leaves_over_window(place, rows, ahead)
        numbers = [F.when(has_left, F.col(name)).alias(name) for name in _NUMBERS.values()]
        carried = placed.where(is_carried(place, F.col(_LEFT), rows, ahead, reach.behind))
        return carried.select(*epoch.own, has_left.alias(_HAS_LEFT), *numbers)

    def _available(self, epoch: Epoch) -> DataFrame:
        """Carried rows, and those that came below the global watermark: their ``_HAS_LEFT`` is NULL."""
        from pyspark.sql import functions as F

        nulls = [F.lit(None).cast("long").alias(name) for name in _NUMBERS.values()]
        rows = self.below(epoch, epoch.value)
        rows = rows.select(*epoch.own, R.TIME, F.lit(None).cast("boolean").alias(_HAS_LEFT), *nulls)
        if epoch.before.carry is None:
            return rows
        carried = self.buffer.carried(epoch.spark, epoch.type_name, epoch.before.carry)
        return rows.unionByName(carried.select(*epoch.own, R.TIME, _HAS_LEFT, *_NUMBERS.values()))

    def _within(self, epoch: Epoch) -> WindowSpec:
        """Return the rows of a partition in order; ties are broken by all columns, the same way each time."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        schema, ties = epoch.judged.schema, list[Any]()
        order_by = self.dataflow.stream.order_by
        ties += [F.col(quoted(name)).asc_nulls_first() for name in order_by]
        for name in epoch.columns:
            kind = schema[name].dataType.typeName()
            column = F.col(quoted(name))
            ties.append(
                F.to_json(F.struct(column)) if kind in ("array", "map", "struct", "variant") else column
            )
        groups = [F.col(quoted(name)) for name in self.over.partition_by]
        return Window.partitionBy(*groups).orderBy(R.TIME, *ties)

    def _placed(self, epoch: Epoch) -> DataFrame:
        """Return available rows with their place in the partition, and the partition's row counts."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        groups = [F.col(quoted(name)) for name in self.over.partition_by]
        whole, within = Window.partitionBy(*groups), self._within(epoch)
        tied = Window.partitionBy(*groups, R.TIME)
        number, rank, dense = (F.col(_NUMBERS[name]) for name in NUMBERING)
        has_left = F.coalesce(F.col(_HAS_LEFT), F.lit(False))
        rows = self._available(epoch).withColumn(_HAS_LEFT, has_left)
        rows = rows.withColumn(_PLACE, F.row_number().over(within).cast("long"))
        rows = rows.withColumn(_ALL, F.count("*").over(whole))
        rows = rows.withColumn(_LEFT, F.count(F.when(F.col(_HAS_LEFT), 1)).over(whole))
        base = F.coalesce(F.max(number).over(whole), F.lit(0))
        rows = rows.withColumn(_NUMBERS["row_number"], base + F.col(_PLACE) - F.col(_LEFT))
        first = F.coalesce(F.max(rank).over(tied), F.min(number).over(tied))
        rows = rows.withColumn(_NUMBERS["rank"], first)
        times = F.dense_rank().over(Window.partitionBy(*groups).orderBy(R.TIME)).cast("long")
        rows = rows.withColumn(_TIMES_SO_FAR, times)
        highest_dense_rank = F.coalesce(F.max(dense).over(whole), F.lit(0))
        passed = F.coalesce(F.max(F.when(F.col(_HAS_LEFT), F.col(_TIMES_SO_FAR))).over(whole), F.lit(0))
        return rows.withColumn(_NUMBERS["dense_rank"], highest_dense_rank + F.col(_TIMES_SO_FAR) - passed)


def _value(call: OverCall, within: WindowSpec) -> Column:
    from pyspark.sql import functions as F

    if call.fn in NUMBERING:
        return F.col(_NUMBERS[call.fn])
    column = F.col(quoted(call.column))
    match call.fn:
        case "lag":
            return F.lag(column, call.offset).over(within)
        case "lead":
            return F.lead(column, call.offset).over(within)
        case "max":
            return F.max(column).over(within.rowsBetween(*call.frame))
    return F.sum(column).over(within.rowsBetween(*call.frame))
