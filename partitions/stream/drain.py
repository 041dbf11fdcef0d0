"""Drain the buffer when the global watermark rises: rows strictly below it leave.

A segment of the buffer is never rewritten: its live part is the rows at or above the global watermark, or at
or above the start of the open windows.

See docs/reference/streams.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from partitions.stream.emission_rules import is_below
from partitions.stream.event_time import EventTime
from partitions.stream.state import Segment


@dataclass(frozen=True)
class Drain:
    """The effect of an epoch on the buffer's segments.

    Attributes:
        read: segments with rows that leave.
        emptied: segments whose rows all leave; they can be deleted once the epoch is committed.
        remaining: segments with rows that stay; they are not rewritten.
    """

    read: tuple[Segment, ...]
    emptied: tuple[Segment, ...]
    remaining: tuple[Segment, ...]


def leaves_buffer(at: EventTime, value: EventTime | None) -> bool:
    """Return whether a row leaves the buffer at a global watermark; a row exactly at it stays."""
    return value is not None and bool(is_below(at, value))


def drain_segments(segments: Iterable[Segment], value: EventTime | None) -> Drain:
    """Return the effect of a global watermark on the buffer's segments."""
    buffered = tuple(segments)
    return Drain(
        read=tuple(segment for segment in buffered if leaves_buffer(segment.lowest, value)),
        emptied=tuple(segment for segment in buffered if leaves_buffer(segment.highest, value)),
        remaining=tuple(segment for segment in buffered if not leaves_buffer(segment.highest, value)),
    )


def remaining_segments(
    segments: Iterable[Segment],
    value: EventTime | None,
    live: Mapping[str, tuple[int, EventTime]],
    written: Iterable[Segment] = (),
) -> tuple[Segment, ...]:
    """Return the segments after an epoch: the remaining ones, and those that it wrote.

    Args:
        segments: the buffer's segments before the epoch.
        value: segments with a row below it were read: the global watermark, or the start of the open
        windows.
        live: by name, for each segment that was read and remains: the number of rows that stay, and their
        lowest event time.
        written: segments of the epoch's own rows.
    """
    remaining = (
        replace(segment, rows=live[segment.name][0], lowest=live[segment.name][1])
        if segment.name in live
        else segment
        for segment in segments
        if segment.name in live or not leaves_buffer(segment.lowest, value)
    )
    return (*remaining, *written)
