"""The buffer of a stream: waiting rows in segments, which are never rewritten."""

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


@dataclass(frozen=True)
class Buffer:
    """The waiting rows in a stream's side tables.

    Attributes:
        dataflow: the definition.
        sides: the side tables, by their short names.
        pinned: the version to read of each side table, by the same names. A table without one is read
            at its newest version, which is then pinned here: rows that another writer removes later
            must not be missing from an epoch that counted them.
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
        """Return the rows of segments that are still buffered, with their event time in ticks.

        Rows below the lowest time of all these segments have left before, and are not returned. A
        segment's files are sorted, so only files and pages that may hold rows of the range are read.

        Args:
            spark: a session.
            type_name: Spark's name of the event time's type.
            segments: at least one segment.
            below: exclusive upper bound of the event time; None: no bound.
        """
        epochs = {int(segment.name): segment.rows for segment in segments}
        lowest = R.as_value(min(segment.lowest for segment in segments), type_name)
        upper = None if below is None else R.as_value(below, type_name)
        times = Between(self.dataflow.stream.event_time, lowest, upper)
        return self._read(spark, BUFFER, type_name, epochs, times)

    def are_whole(self, segments: Sequence[Segment]) -> bool:
        """Return whether statistics prove that the table still has every row written for these segments.

        If False, rows must be counted: another writer may have joined files of several segments, or the
        format lacks the statistics.
        """
        table = self.sides[BUFFER]
        counts_known = all(segment.written for segment in segments)  # older versions did not record them
        if not counts_known or not isinstance(contents := table.contents, TellsSpans) or not table.exists():
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
        """Return the rows of epochs in a range of times, with their event time in ticks.

        ``epochs`` has the epochs' numbers as keys.
        """
        table = self.sides[side]
        predicate = all_of((Among(EPOCH, tuple(epochs)), times))
        rows = table.contents.read(spark, self._version(side), predicate).where(
            predicate_sql(predicate, SPARK)
        )
        return rows.withColumn(R.TIME, R.ticks_of(self.dataflow.stream.event_time, type_name))

    def _version(self, side: str) -> Version:
        """Return the pinned version of a side table; pin the newest one first if none is pinned."""
        if side not in self.pinned:
            self.pinned[side] = self.sides[side].contents.newest_version()
        return self.pinned[side]

    def check_tables(self, state: StreamState) -> None:
        """Raise if a side table is missing although the state counts rows in it. Starts no Spark.

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
        """Raise unless a side table holds exactly the rows that the state counts.

        Args:
            side: short name of the side table.
            epoch: the epochs that wrote the rows, for the message.
            expected: number of rows by the state.
            actual: number of rows in the table.

        Raises:
            NeedsDecision: code ``buffer_lost``.
        """
        if actual == expected:
            return
        name = self.dataflow.name
        raise NeedsDecision(
            f"dataflow {name}: expected {pluralize(expected, 'row')} of epoch {epoch} in table "
            f"{self.dataflow.table}__{side}, found {actual:,}. The table holds rows that wait in the "
            "stream, and there is no other copy. Restore the table; or run `state reset --replace` to "
            "read the source again",
            code="buffer_lost",
            choices=(f"strandline state reset {name} --replace --reason TEXT",),
        )
