"""What the commit of a slice above columns does: rows deleted, and the state after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from partitions.column.definition import ColumnWatermark
from partitions.column.slices import ColumnSlice
from partitions.column.state import ColumnState, next_state
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.loads import Load, OrderByColumn, ReplaceKeys, load_for_target
from partitions.predicate import NOTHING, Predicate
from partitions.reconcile.repair import RepairedKeys
from partitions.replay.chunk_slice import later_rows
from partitions.sentinels import deserialise, serialise
from resources.kinds.column.look import deletes, rows_above
from resources.kinds.column.repaired_rows import load_of_repair, rows_of_keys
from resources.kinds.contract.writing import (
    ROWS,
    RepairsKeys,
    SavesHighest,
    StatsReader,
    WatchesRows,
    WriteStats,
    Writing,
)
from resources.observation import observed_values
from resources.sources.highest import as_value, highest_value
from resources.spark.frames import observed_rows
from resources.sql import quoted
from resources.watermarks.entry import Intent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from resources.tables.contract.table import Table


WITHOUT = ""
"""The key of the statistics of rows without a value; no column has this name."""


@dataclass(frozen=True)
class ColumnWriting(Writing[ColumnSlice], WatchesRows[ColumnSlice], RepairsKeys[ColumnSlice], SavesHighest):
    """Loads of rows above a watermark.

    Attributes:
        dataflow: the definition, which says how its target is loaded.
    """

    dataflow: Dataflow

    @property
    def _definition(self) -> ColumnWatermark:
        return self.dataflow.column

    @override
    def load(self, slice_: ColumnSlice, rows: DataFrame) -> Load:
        """Return the target's load; it also deletes the slice's range if the slice replaces it.

        A slice does after a rewind or replay with ``--replace``, and for a target with
        ``replace_by_watermark``.
        """
        order = tuple(OrderByColumn(name) for name in self._definition.columns)
        if slice_.repairs is not None:
            return load_of_repair(self.dataflow.target, slice_.repairs, order)
        again = slice_.why == "replay"  # what runs have loaded since is later
        load = load_for_target(
            self.dataflow.target, self._replaced(slice_), order, guard=order if again else ()
        )
        return replace(load, later=later_rows(slice_)) if again and isinstance(load, ReplaceKeys) else load

    @override
    def load_of_rejected(self) -> Load:
        """Return the target's load; a row of a higher value stays."""
        order = tuple(OrderByColumn(name) for name in self._definition.columns)
        return load_for_target(self.dataflow.target, NOTHING, order)

    @override
    def own_rows(self, slice_: ColumnSlice, rows: DataFrame) -> Predicate:
        """Return the rows of the slice's range, which a look-back or a replay reads again."""
        return slice_.rows

    def _replaced(self, slice_: ColumnSlice) -> Predicate:
        """Return the rows that the slice deletes, whatever their keys."""
        if not deletes(slice_, self.dataflow.target):
            return NOTHING
        return slice_.rows if slice_.replaces else slice_.rows_with_value

    def check_rows(self, rows: DataFrame) -> None:
        """Raise if the rows lack a watermark column after the user's step.

        Raises:
            ConfigurationError: code ``query``.
        """
        missing = [name for name in self._definition.columns if name not in rows.columns]
        if missing:
            step = "transform" if self.dataflow.transform else "sql" if self.dataflow.sql else None
            after = f"; after `{step}` the columns" if step else "; the columns"
            remedy = "Keep" if step else "Correct watermark.columns:"
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: expected rows with the watermark's columns {', '.join(self._definition.columns)}{after}"
                f" are {', '.join(rows.columns)}. {remedy} {', '.join(missing)}",
                code="query",
            )

    @override
    def repaired_rows(self, rows: DataFrame, slice_: ColumnSlice, intent: Intent, table: Table) -> DataFrame:
        """Return the rows of a repair's keys as its load takes them."""
        if not isinstance(slice_.repairs, RepairedKeys):
            return rows
        state = ColumnState.of(deserialise(intent.before))
        return rows_of_keys(
            self.dataflow, rows, slice_.repairs, state, self.load(slice_, rows), intent, table
        )

    @override
    def observe(self, rows: DataFrame, slice_: ColumnSlice) -> tuple[DataFrame, StatsReader]:
        """Observe the highest value of each column, and the number of rows without any."""
        return _observe_highest(rows, self._definition.columns)

    def state_after(self, intent: Intent, stats: WriteStats, table: Table) -> str:
        """Return the highest written value, at most the bound.

        It is the bound itself for a chunk, after a step, and for a source whose bounds are exact. If
        nobody observed the write, the table shows the value.
        """
        if (
            self.dataflow.source.incremental_support.saves_bound
            or self.dataflow.has_step
            or intent.why in ("replay", "reconcile")
        ):
            return intent.watermark
        return _state_written(intent, stats, table, reads_nulls=self._definition.nulls == "read")


def _observe_highest(rows: DataFrame, columns: Sequence[str]) -> tuple[DataFrame, StatsReader]:
    """Return the observed rows, and a reader of the highest values and the number of rows without any."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    observation = Observation()
    types = dict(rows.dtypes)
    aggregates = [highest_value(name, types[name]).alias(f"v{number}") for number, name in enumerate(columns)]
    without = F.expr(" AND ".join(f"{quoted(name)} IS NULL" for name in columns))

    def stats() -> WriteStats:
        answer = observed_values(observation)
        if not answer:
            return {}
        values = [as_value(answer[f"v{number}"], types[name]) for number, name in enumerate(columns)]
        by_column: dict[Any, Sequence[Any]] = {
            name: (value,) for name, value in zip(columns, values, strict=True)
        }
        return by_column | {WITHOUT: (answer["without"],), ROWS: (answer["rows"],)}

    aggregates += [F.count(F.when(without, 1)).alias("without"), F.count(F.lit(1)).alias("rows")]
    return observed_rows(rows, observation, *aggregates), stats


def _state_written(intent: Intent, stats: WriteStats, table: Table, *, reads_nulls: bool) -> str:
    """Return the state of the highest written values, at most the bound.

    Args:
        intent: the write's intent.
        stats: the observed statistics; empty if nobody observed the write, in which case the table shows
            them.
        table: the table.
        reads_nulls: whether each run reads the rows without a value; else they are read once.
    """
    stats = stats or _written_times(intent, table)
    without = stats[WITHOUT][0] if stats else 0
    written = {name: value[0] for name, value in stats.items() if name != WITHOUT}
    has_values = any(value is not None for value in written.values())
    # Rows without a value are read once if the state is not empty any more, unless each run reads them.
    once = without and not has_values and not reads_nulls
    if not stats or once:
        return intent.watermark
    before, bounds = deserialise(intent.before), ColumnState.of(deserialise(intent.watermark))
    reached = ColumnState.of(next_state(before, written) or before)
    return serialise(reached.cap_at(bounds).watermark())


def _written_times(intent: Intent, table: Table) -> WriteStats:
    """Return the highest times of a write's range in the table; nothing if there are none.

    Bounds of other types were looked up before the read.
    """
    before, after = (ColumnState.of(deserialise(text)) for text in (intent.before, intent.watermark))
    highest_times: dict[str, Sequence[Any]] = {}
    for name, bound in after.bounds.items():
        stored = before.bounds.get(name)
        value = bound.value
        if isinstance(value, date):  # or a datetime, which is one
            written = table.contents.highest_values([name], None, rows_above(name, before, bound))[name]
            value = written if written is not None or stored is None else stored.value
        if value is not None:
            highest_times[name] = (value,)
    return highest_times | {WITHOUT: (0,)} if highest_times else {}
