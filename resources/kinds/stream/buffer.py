"""The buffer of a stream: waiting rows, in segments that are never rewritten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from partitions.plan import pluralize
from partitions.predicate import EVERYTHING, Among, Between, Predicate, all_of
from partitions.stream.event_time import EventTime
from partitions.stream.operators import EPOCH
from partitions.stream.side_table_names import BUFFER, CARRY
from partitions.stream.state import Carry, Segment, StreamState
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.kinds.stream import judged_rows as R
from resources.tables.contract.commits import Version
from resources.tables.contract.spans import TellsSpans
from resources.tables.contract.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

"""The side tables of a stream: ``<table>__late`` and so on."""


@dataclass(frozen=True)
class Buffer:
    """What waits in a stream's side tables.

    Attributes:
        dataflow: what the user declared.
        sides: the side tables, by their short names.
        pinned: the versions that were counted, by the same names; what is not there is read at its newest version, and stays there. What another writer
            takes from a table after an epoch was fixed on its rows must not be missing from the epoch.
    """

    dataflow: Dataflow
    sides: Mapping[str, Table]
    pinned: MutableMapping[str, Version] = field(default_factory=dict)

    def rows(
        self,
        spark: SparkSession,
        type_name: str,
        segments: Sequence[Segment],
        below: EventTime | None = None,
    ) -> DataFrame:
        """Return the rows of segments that are buffered still, with their event time in ticks.

        What a segment holds below the lowest time of any of them has left. Of files, and of their pages, only those are read that may hold
        such rows: a segment's files are sorted.

        Args:
            spark: a session.
            type_name: of the event time.
            segments: at least one.
            below: leave out rows at or above this time.
        """
        lowest = min(segment.lowest for segment in segments)
        epochs = {int(segment.name): segment.rows for segment in segments}
        least = R.as_value(lowest, type_name)
        most = None if below is None else R.as_value(below, type_name)
        times = Between(self.dataflow.stream.event_time, least, most)
        return self._read(spark, BUFFER, type_name, epochs, times)

    def are_whole(self, segments: Sequence[Segment]) -> bool:
        """Return whether statistics tell that no row of segments is gone.

        If they do not, rows must be counted: another writer may have joined files of several segments.
        """
        table = self.sides[BUFFER]
        are_written = all(segment.written for segment in segments)
        if not are_written or not isinstance(contents := table.contents, TellsSpans) or not table.exists():
            return False
        rows_by_epoch = Counter[str]()
        for file in contents.file_spans(self._version(BUFFER), EPOCH, self.dataflow.stream.event_time) or ():
            rows_by_epoch[str(file.group)] += file.rows
        return all(rows_by_epoch[segment.name] == segment.written for segment in segments)

    def carried(self, spark: SparkSession, type_name: str, carry: Carry) -> DataFrame:
        """Return the rows that an over-window carries, with their event time in ticks."""
        return self._read(spark, CARRY, type_name, {carry.epoch: carry.rows})

    def _read(
        self,
        spark: SparkSession,
        side: str,
        type_name: str,
        epochs: Mapping[int, int],
        times: Predicate = EVERYTHING,
    ) -> DataFrame:
        """Return the rows of epochs within times; ``epochs`` says how many there must be of each."""
        table = self.sides[side]
        predicate = all_of((Among(EPOCH, tuple(epochs)), times))
        rows = table.contents.read(spark, self._version(side), predicate).where(
            predicate_sql(predicate, SPARK)
        )
        return rows.withColumn(R.TIME, R.ticks_of(self.dataflow.stream.event_time, type_name))

    def _version(self, side: str) -> Version:
        if side not in self.pinned:
            self.pinned[side] = self.sides[side].contents.newest_version()
        return self.pinned[side]

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
                self.check_held(side, ", ".join(map(str, epochs)), rows, actual=0)

    def check_held(self, side: str, epoch: int | str, expected: int, actual: int) -> None:
        """Raise unless a side table holds the rows that the state says.

        Raises:
            NeedsDecision: code ``buffer_lost``.
        """
        if actual == expected:
            return
        name = self.dataflow.name
        raise NeedsDecision(
            f"dataflow {name}: expected {pluralize(expected, 'row')} of epoch {epoch} in table {self.dataflow.table}__{side}, found"
            f" {actual:,}: rows that were read wait there, and nothing else has them. Restore the table; or reset the state with --replace to read"
            " the source again",
            code="buffer_lost",
            choices=(f"strandline state reset {name} --replace --reason TEXT",),
        )
