"""The rows of a chunk of a split: on time, late or quarantined."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Generic, Literal, TypeVar

from partitions.stream.event_time import EventTime, Span, before, later
from partitions.stream.split_watermark import raise_watermark

Row = TypeVar("Row")

Reason = Literal["null_event_time", "null_split", "event_time_out_of_range", "future_event_time"]


@dataclass(frozen=True)
class Sifted(Generic[Row]):
    """The rows of one chunk, each in one place, in their order.

    Attributes:
        on_time: rows at or above the watermark before the chunk.
        late: rows below it.
        quarantined: rows without an event time; they move no watermark.
        watermark: the watermark after the chunk; None while no row had an event time.
    """

    on_time: tuple[Row, ...]
    late: tuple[Row, ...]
    quarantined: tuple[Row, ...]
    watermark: EventTime | None


def is_late(at: EventTime, watermark: EventTime | None) -> bool:
    """Return whether an event time lies below a watermark; a row exactly at it is on time."""
    return watermark is not None and at < watermark


def held_before_each(
    watermark: EventTime | None, highest: Iterable[EventTime | None], timeout: Span
) -> tuple[EventTime | None, ...]:
    """Return the watermark before each chunk of a split, and the one after the last chunk.

    Args:
        watermark: the watermark before the first chunk.
        highest: the highest event time of each chunk, in the order of offsets.
        timeout: how far rows may be out of order.
    """
    tops = chain([watermark], (top if top is None else before(top, timeout) for top in highest))
    return tuple(accumulate(tops, later))


def sift(
    rows: Iterable[Row], at: Callable[[Row], EventTime | None], watermark: EventTime | None, timeout: Span
) -> Sifted[Row]:
    """Return the rows of one chunk of one split: on time, late and quarantined.

    Args:
        rows: the rows in their order.
        at: returns the event time of a row.
        watermark: the watermark before the chunk.
        timeout: how far rows may be out of order.
    """
    on_time: list[Row] = []
    late: list[Row] = []
    quarantined: list[Row] = []
    highest: EventTime | None = None
    for row in rows:
        time = at(row)
        if time is None:
            quarantined.append(row)
            continue
        highest = later(highest, time)
        (late if is_late(time, watermark) else on_time).append(row)
    return Sifted(
        tuple(on_time), tuple(late), tuple(quarantined), raise_watermark(watermark, highest, timeout)
    )


def quarantine_reason(at: EventTime | None, split: str | None, latest: EventTime | None) -> Reason | None:
    """Return why a row has no place in a split's order; None if it has one.

    Args:
        at: its event time.
        split: the split that it names.
        latest: the latest plausible event time; None: every one is plausible.
    """
    if at is None:
        return "null_event_time"
    if split is None:
        return "null_split"
    return "future_event_time" if latest is not None and at > latest else None
