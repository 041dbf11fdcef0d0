"""Event times as whole numbers: timestamps as microseconds since 1970 (UTC), numbers as they are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from partitions.stream.event_time import EventTime, Span

_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
LOWEST, HIGHEST = -(2**63), 2**63 - 1
"""The range of a 64-bit column."""
FIRST_TIME = (datetime.min.replace(tzinfo=UTC) - _ZERO) // _MICROSECOND
LAST_TIME = (datetime.max.replace(tzinfo=UTC) - _ZERO) // _MICROSECOND
"""The first and the last possible timestamp of an event time: in year 1 and year 9999."""


def ticks(at: EventTime) -> int:
    """Return an event time as a whole number of 64 bits, clipped to that range."""
    whole = (at - _ZERO) // _MICROSECOND if isinstance(at, datetime) else int(at)
    return min(max(whole, LOWEST), HIGHEST)


def span_ticks(span: Span) -> int:
    """Return a distance of event times as a whole number."""
    return span // _MICROSECOND if isinstance(span, timedelta) else int(span)


def event_time(whole: int, *, timed: bool) -> EventTime:
    """Return the event time of :func:`ticks`; ``timed``: a timestamp, aware and in UTC."""
    return _ZERO + timedelta(microseconds=whole) if timed else whole
