"""Count the epochs without rows of each split, and apply ``watermark.idle``.

``stall`` waits for an idle split, ``exclude`` goes on without it, ``adopt_max`` raises its watermark to
the highest of all splits.

See docs/reference/streams.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from partitions.stream.event_time import EventTime
from partitions.stream.split_changes import highest
from partitions.stream.splits import SplitOptions
from partitions.stream.state import StreamState


def idle_epochs(state: StreamState, with_rows: Collection[str], *, counts: bool) -> dict[str, int]:
    """Return the number of consecutive epochs without rows of each split.

    Args:
        state: as the epoch was opened.
        with_rows: the splits that had rows in it, including late ones.
        counts: whether the epoch read all present input; one that left some unread makes no split idle.
    """
    return {
        name: 0 if name in with_rows else split.idle + int(counts) for name, split in state.splits.items()
    }


def excluded_splits(splits: SplitOptions, idle: Mapping[str, int]) -> set[str]:
    """Return the idle splits that the global watermark leaves out (``exclude``)."""
    if splits.idle != "exclude":
        return set()
    return {name for name, epochs in idle.items() if epochs >= splits.idle_after}


def adopted_watermarks(
    splits: SplitOptions, idle: Mapping[str, int], watermarks: Mapping[str, EventTime | None]
) -> dict[str, EventTime | None]:
    """Return the watermarks that idle splits take over (``adopt_max``): the highest of all."""
    if splits.idle != "adopt_max":
        return {}
    return dict.fromkeys(
        (name for name, epochs in idle.items() if epochs >= splits.idle_after), highest(watermarks.values())
    )
