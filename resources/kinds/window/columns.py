"""Which columns tell a row's window and unit, in the source and in the target (docs/reference/windows.md, Target)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.loads import OrderByColumn
from partitions.predicate import EVERYTHING, Predicate
from partitions.window.predicates import tagged_rows_predicate
from partitions.window.work_unit import OldWindow, WorkUnit, extents
from resources.sources.conditions import table_rows
from resources.sources.source import NUMBER
from resources.tables.rows.deduplicate import latest_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

WINDOW_START = "_window_start"
"""A column of targets whose rows do not tell their window themselves: its start."""

UNIT = "_unit"
"""And their unit: its identity."""


@dataclass(frozen=True)
class WindowColumns:
    """Where a row's window and unit stand.

    Attributes:
        dataflow: whose rows.
        window: the column with a row's time; None if there is no time dimension, or no column tells it.
        units: the names of a unit's values to the columns that hold them.
        tagged: whether rows carry ``_window_start`` and ``_unit``, since no column of the source tells both.
    """

    dataflow: Dataflow
    window: str | None
    units: dict[str, str]
    tagged: bool

    @classmethod
    def of(cls, dataflow: Dataflow) -> WindowColumns:
        """What the source says of its columns."""
        columns = dataflow.source.row_columns
        return cls(dataflow, columns.window, dict(columns.units), dataflow.tagged)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that a target's rows must have."""
        if self.tagged:
            return WINDOW_START, UNIT
        return tuple(dict.fromkeys([*([self.window] if self.window else []), *self.units.values()]))

    @property
    def time(self) -> str | None:
        """The column that tells which of two rows is later; None if there is none."""
        return self.window or (WINDOW_START if self.tagged else None)

    def tag(self, df: DataFrame, work: WorkUnit | None) -> DataFrame:
        """Rows of one work unit, with what tells it; without one there are no rows, of the same columns."""
        from pyspark.sql import functions as F

        # Of a datetime pyspark asks the process's first session for its type, and a server may have forgotten that one.
        start = F.timestamp_millis(F.lit(work.start if work else None).cast("long"))
        return df.withColumn(WINDOW_START, start).withColumn(
            UNIT, F.lit(work.unit if work else None).cast("string")
        )

    def tagging(self, columns: StructType) -> StructType:
        """Return the columns of rows after :meth:`tag`."""
        from pyspark.sql.types import StringType, StructType, TimestampType

        return StructType(list(columns)).add(WINDOW_START, TimestampType()).add(UNIT, StringType())

    def tag_numbered(self, df: DataFrame, works: Sequence[WorkUnit]) -> DataFrame:
        """Rows that have the number of their work unit, with what tells it instead."""
        from pyspark.sql import functions as F

        number = F.col(NUMBER)
        starts = F.array(*[F.lit(work.start).cast("long") for work in works])
        units = F.array(*[F.lit(work.unit) for work in works])
        tagged = df.withColumns(
            {WINDOW_START: F.timestamp_millis(F.get(starts, number)), UNIT: F.get(units, number)}
        )
        return tagged.drop(NUMBER)

    def check(self, df: DataFrame) -> None:
        """Rows must tell their window and unit after the user's step, too.

        Raises:
            ConfigurationError: code ``query``.
        """
        known = set(df.columns)
        missing = [name for name in self.names if name not in known]
        if missing:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: expected rows with the columns {', '.join(self.names)}, by which a window is replaced; after"
                f" `{'sql' if self.dataflow.sql else 'transform'}` there are {', '.join(df.columns)}. Keep {', '.join(missing)}",
                code="query",
            )

    def latest(self, df: DataFrame) -> DataFrame:
        """Of rows with the same keys the latest: the one of the highest time, and of these always the same."""
        target = self.dataflow.target
        if not (target.merge_keys and target.replace_by_watermark):
            return df
        return latest_rows(df, target.merge_keys, (OrderByColumn(self.window),) if self.window else ())

    def where(self, works: Sequence[WorkUnit], df: DataFrame, old: Sequence[OldWindow] = ()) -> Predicate:
        """Return what was read of these work units, over the target's columns; everything if no column tells a row's window or unit.

        Args:
            works: what was read.
            df: rows with these columns.
            old: windows as they were cut before, whose rows are meant, too.
        """
        if self.tagged:
            keys = [(work.unit, work.start) for work in works] + [(work.unit, work.start) for work in old]
            return tagged_rows_predicate(dict.fromkeys(keys), start_column=WINDOW_START, unit_column=UNIT)
        if not self.names:
            return EVERYTHING
        zone = self.dataflow.window.zone
        return table_rows(extents(works), df.schema, window=self.window, units=self.units, zone=zone)
