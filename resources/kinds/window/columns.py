"""The columns that tell a row's window and unit, in source and target.

See docs/reference/windows.md, Target.
"""

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
"""The column with the start of a row's window, in targets whose rows do not tell it."""

UNIT = "_unit"
"""The column with the identity of a row's unit, in the same targets."""


@dataclass(frozen=True)
class WindowColumns:
    """The columns of a row's window and unit.

    Attributes:
        dataflow: the definition.
        window: the column with a row's time; None without windows of time, or if no column tells it.
        units: the names of a unit's values, with their columns.
        tagged: whether rows carry ``_window_start`` and ``_unit``, since the source has no columns for
            both.
    """

    dataflow: Dataflow
    window: str | None
    units: dict[str, str]
    tagged: bool

    @classmethod
    def of(cls, dataflow: Dataflow) -> WindowColumns:
        """Return the columns that the source declares."""
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
        """The column by which a row is later than another; None if there is none."""
        return self.window or (WINDOW_START if self.tagged else None)

    def tag(self, df: DataFrame, work: WorkUnit | None) -> DataFrame:
        """Add the columns of one work unit to its rows; None: to an empty frame."""
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
        """Replace the number of each row's work unit by the unit's columns."""
        from pyspark.sql import functions as F

        number = F.col(NUMBER)
        starts = F.array(*[F.lit(work.start).cast("long") for work in works])
        units = F.array(*[F.lit(work.unit) for work in works])
        tagged = df.withColumns(
            {WINDOW_START: F.timestamp_millis(F.get(starts, number)), UNIT: F.get(units, number)}
        )
        return tagged.drop(NUMBER)

    def check(self, df: DataFrame) -> None:
        """Raise if the rows lack a window or unit column after the user's step.

        Raises:
            ConfigurationError: code ``query``.
        """
        columns = set(df.columns)
        missing = [name for name in self.names if name not in columns]
        if missing:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: expected rows with the columns {', '.join(self.names)}, "
                f"which identify the rows of a window; after `{'sql' if self.dataflow.sql else 'transform'}` "
                f"the columns are {', '.join(df.columns)}. Keep {', '.join(missing)}",
                code="query",
            )

    def latest(self, df: DataFrame) -> DataFrame:
        """Keep the latest of the rows with the same keys, by time; ties are broken the same way each time."""
        target = self.dataflow.target
        if not (target.merge_keys and target.replace_by_watermark):
            return df
        return latest_rows(df, target.merge_keys, (OrderByColumn(self.window),) if self.window else ())

    def where(self, works: Sequence[WorkUnit], df: DataFrame, old: Sequence[OldWindow] = ()) -> Predicate:
        """Return the predicate of these work units' rows; everything if no column tells window or unit.

        Args:
            works: the work units whose rows match.
            df: rows with these columns.
            old: windows of an earlier cut, whose rows also match.
        """
        if self.tagged:
            keys = [(work.unit, work.start) for work in works] + [(work.unit, work.start) for work in old]
            return tagged_rows_predicate(dict.fromkeys(keys), start_column=WINDOW_START, unit_column=UNIT)
        if not self.names:
            return EVERYTHING
        zone = self.dataflow.window.zone
        return table_rows(extents(works), df.schema, window=self.window, units=self.units, zone=zone)
