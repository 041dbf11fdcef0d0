"""Windows of event time, emitted once when the global watermark passes their end.

See docs/reference/streams.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from partitions.stream.emission_rules import first_window_start, last_window_start
from partitions.stream.event_time import EventTime, Span
from partitions.stream.operators import HoppingWindows, TumblingWindows
from partitions.stream.ticks import FIRST_TIME, LAST_TIME, event_time, span_ticks, ticks


@dataclass(frozen=True)
class Hop:
    """Windows of one size, one every ``slide``; tumbling if both are equal.

    They are aligned to UTC midnight, whole numbers to 0.

    Attributes:
        size: a window's size.
        slide: from one start to the next, at most the size.
    """

    size: Span
    slide: Span

    def windows(self, at: EventTime) -> Iterator[tuple[EventTime, EventTime]]:
        """Yield start and end of the windows that hold an event time, half-open, earliest first."""
        time, size, slide = _ticks(at), span_ticks(self.size), span_ticks(self.slide)
        for start in range(first_window_start(time, size, slide), last_window_start(time, slide) + 1, slide):
            yield _event_time(start, at), _event_time(start + size, at)

    @classmethod
    def of(cls, window: TumblingWindows | HoppingWindows) -> Hop:
        """Return the windows of a definition."""
        slide = window.slide if isinstance(window, HoppingWindows) else window.size
        return cls(window.size, slide)

    def closed_until(self, value: EventTime) -> EventTime:
        """Return the last end of a closed window at a global watermark.

        Rows at or above it are in open windows only.
        """
        size, slide = span_ticks(self.size), span_ticks(self.slide)
        return _event_time(first_window_start(_ticks(value), size, slide) - slide + size, value)

    def live_from(self, value: EventTime) -> EventTime:
        """Return the earliest event time that an open window can hold; rows below it are no longer needed."""
        return _event_time(
            first_window_start(_ticks(value), span_ticks(self.size), span_ticks(self.slide)), value
        )


def _ticks(at: EventTime) -> int:
    return ticks(at if at.tzinfo else at.replace(tzinfo=UTC)) if isinstance(at, datetime) else int(at)


def _event_time(whole: int, like: EventTime) -> EventTime:
    """Return an event time of the same type as another.

    Bounds of windows beyond the range of datetimes are clipped.
    """
    if not isinstance(like, datetime):
        return whole
    at: datetime = event_time(min(max(whole, FIRST_TIME), LAST_TIME), timed=True)
    return at.replace(tzinfo=like.tzinfo)
