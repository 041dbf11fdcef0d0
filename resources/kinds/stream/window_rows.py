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
"""Helper columns in ticks: start and end of a row's window, first and last event time of its session, and the
event time of a row that starts a session.
"""

_CLOSES = "_strandline_closes"
"""Helper column: whether a row's session closes."""


@dataclass(frozen=True)
class WindowRows(SortedRows):
    """Emission of tumbling and hopping windows: each once, when the global watermark reaches its end.

    Attributes:
        aggregate: the operator.
        hop: size and slide of the windows.
    """

    aggregate: Aggregate
    hop: Hop

    def floor(self, value: EventTime | None) -> EventTime | None:
        """Return the earliest time that an open window can hold: rows below it are no longer needed."""
        return None if value is None else self.hop.live_from(value)

    def rows(self, epoch: Epoch, *, small: bool) -> DataFrame:
        """Return the windows that close in an epoch, sorted by end and group."""
        from pyspark.sql import functions as F

        value, before = epoch.value, epoch.before.drained
        until = None if value is None else self.hop.closed_until(value)
        if until is not None and before is not None and until <= before:
            until = None  # no further window closes
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
    """Return one row for each window and group, sorted by the window's end and the group."""
    from pyspark.sql import functions as F

    groups = [F.col(quoted(name)) for name in aggregate.group_by]
    values = [F.expr(text).alias(name) for name, text in aggregate.aggregates.items()]
    aggregated = rows.groupBy(_START, _END, *groups).agg(*values)
    bounds = [
        R.from_ticks(tick, type_name).alias(name)
        for tick, name in ((_START, "window_start"), (_END, "window_end"))
    ]
    columns = [F.col(quoted(name)) for name in aggregate.aggregates]
    return R.in_order(
        aggregated.select(*bounds, *groups, *columns), ("window_end", *aggregate.group_by), small=small
    )


@dataclass(frozen=True)
class SessionRows(SortedRows):
    """Emission of sessions: each once, when the global watermark is above its last row plus the gap.

    The buffer may still hold rows of a session that was closed before. Such a session is recognised
    by its end: its last row plus the gap is below the global watermark of the epoch before. If some
    of its rows are deleted already, the rest never ends later than the session did, and stays further
    than the gap from every other session of its group.

    Attributes:
        aggregate: the operator.
        gap: the longest distance between neighbouring rows of a session, inclusive.
    """

    aggregate: Aggregate
    gap: Span

    def decide(self, epoch: Epoch) -> Decision:
        """Return the decision about the rows of an epoch and its buffer."""
        from pyspark.sql import functions as F

        false, closes = F.lit(False), self._closes(epoch)
        in_sessions = self._in_sessions(epoch).select(
            EPOCH, R.TIME, false.alias(LATE), closes.alias(_CLOSES), (~closes).alias(KEPT)
        )
        late = epoch.judged.where(R.is_late()).select(
            F.lit(epoch.number).cast("long"), R.TIME, F.lit(True), false, false
        )
        return count_decision(
            self.buffer, epoch, epoch.value, in_sessions.unionAll(late), F.col(_CLOSES), F.col(KEPT)
        )

    def waiting(self, epoch: Epoch) -> DataFrame:
        """Return the epoch's own rows whose sessions stay open, with the source's columns."""
        from pyspark.sql import functions as F

        in_sessions = self._in_sessions(epoch)
        return in_sessions.where((F.col(EPOCH) == epoch.number) & ~self._closes(epoch)).select(*epoch.own)

    def rows(self, epoch: Epoch, *, small: bool) -> DataFrame:
        """Return the sessions that close in an epoch, sorted by end (last row plus the gap) and group."""
        from pyspark.sql import functions as F

        closing = self._in_sessions(epoch).where(self._closes(epoch))
        closing = closing.withColumn(_START, F.col(_FIRST)).withColumn(
            _END, F.col(_LAST) + span_ticks(self.gap)
        )
        return _aggregated(self.aggregate, closing, epoch.type_name, small=small)

    def _closes(self, epoch: Epoch) -> Column:
        """Return whether the epoch closes a row's session."""
        return self._ends_before(epoch.value)

    def _ends_before(self, value: EventTime | None) -> Column:
        """Return whether a row's session, with the gap, ends below a global watermark."""
        from pyspark.sql import functions as F

        if value is None:
            return F.lit(False)
        gap = span_ticks(self.gap)
        # The rule subtracts the gap: a watermark that would underflow 64 bits is raised, and closes no session.
        closed: Column = is_session_closed(F.col(_LAST), max(ticks(value), LOWEST + gap), gap)
        return closed

    def _in_sessions(self, epoch: Epoch) -> DataFrame:
        """Return the rows of epoch and buffer with their session's first and last event time, in ticks.

        Rows of sessions that were closed before the epoch are left out.
        """
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        rows = epoch.valid_rows.withColumn(EPOCH, F.lit(epoch.number).cast("long"))
        read_segments = drain_segments(epoch.before.segments, epoch.value).read
        if read_segments:
            buffered_rows = self.buffer.rows(epoch.spark, epoch.type_name, read_segments)
            rows = rows.unionByName(buffered_rows.select(*epoch.own, R.TIME, EPOCH))
        groups = [F.col(quoted(name)) for name in self.aggregate.group_by]
        # Rows of one event time have no order. The frame of `max` holds them all: all get the same session start.
        by_time = Window.partitionBy(*groups).orderBy(R.TIME)
        # NULL: no row comes before, or the distance exceeds 64 bits. Both start a session.
        step = F.try_subtract(F.col(R.TIME), F.col(_NEW))
        begins = F.coalesce(begins_session(step, span_ticks(self.gap)), F.lit(True))
        in_sessions = rows.withColumn(_NEW, F.lag(R.TIME).over(by_time)).withColumn(
            _NEW, F.when(begins, F.col(R.TIME))
        )
        in_sessions = in_sessions.withColumn(_FIRST, F.max(_NEW).over(by_time)).drop(_NEW)
        in_sessions = in_sessions.withColumn(_LAST, F.max(R.TIME).over(Window.partitionBy(*groups, _FIRST)))
        before = epoch.before.drained
        return in_sessions if before is None else in_sessions.where(~self._ends_before(before))
