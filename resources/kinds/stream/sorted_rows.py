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
"""Helper columns: whether a row is late, and whether it is neither late nor quarantined."""


@dataclass(frozen=True)
class SortedRows:
    """Emission of the rows themselves, each once it is below the global watermark.

    Attributes:
        dataflow: the definition.
        buffer: the waiting rows.
    """

    dataflow: Dataflow
    buffer: Buffer

    def floor(self, value: EventTime | None) -> EventTime | None:
        """Return the bound below which rows leave the buffer at a global watermark; None: none leaves."""
        return value

    def decide(self, epoch: Epoch) -> Decision:
        """Return the decision about the rows of an epoch and its buffer.

        Raises:
            NeedsDecision: code ``buffer_lost``.
        """
        from pyspark.sql import functions as F

        floor = self.floor(epoch.value)
        judged = epoch.judged.select(
            F.lit(epoch.number).cast("long").alias(EPOCH),
            R.TIME,
            R.is_late().alias(LATE),
            R.is_kept().alias(KEPT),
        )
        read_segments = drain_segments(epoch.before.segments, floor).read
        whole = bool(read_segments) and self.buffer.are_whole(read_segments)
        if read_segments:
            # Rows at or above the global watermark stay: if none is missing, they are counted without a read.
            buffered_rows = self.buffer.rows(
                epoch.spark, epoch.type_name, read_segments, below=epoch.value if whole else None
            )
            false, true = F.lit(False).alias(LATE), F.lit(True).alias(KEPT)
            judged = judged.unionAll(buffered_rows.select(EPOCH, R.TIME, false, true))
        is_kept, is_below = F.col(KEPT), R.leaves(floor)
        return count_decision(
            self.buffer, epoch, floor, judged, is_kept & is_below, is_kept & ~is_below, whole=whole
        )

    def waiting(self, epoch: Epoch) -> DataFrame:
        """Return the epoch's own rows that enter the buffer, with the source's columns."""
        return epoch.valid_rows.where(~R.leaves(self.floor(epoch.value))).select(*epoch.own)

    def rows(self, epoch: Epoch, *, small: bool) -> DataFrame:
        """Return the rows to emit: below the global watermark, in order, in disjoint parts.

        Args:
            epoch: the epoch; without a global watermark no row is emitted.
            small: whether one task sorts the rows.
        """
        definition = self.dataflow.stream
        leaving = self.below(epoch, epoch.value).select(*epoch.own)
        return R.in_order(leaving, (definition.event_time, *definition.order_by), small=small)

    def carry(self, epoch: Epoch) -> DataFrame | None:
        """Return the rows to carry, without ``_epoch``; None if the emission carries none."""

    def above(self, epoch: Epoch) -> int:
        """Return the number of rows at or above the global watermark after an epoch, which wait for splits."""
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
        """Return the rows of epoch and buffer below a bound (exclusive), with their event time in ticks."""
        rows = epoch.valid_rows.where(R.leaves(bound))
        read_segments = drain_segments(epoch.before.segments, bound).read
        if not read_segments:
            return rows
        buffered_rows = self.buffer.rows(epoch.spark, epoch.type_name, read_segments, below=bound)
        return rows.unionByName(buffered_rows.select(*epoch.own, R.TIME))


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
    """Return the decision about an epoch's rows, counted in one Spark job.

    Args:
        buffer: the buffer; its segments with rows below the floor were read.
        epoch: the epoch.
        floor: bound below which rows leave the buffer.
        rows: the epoch's own rows and those of the read segments, with ``_epoch`` (number of the
            segment), event time in ticks, and ``LATE``.
        leave: whether a row leaves.
        wait: whether a row stays in the buffer, or enters it.
        whole: whether the segments were read only below the global watermark, since statistics prove
            that their other rows exist.

    Raises:
        NeedsDecision: code ``buffer_lost``.
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
    read_segments = drain_segments(epoch.before.segments, floor).read
    remaining, leaving = _remaining_rows(buffer, epoch, read_segments, counts, whole=whole)
    segments = remaining_segments(epoch.before.segments, floor, remaining, _own_segment(epoch, own))
    return Decision(own["late"] if own else 0, leaving + (own["out"] if own else 0), segments)


def _own_segment(epoch: Epoch, row: Any) -> tuple[Segment, ...]:
    """Return the segment of the epoch's own waiting rows; nothing if none waits."""
    if row is None or not row["stays"]:
        return ()
    lowest, highest = (event_time(row[bound], timed=epoch.timed) for bound in ("lowest", "highest"))
    return (Segment(str(epoch.number), row["stays"], lowest, highest, row["stays"]),)


def _remaining_rows(
    buffer: Buffer, epoch: Epoch, read: Sequence[Segment], counts: Sequence[Any], *, whole: bool
) -> tuple[Mapping[str, tuple[int, EventTime]], int]:
    """Return the rows that stay of each read segment, with their lowest time, and how many rows leave.

    Segments of which no row stays are left out. The lowest time is a lower bound.

    Raises:
        NeedsDecision: code ``buffer_lost``: a segment has another number of rows than the state
            counts.
    """
    counts_by_segment = {str(row[EPOCH]): row for row in counts}
    remaining: dict[str, tuple[int, EventTime]] = {}
    leaving = 0
    for segment in read:
        row = counts_by_segment.get(segment.name)
        out, stays = (row["out"], row["stays"]) if row else (0, 0)
        above = 0  # rows that were not read, and stay
        if whole and not leaves_buffer(segment.highest, epoch.value):
            above = max(0, segment.rows - out - stays)
        buffer.check_held("buffer", segment.name, segment.rows, out + stays + above)
        leaving += out
        if row and stays:
            remaining[segment.name] = (stays + above, event_time(row["lowest"], timed=epoch.timed))
        elif above:
            assert epoch.value is not None
            remaining[segment.name] = (above, epoch.value)
    return remaining, leaving
