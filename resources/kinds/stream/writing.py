"""Commits of an epoch: rows for the table, and for the stream's side tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.loads import Append, Load
from partitions.predicate import NOTHING, Among, Between, Predicate, all_of, any_of
from partitions.sentinels import Watermark
from partitions.stream.late_rows import are_diverted
from partitions.stream.operators import EPOCH
from partitions.stream.side_table_names import BUFFER, CARRY, LATE, QUARANTINE
from partitions.stream.slices import EpochSlice
from partitions.stream.state import StreamState
from resources.kinds.contract.writing import KeepsWaitingRows, SideRows, WritesSideTables, Writing
from resources.kinds.stream import judged_rows as R
from resources.kinds.stream.epoch import Epoch
from resources.kinds.stream.judging import Judging
from resources.sql import quoted
from resources.tables.contract.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_SPLIT, _WATERMARK, _REASON = "_split", "_watermark", "_reason"
"""Columns that the tables of late and of quarantined rows add."""


@dataclass(frozen=True)
class StreamWriting(Writing[EpochSlice], WritesSideTables[EpochSlice], KeepsWaitingRows):
    """Commits of one stream's epochs.

    Attributes:
        dataflow: the definition.
        sides: the side tables, by their short names.
        judging: decides about each row.
    """

    dataflow: Dataflow
    sides: Mapping[str, Table]
    judging: Judging

    @override
    def load(self, slice_: EpochSlice, rows: DataFrame) -> Load:
        """Return an append: a stream only adds rows."""
        return Append()

    @override
    def load_of_rejected(self) -> None:
        """Return None: the rows of the table leave in the order of their event time."""

    def side_rows(self, spark: SparkSession, slice_: EpochSlice, pinned: str) -> Sequence[SideRows]:
        """Return the waiting, carried, late and quarantined rows of an epoch.

        They replace rows that abandoned numbers wrote, and those of emptied segments.
        """
        from pyspark.sql import functions as F

        judgement, number = slice_.judged, slice_.number
        epoch = self.judging.epoch(spark, slice_, pinned)
        epoch_number = F.lit(number).cast("long").alias(EPOCH)
        definition = self.dataflow.stream
        waits = any(segment.name == str(number) for segment in judgement.after.segments)
        # Sorted by event time: a later epoch reads only the part of a file below its global watermark. The
        # columns that select files come first: formats keep statistics of a limited number of columns.
        event_time = F.col(quoted(definition.event_time))
        rest = [F.col(quoted(name)) for name in epoch.columns if name != definition.event_time]
        waiting = self.judging.emission.waiting(epoch).select(epoch_number, event_time, *rest)
        waiting = waiting.sortWithinPartitions(event_time)
        above: Predicate = Between(EPOCH, judgement.before.epoch, None, lower_inclusive=False)
        emptied = tuple(int(name) for name in judgement.before.emptied)
        # No number was abandoned since the last epoch, so no side table has rows above it. Before a first
        # epoch, side tables of a table that somebody removed may still exist.
        none_above = 0 < judgement.before.epoch == number - 1
        tables = [
            SideRows(
                BUFFER,
                waiting,
                waits,
                any_of((above, Among(EPOCH, emptied))) if emptied else above,
                replaces_none=none_above and not emptied,
            )
        ]
        if CARRY in self.sides:
            tables.append(self._carry(epoch, slice_, above, replaces_none=none_above))
        split = F.col(R.SPLIT).alias(_SPLIT)
        watermark = R.from_ticks(R.JUDGED_BY, epoch.type_name).alias(_WATERMARK)
        late = epoch.judged.where(R.is_late()).select(
            *epoch.own_beside(_SPLIT, _WATERMARK), split, watermark, epoch_number
        )
        diverts = are_diverted(definition.late, judgement.tally.late)
        tables.append(SideRows(LATE, late, diverts, above, none_above))
        bad = epoch.judged.where(F.col(R.REASON).isNotNull())
        reason = F.col(R.REASON).alias(_REASON)
        quarantined = bad.select(*epoch.own_beside(_REASON), reason, epoch_number)
        tables.append(SideRows(QUARANTINE, quarantined, judgement.tally.quarantined > 0, above, none_above))
        return tables

    @override
    def waiting_rows(self, side: str, state: Watermark, types: Mapping[str, str]) -> Predicate:
        """Return the rows of open segments, and those that an over-window carries."""
        stream, event_time = StreamState.of(state), self.dataflow.stream.event_time
        if side == CARRY and stream.carry is not None:
            return Among(EPOCH, (stream.carry.epoch,))
        if side != BUFFER or not stream.segments:
            return NOTHING
        lowest = R.as_value(min(segment.lowest for segment in stream.segments), types[event_time])
        segments = Among(EPOCH, tuple(int(segment.name) for segment in stream.segments))
        return all_of((segments, Between(event_time, lowest, None)))

    def _carry(self, epoch: Epoch, slice_: EpochSlice, above: Predicate, *, replaces_none: bool) -> SideRows:
        """Return the rows that an over-window carries; they replace those older than the carry just read."""
        from pyspark.sql import functions as F

        before, after = slice_.judged.before.carry, slice_.judged.after.carry
        carried = self.judging.emission.carry(epoch)
        assert carried is not None
        rows = carried.withColumn(EPOCH, F.lit(slice_.number).cast("long"))
        if after is None or after == before:
            return SideRows(CARRY, rows, False, above, replaces_none)
        older = [Between(EPOCH, None, before.epoch)] if before is not None else []
        return SideRows(CARRY, rows, True, any_of((above, *older)), replaces_none and not older)
