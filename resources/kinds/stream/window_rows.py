"""Tumbling, hopping and session windows, emitted when the global watermark closes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from partitions.stream.drain import drain_segments
from partitions.stream.emission_rules import (
    begins_session,
    first_window_start,
    is_session_closed,
    is_window_closed,
    last_window_start,
)
from partitions.stream.event_time import EventTime, Span
from partitions.stream.operators import EPOCH, Aggregate
from partitions.stream.ticks import LOWEST, span_ticks, ticks
from partitions.stream.windows import Hop
from resources.kinds.stream import judged_rows as R
from resources.kinds.stream.epoch import Decision, Epoch
from resources.kinds.stream.sorted_rows import KEPT, LATE, SortedRows, count_decision
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_START, _END, _FIRST, _LAST, _NEW = (
    "_strandline_start",
    "_strandline_end",
    "_strandline_first",
    "_strandline_last",
    "_strandline_new",
)
_CLOSES = "_strandline_closes"


@dataclass(frozen=True)
class WindowRows(SortedRows):
    """Tumbling and hopping windows: each once, when the global watermark reaches its end.

    Attributes:
        aggregate: what becomes of a window's rows.
        hop: the windows.
    """

    aggregate: Aggregate
    hop: Hop

    def floor(self, value: EventTime | None) -> EventTime | None:
        """Return from where windows are open: only rows below it are needed no more."""
        return None if value is None else self.hop.live_from(value)

    def rows(self, epoch: Epoch, *, small: bool) -> DataFrame:
        """Return the windows that close, by their end."""
        from pyspark.sql import functions as F

        value, before = epoch.value, epoch.before.drained
        until = None if value is None else self.hop.closed_until(value)
        if until is not None and before is not None and until <= before:
            until = None
        size, slide = span_ticks(self.hop.size), span_ticks(self.hop.slide)
        last = last_window_start(F.col(R.TIME), slide)
        first = first_window_start(F.col(R.TIME), size, slide)
        starts = last if size == slide else F.explode(F.sequence(first, last, F.lit(slide).cast("long")))
        in_windows = self.below(epoch, until).withColumn(_START, starts)
        in_windows = in_windows.withColumn(_END, F.col(_START) + size)
        if until is not None:
            in_windows = in_windows.where(is_window_closed(F.col(_END), F.lit(ticks(until)).cast("long")))
        if before is not None:
            in_windows = in_windows.where(~is_window_closed(F.col(_END), F.lit(ticks(before)).cast("long")))
        return _aggregated(self.aggregate, in_windows, epoch.type_name, small=small)


def _aggregated(aggregate: Aggregate, rows: DataFrame, type_name: str, *, small: bool) -> DataFrame:
    """Return one row for each window and group, by the window's end."""
    from pyspark.sql import functions as F

    groups = [F.col(quoted(name)) for name in aggregate.group_by]
    values = [F.expr(text).alias(name) for name, text in aggregate.aggregates.items()]
    aggregated = rows.groupBy(_START, _END, *groups).agg(*values)
    ends = [
        R.from_ticks(tick, type_name).alias(name)
        for tick, name in ((_START, "window_start"), (_END, "window_end"))
    ]
    named = [F.col(quoted(name)) for name in aggregate.aggregates]
    return R.in_order(
        aggregated.select(*ends, *groups, *named), ("window_end", *aggregate.group_by), small=small
    )


@dataclass(frozen=True)
class SessionRows(SortedRows):
    """Sessions: each once, when the global watermark is above its last row and the gap.

    A row of the buffer belongs to a session that is closed already if that session's last row and the gap lie below the global watermark of
    the epoch before. Its other rows may be gone by then: what is left of a closed session never ends later than it did, and lies further
    than the gap from every other session of its group.

    Attributes:
        aggregate: what becomes of a session's rows.
        gap: between two sessions.
    """

    aggregate: Aggregate
    gap: Span

    def decide(self, epoch: Epoch) -> Decision:
        """Return what becomes of the rows."""
        from pyspark.sql import functions as F

        no, closes = F.lit(False), self._closes(epoch)
        in_sessions = self._in_sessions(epoch).select(
            EPOCH, R.TIME, no.alias(LATE), closes.alias(_CLOSES), (~closes).alias(KEPT)
        )
        late = epoch.judged.where(R.is_late()).select(
            F.lit(epoch.number).cast("long"), R.TIME, F.lit(True), no, no
        )
        return count_decision(
            self.buffer, epoch, epoch.value, in_sessions.unionAll(late), F.col(_CLOSES), F.col(KEPT)
        )

    def waiting(self, epoch: Epoch) -> DataFrame:
        """Return the epoch's own rows of sessions that are open."""
        from pyspark.sql import functions as F

        in_sessions = self._in_sessions(epoch)
        return in_sessions.where((F.col(EPOCH) == epoch.number) & ~self._closes(epoch)).select(*epoch.own)

    def rows(self, epoch: Epoch, *, small: bool) -> DataFrame:
        """Return the sessions that close, by their last row and the gap."""
        from pyspark.sql import functions as F

        closing = self._in_sessions(epoch).where(self._closes(epoch))
        closing = closing.withColumn(_START, F.col(_FIRST)).withColumn(
            _END, F.col(_LAST) + span_ticks(self.gap)
        )
        return _aggregated(self.aggregate, closing, epoch.type_name, small=small)

    def _closes(self, epoch: Epoch) -> Column:
        """Return whether a row's session closes."""
        return self._ends_before(epoch.value)

    def _ends_before(self, value: EventTime | None) -> Column:
        from pyspark.sql import functions as F

        if value is None:
            return F.lit(False)
        gap = span_ticks(self.gap)
        # A watermark below the lowest number of 64 bits and the gap closes none.
        closed: Column = is_session_closed(F.col(_LAST), max(ticks(value), LOWEST + gap), gap)
        return closed

    def _in_sessions(self, epoch: Epoch) -> DataFrame:
        """Return the rows of open sessions with their session's first and last event time."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        rows = epoch.valid_rows.withColumn(EPOCH, F.lit(epoch.number).cast("long"))
        read = drain_segments(epoch.before.segments, epoch.value).read
        if read:
            waited = self.buffer.rows(epoch.spark, epoch.type_name, read)
            rows = rows.unionByName(waited.select(*epoch.own, R.TIME, EPOCH))
        groups = [F.col(quoted(name)) for name in self.aggregate.group_by]
        # Rows of one event time may come in any order, so a session's beginning is looked up over all of them.
        by_time = Window.partitionBy(*groups).orderBy(R.TIME)
        step = F.try_subtract(
            F.col(R.TIME), F.col(_NEW)
        )  # NULL: there is no row before, or it is too far away to be said
        begins = F.coalesce(begins_session(step, span_ticks(self.gap)), F.lit(True))
        in_sessions = rows.withColumn(_NEW, F.lag(R.TIME).over(by_time)).withColumn(
            _NEW, F.when(begins, F.col(R.TIME))
        )
        in_sessions = in_sessions.withColumn(_FIRST, F.max(_NEW).over(by_time)).drop(_NEW)
        in_sessions = in_sessions.withColumn(_LAST, F.max(R.TIME).over(Window.partitionBy(*groups, _FIRST)))
        before = epoch.before.drained
        return in_sessions if before is None else in_sessions.where(~self._ends_before(before))
