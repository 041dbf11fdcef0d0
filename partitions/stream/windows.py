"""Windows of event time that are emitted once, when the global watermark passes their end (docs/streams.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from partitions.stream.event_time import EventTime, Span, after
from partitions.stream.operators import HoppingWindows, TumblingWindows


@dataclass(frozen=True)
class Hop:
    """Windows of one size, one every ``slide``; tumbling where both are equal. They are aligned to UTC midnight, ints to 0.

    Attributes:
        size: of a window.
        slide: from one start to the next, at most the size.
    """

    size: Span
    slide: Span

    def windows(self, at: EventTime) -> Iterator[tuple[EventTime, EventTime]]:
        """Yield start and end of the windows that hold an event time, half-open, earliest first."""
        zero, last = _zero(at), (at - _zero(at)) // self.slide
        for number in range(self._first(at), last + 1):
            yield after(zero, number * self.slide), after(zero, number * self.slide + self.size)

    @classmethod
    def of(cls, window: TumblingWindows | HoppingWindows) -> Hop:
        """Return the windows of a definition."""
        slide = window.slide if isinstance(window, HoppingWindows) else window.size
        return cls(window.size, slide)

    def closed_until(self, value: EventTime) -> EventTime:
        """Return the last end of a window that is closed at a global watermark: rows at or above it are in open windows only."""
        return after(_zero(value), (self._first(value) - 1) * self.slide + self.size)

    def live_from(self, value: EventTime) -> EventTime:
        """Return the earliest event time that an open window can hold: rows below it are needed no more."""
        return after(_zero(value), self._first(value) * self.slide)

    def _first(self, at: EventTime) -> int:
        """The number of the first window that holds an event time; it may begin before the first event time that a datetime can say."""
        number: int = (at - _zero(at) - self.size) // self.slide + 1
        return number


def _zero(at: EventTime) -> EventTime:
    """Where window 0 begins."""
    return datetime(1970, 1, 1, tzinfo=at.tzinfo) if isinstance(at, datetime) else 0
