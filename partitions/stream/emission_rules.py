"""Decide which rows and windows a stream emits as its global watermark rises.

Each rule is one expression over ticks (:mod:`partitions.stream.ticks`). It takes whole numbers or Spark
columns, and returns a number, a truth value, or a column of them. So the planner and Spark follow the same
rule.

See docs/reference/streams.md.
"""

from __future__ import annotations

from typing import Any

Ticks = Any
"""Whole numbers: an ``int``, or a column of Spark's."""

Condition = Any
"""A ``bool``, or a column of Spark's."""


def is_below(time: Ticks, watermark: Ticks) -> Condition:
    """Return whether an event time lies below a watermark: the row is late, or leaves the buffer.

    A row exactly at the watermark does neither.
    """
    return time < watermark


def first_window_start(time: Ticks, size: int, slide: int) -> Ticks:
    """Return the start of the earliest window that holds an event time.

    Windows start at multiples of ``slide``.
    """
    return time - (size - slide) - _modulo(time - size, slide)


def last_window_start(time: Ticks, slide: int) -> Ticks:
    """Return the start of the latest window that holds an event time."""
    return time - _modulo(time, slide)


def is_window_closed(end: Ticks, watermark: Ticks) -> Condition:
    """Return whether a window with this exclusive end is closed: any further row of it would be late."""
    return end <= watermark


def begins_session(step: Ticks, gap: int) -> Condition:
    """Return whether a row starts a session, by its distance from the row before in its group."""
    return step > gap


def is_session_closed(last: Ticks, watermark: int, gap: int) -> Condition:
    """Return whether a session with this last event time is closed: any further row of it would be late."""
    return last < watermark - gap


def leaves_over_window(place: Ticks, rows: Ticks, ahead: int) -> Condition:
    """Return whether a row leaves an over-window: it has all rows that its values look ahead to.

    Args:
        place: the row's number in its partition, from 1.
        rows: the number of rows of the partition below the global watermark.
        ahead: the number of rows that the values look ahead.
    """
    return place <= rows - ahead


def is_carried(place: Ticks, already_left: Ticks, rows: Ticks, ahead: int, behind: int) -> Condition:
    """Return whether a row of an over-window is kept for the values of later rows.

    Args:
        place: the row's number in its partition, from 1.
        already_left: the number of rows of the partition that left before.
        rows: the number of rows of the partition below the global watermark.
        ahead: the number of rows that the values look ahead.
        behind: the number of rows that the values look back.
    """
    return (place > already_left - behind) & (place > rows - ahead - behind)


def _modulo(number: Ticks, divisor: int) -> Ticks:
    """Return a remainder of at least 0; Spark's ``%`` has the sign of the number."""
    return (number % divisor + divisor) % divisor
