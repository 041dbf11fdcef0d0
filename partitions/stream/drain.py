"""What leaves the buffer when the global watermark rises: rows strictly below it (docs/reference/streams.md).

A segment of the buffer is never rewritten: its live part are the rows at or above the global watermark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from partitions.stream.emission_rules import is_below
from partitions.stream.event_time import EventTime
from partitions.stream.state import Segment


@dataclass(frozen=True)
class Drain:
    """What an epoch does to the buffer.

    Attributes:
        read: segments that hold rows which leave it.
        gone: segments that hold no others; they can be deleted once the epoch is committed.
        kept: segments that stay, as they are.
    """

    read: tuple[Segment, ...]
    gone: tuple[Segment, ...]
    kept: tuple[Segment, ...]


def leaves(at: EventTime, value: EventTime | None) -> bool:
    """Return whether a row leaves the buffer at a global watermark; a row exactly at it stays."""
    return value is not None and bool(is_below(at, value))


def drained(segments: Iterable[Segment], value: EventTime | None) -> Drain:
    """Return what a global watermark does to the buffer's segments."""
    given = tuple(segments)
    return Drain(
        read=tuple(segment for segment in given if leaves(segment.lowest, value)),
        gone=tuple(segment for segment in given if leaves(segment.highest, value)),
        kept=tuple(segment for segment in given if not leaves(segment.highest, value)),
    )


def carried(
    segments: Iterable[Segment],
    value: EventTime | None,
    live: Mapping[str, tuple[int, EventTime]],
    written: Iterable[Segment] = (),
) -> tuple[Segment, ...]:
    """Return the segments after an epoch: those that are not gone, by reference, and what it wrote.

    Args:
        segments: before it.
        value: those with a row below it were read: the global watermark, or from where windows are open.
        live: of each segment that was read and is not gone, by name: rows that stay, and their lowest event time.
        written: segments of the epoch's own rows.
    """
    kept = (
        replace(segment, rows=live[segment.name][0], lowest=live[segment.name][1])
        if segment.name in live
        else segment
        for segment in segments
        if segment.name in live or not leaves(segment.lowest, value)
    )
    return (*kept, *written)
