"""Merge the watermarks of splits: their minimum is the global watermark (docs/reference/streams.md).

Think of a queue per split that is popped only while none is empty. The minimum of the latest watermarks is
all that is left of it: a split that is ahead waits, and the others wait for a split that is behind.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from partitions.stream.event_time import EventTime, later


def global_watermark(
    value: EventTime | None,
    watermarks: Mapping[str, EventTime | None],
    asleep: Collection[str] = (),
    least: int = 0,
) -> EventTime | None:
    """Return the minimum of the splits' watermarks, which never falls; None while it is undefined.

    Args:
        value: the global watermark before.
        watermarks: the latest of each split; None: the split is declared, and waited for.
        asleep: splits that the minimum leaves out; if all are asleep, the global watermark stays.
        least: the number of splits that need a watermark before there is a global one.
    """
    awake: list[EventTime | None] = [at for name, at in watermarks.items() if name not in asleep]
    defined = [at for at in awake if at is not None]
    heard = sum(at is not None for at in watermarks.values())
    waits = not awake or len(defined) < len(awake) or (value is None and heard < least)
    return value if waits else later(value, min(defined))
