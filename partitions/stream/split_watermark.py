"""Raise the watermark of a split by its rows (docs/reference/streams.md).

The watermark before a chunk judges its rows; late rows raise the watermark, too. So the watermark before a
chunk is the highest event time of all earlier chunks less the timeout. Such prefix maxima do not depend on
where epochs are cut.
"""

from __future__ import annotations

from partitions.stream.event_time import EventTime, Span, before, later


def raise_watermark(
    watermark: EventTime | None, highest: EventTime | None, timeout: Span
) -> EventTime | None:
    """Return the watermark after a chunk.

    Args:
        watermark: the split's watermark before the chunk.
        highest: the highest event time of the chunk's rows, including late ones; None: no row counts.
        timeout: how far rows may be out of order; a longer one never lowers the watermark.
    """
    return watermark if highest is None else later(watermark, before(highest, timeout))
