"""Find where a listing starts, and where the late-file sweep looks.

See docs/explanation/watermarks.md, Listing.
"""

from __future__ import annotations

from datetime import datetime

from partitions.path.cold_start import cold_prefixes
from partitions.path.definition import PathWatermark
from partitions.path.layout import reaches_leaves
from partitions.path.listing_positions import (
    AbovePartitions,
    AbovePath,
    AtOrBelow,
    FromBeginning,
    ListingStart,
)
from partitions.path.order import FileKey
from partitions.path.state import PathState


def listing_start(
    definition: PathWatermark, state: PathState, now: datetime, since: PathState | None = None
) -> ListingStart:
    """Return where a listing starts.

    The partition filter narrows only a cold start: later it would skip files in a gap.

    Args:
        definition: the user's definition.
        state: the committed state.
        now: the clock of this run, aware.
        since: where a filtered cold start began (:func:`partitions.path.cold_start.cold_start`).
    """
    if definition.tracking == "set" and state.status != "initial":
        return above_state(definition, since) if since else FromBeginning()
    if state.status == "initial":
        return FromBeginning.within(cold_prefixes(definition, now))
    return above_state(definition, state)


def sweep_start(definition: PathWatermark, state: PathState, since: PathState | None) -> ListingStart:
    """Return the position of the late-file sweep: from the cold start up to the watermark."""
    return AtOrBelow(
        above_state(definition, state), above_state(definition, since) if since else FromBeginning()
    )


def start_between(start: str, end: str) -> ListingStart:
    """Return the position of files in partitions from ``start`` to before ``end``, in byte order."""
    return AtOrBelow(AbovePath(FileKey(end, "")), AbovePath(FileKey(start, "")))


def above_state(definition: PathWatermark, state: PathState) -> ListingStart:
    """Return the position directly above the committed state."""
    leaf = definition.layout == "leaf"
    if definition.scope == "partition":
        leaf = leaf or all(reaches_leaves(definition, partition) for partition in state.names if partition)
        return AbovePartitions(state.names, definition.template, state.closed_before, leaf)
    if state.last is None:
        return FromBeginning()
    return AbovePath(state.last, leaf or reaches_leaves(definition, state.last.partition))
