"""Emit rows in event-time order as the global watermark passes them (docs/reference/streams.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.stream.drain import drain_segments, leaves_buffer, remaining_segments
from partitions.stream.event_time import EventTime
from partitions.stream.operators import EPOCH
from partitions.stream.state import Segment
from partitions.stream.ticks import event_time
from resources.kinds.stream import judged_rows as R
from resources.kinds.stream.buffer import Buffer
from resources.kinds.stream.epoch import Decision, Epoch

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


LATE, KEPT = "_strandline_late", "_strandline_kept"


@dataclass(frozen=True)
class SortedRows:
    """The rows themselves, as they are below the global watermark.

    Attributes:
        dataflow: what the user declared.
        buffer: rows that wait.
    """

    dataflow: Dataflow
    buffer: Buffer

    def floor(self, value: EventTime | None) -> EventTime | None:
        """Return what rows must lie below to leave at a global watermark."""
        return value

    def decide(self, epoch: Epoch) -> Decision:
        """Return what becomes of the rows."""
        from pyspark.sql import functions as F

        floor = self.floor(epoch.value)
        judged = epoch.judged.select(
            F.lit(epoch.number).cast("long").alias(EPOCH),
            R.TIME,
            R.is_late().alias(LATE),
            R.is_kept().alias(KEPT),
        )
        read = drain_segments(epoch.before.segments, floor).read
        whole = bool(read) and self.buffer.are_whole(read)
        if read:
            # What is not below the global watermark waits on: if no row is gone it need not be read to be counted.
            waited = self.buffer.rows(
                epoch.spark, epoch.type_name, read, below=epoch.value if whole else None
            )
            no, yes = F.lit(False).alias(LATE), F.lit(True).alias(KEPT)
            judged = judged.unionAll(waited.select(EPOCH, R.TIME, no, yes))
        is_kept, is_below = F.col(KEPT), R.leaves(floor)
        return count_decision(
            self.buffer, epoch, floor, judged, is_kept & is_below, is_kept & ~is_below, whole=whole
        )

    def waiting(self, epoch: Epoch) -> DataFrame:
        """Return the epoch's own rows that wait, those at or above the floor, with the source's columns."""
        return epoch.valid_rows.where(~R.leaves(self.floor(epoch.value))).select(*epoch.own)

    def rows(self, epoch: Epoch, *, small: bool) -> DataFrame:
        """Return the rows below the global watermark for the table, in order, in disjoint parts.

        Args:
            epoch: with a value of None: no rows.
            small: whether one task sorts them.
        """
        definition = self.dataflow.stream
        out = self.below(epoch, epoch.value).select(*epoch.own)
        return R.in_order(out, (definition.event_time, *definition.order_by), small=small)

    def carry(self, epoch: Epoch) -> DataFrame | None:
        """Return the rows to carry, without ``_epoch``; None: the buffer has all that waits."""

    def above(self, epoch: Epoch) -> int:
        """Return how many rows wait for splits: at or above the global watermark after an epoch."""
        waits = ~R.leaves(epoch.value)
        segments_above = [
            segment for segment in epoch.before.segments if not leaves_buffer(segment.highest, epoch.value)
        ]
        buffered = (
            self.buffer.rows(epoch.spark, epoch.type_name, segments_above).where(waits).count()
            if segments_above
            else 0
        )
        return epoch.valid_rows.where(waits).count() + buffered

    def below(self, epoch: Epoch, bound: EventTime | None) -> DataFrame:
        """Return the rows of epoch and buffer below a bound, with event time in ticks."""
        rows = epoch.valid_rows.where(R.leaves(bound))
        read = drain_segments(epoch.before.segments, bound).read
        if not read:
            return rows
        waited = self.buffer.rows(epoch.spark, epoch.type_name, read, below=bound)
        return rows.unionByName(waited.select(*epoch.own, R.TIME))


def count_decision(
    buffer: Buffer,
    epoch: Epoch,
    floor: EventTime | None,
    rows: DataFrame,
    leave: Column,
    wait: Column,
    *,
    whole: bool = False,
) -> Decision:
    """Count what becomes of rows in one job.

    Args:
        buffer: whose segments that have rows below the floor were read.
        epoch: of the rows.
        floor: what rows must lie below to leave.
        rows: the epoch's own and those that were read, each with its segment's number, its event time in ticks, and whether it is late.
        leave: whether a row leaves.
        wait: whether a row stays in the buffer, or comes into it.
        whole: whether of segments only rows below the global watermark were read, and the others are known to be there.
    """
    from pyspark.sql import functions as F

    stays = F.when(wait, F.col(R.TIME))
    counts = (
        rows.groupBy(EPOCH)
        .agg(
            F.count(F.when(F.col(LATE), 1)).alias("late"),
            F.count(F.when(leave, 1)).alias("out"),
            F.count(stays).alias("stays"),
            F.min(stays).alias("lowest"),
            F.max(stays).alias("highest"),
        )
        .collect()
    )
    own = next((row for row in counts if row[EPOCH] == epoch.number), None)
    read = drain_segments(epoch.before.segments, floor).read
    live, leaving = _live(buffer, epoch, read, counts, whole=whole)
    segments = remaining_segments(epoch.before.segments, floor, live, _written(epoch, own))
    return Decision(own["late"] if own else 0, leaving + (own["out"] if own else 0), segments)


def _written(epoch: Epoch, row: Any) -> tuple[Segment, ...]:
    """Return the segment of an epoch's own rows that wait."""
    if row is None or not row["stays"]:
        return ()
    lowest, highest = (event_time(row[which], timed=epoch.timed) for which in ("lowest", "highest"))
    return (Segment(str(epoch.number), row["stays"], lowest, highest, row["stays"]),)


def _live(
    buffer: Buffer, epoch: Epoch, read: Sequence[Segment], counts: Sequence[Any], *, whole: bool
) -> tuple[Mapping[str, tuple[int, EventTime]], int]:
    """Return the rows of read segments that stay, their lower bound, and how many rows leave."""
    counts_by_segment = {str(row[EPOCH]): row for row in counts}
    live: dict[str, tuple[int, EventTime]] = {}
    leaving = 0
    for segment in read:
        row = counts_by_segment.get(segment.name)
        out, stays = (row["out"], row["stays"]) if row else (0, 0)
        above = 0
        if whole and not leaves_buffer(segment.highest, epoch.value):
            above = max(0, segment.rows - out - stays)
        buffer.check_held("buffer", segment.name, segment.rows, out + stays + above)
        leaving += out
        if row and stays:
            live[segment.name] = (stays + above, event_time(row["lowest"], timed=epoch.timed))
        elif above:
            assert epoch.value is not None
            live[segment.name] = (above, epoch.value)
    return live, leaving
