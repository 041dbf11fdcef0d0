"""The buffer of a stream: rows that wait, in segments that are never rewritten (docs/streams.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from partitions.plan import counted
from partitions.predicate import Among
from partitions.stream.operators import EPOCH
from partitions.stream.state import Carry, Segment, StreamState
from partitions.stream.ticks import ticks
from resources.kinds import stream_rows as R
from resources.tables.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LATE, QUARANTINE, BUFFER, CARRY = "late", "quarantine", "buffer", "over"
"""The side tables of a stream: ``<table>__late`` and so on."""

_LOWEST = "_strandline_lowest"


@dataclass(frozen=True)
class Buffer:
    """What waits in a stream's side tables.

    Attributes:
        dataflow: what the user declared.
        sides: the side tables, by their short names.
    """

    dataflow: Dataflow
    sides: Mapping[str, Table]

    def rows(self, spark: SparkSession, segments: Sequence[Segment]) -> DataFrame:
        """Return the rows of segments from each one's lowest on, with their event time in ticks."""
        from pyspark.sql import functions as F

        rows = self._read(spark, BUFFER, {int(each.name): each.rows for each in segments})
        lowest = [(int(segment.name), ticks(segment.lowest)) for segment in segments]
        live = F.broadcast(spark.createDataFrame(lowest, f"{EPOCH} long, {_LOWEST} long"))
        return rows.join(live, EPOCH).where(F.col(R.TIME) >= F.col(_LOWEST)).drop(_LOWEST)

    def carried(self, spark: SparkSession, carry: Carry) -> DataFrame:
        """Return the rows that an over-window carries, with their event time in ticks."""
        return self._read(spark, CARRY, {carry.epoch: carry.rows})

    def _read(self, spark: SparkSession, side: str, epochs: Mapping[int, int]) -> DataFrame:
        """Return the rows of epochs; ``epochs`` says how many there must be of each."""
        from pyspark.sql import functions as F

        table, asked = self.sides[side], Among(EPOCH, tuple(epochs))
        rows = table.read(spark, table.newest_version(), asked).where(F.col(EPOCH).isin(list(asked.values)))
        definition = self.dataflow.stream
        type_name = R.time_type(rows, definition, self.dataflow.name)
        return rows.withColumn(R.TIME, R.ticks_of(definition.event_time, type_name))

    def check_tables(self, state: StreamState) -> None:
        """Raise unless the tables are there whose rows a state counts. Starts no Spark.

        Raises:
            NeedsDecision: code ``buffer_lost``.
        """
        waiting = {segment.name: segment.rows for segment in state.segments}
        carried = {state.carry.epoch: state.carry.rows} if state.carry else {}
        for side, epochs in ((BUFFER, waiting), (CARRY, carried)):
            rows = sum(epochs.values())
            if rows and not self.sides[side].exists():
                self.check_held(side, ", ".join(map(str, epochs)), rows, held=0)

    def check_held(self, side: str, epoch: int | str, expected: int, held: int) -> None:
        """Raise unless a side table holds the rows that the state says.

        Raises:
            NeedsDecision: code ``buffer_lost``.
        """
        if held == expected:
            return
        name = self.dataflow.name
        raise NeedsDecision(
            f"dataflow {name}: expected {counted(expected, 'row')} of epoch {epoch} in table {self.dataflow.table}__{side}, found"
            f" {held:,}: rows that were read wait there, and nothing else has them. Restore the table; or reset the state with --replace to read"
            " the source again",
            code="buffer_lost",
            choices=(f"strandline state reset {name} --replace --reason TEXT",),
        )
