"""Event times: whole numbers, or aware datetimes in UTC.

See docs/reference/streams.md.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

EventTime = Any
"""An int, or a datetime; one stream has one of them."""

Span = Any
"""A distance of event times: an int beside ints, a timedelta beside datetimes."""


def later(first: EventTime | None, second: EventTime | None) -> EventTime | None:
    """Return the later of two event times; None counts as earlier than all."""
    if first is None or second is None:
        return second if first is None else first
    return max(first, second)


def before(at: EventTime, span: Span) -> EventTime:
    """Return an event time less a span; the first possible datetime if there is none so early."""
    return after(at, -span)


def after(at: EventTime, span: Span) -> EventTime:
    """Return an event time plus a span, which may be negative.

    If there is no such datetime, the first or last possible one.
    """
    try:
        return at + span
    except OverflowError:
        return _extreme(at, last=span > timedelta(0))


def _extreme(at: datetime, *, last: bool) -> datetime:
    return datetime.max.replace(tzinfo=at.tzinfo) if last else datetime.min.replace(tzinfo=at.tzinfo)
