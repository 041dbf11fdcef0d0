"""The merge of splits: their watermarks' minimum is the global one (docs/reference/streams.md).

Of a queue per split, popped only while none is empty, the minimum of what each split said last is all that is left:
a split that said more waits with what it said, and one that said less is what the others wait for.
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
    """Return the global watermark, which never falls: the minimum of the splits'; None while it is undefined.

    Args:
        value: the global watermark before.
        watermarks: the latest of each split; None: it is declared, and waited for.
        asleep: splits that are left out of the minimum; if all sleep the global watermark stays.
        least: so many splits need a watermark before there is a global one.
    """
    awake: list[EventTime | None] = [at for name, at in watermarks.items() if name not in asleep]
    defined = [at for at in awake if at is not None]
    heard = sum(at is not None for at in watermarks.values())
    waits = not awake or len(defined) < len(awake) or (value is None and heard < least)
    return value if waits else later(value, min(defined))
