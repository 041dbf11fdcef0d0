"""Raise the watermark of a split by its rows (docs/reference/streams.md).

A chunk is judged by the watermark held before it, and late rows raise the watermark, too. So the watermark before a chunk is the
highest event time of all earlier chunks less the timeout: prefix maxima, which do not depend on where epochs are cut.
"""

from __future__ import annotations

from partitions.stream.event_time import EventTime, Span, before, later


def raised(watermark: EventTime | None, highest: EventTime | None, timeout: Span) -> EventTime | None:
    """Return the watermark after a chunk.

    Args:
        watermark: held before it.
        highest: event time of all its rows, late ones too; None: it has no row that counts.
        timeout: how far rows may be out of order; a longer one never lowers the watermark.
    """
    return watermark if highest is None else later(watermark, before(highest, timeout))
