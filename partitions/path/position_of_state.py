"""Where a listing starts, and where the sweep of late files looks (docs/explanation/watermarks.md, Listing)."""

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


def position(
    definition: PathWatermark, state: PathState, now: datetime, since: PathState | None = None
) -> ListingStart:
    """Where a listing starts. The partition filter narrows a cold start only: later it would lose a gap.

    Args:
        definition: what the user declared.
        state: what is committed.
        now: the clock of this run, aware.
        since: where a filtered cold start began (:func:`partitions.path.cold_start.cold_start`).
    """
    if definition.tracking == "set" and state.status != "initial":
        return above_state(definition, since) if since else FromBeginning()
    if state.status == "initial":
        return FromBeginning.within(cold_prefixes(definition, now))
    return above_state(definition, state)


def at_or_below(definition: PathWatermark, state: PathState, since: PathState | None) -> ListingStart:
    """Where the late-file sweep looks: at everything from the cold start's beginning up to the watermark."""
    return AtOrBelow(
        above_state(definition, state), above_state(definition, since) if since else FromBeginning()
    )


def between(start: str, end: str) -> ListingStart:
    """Where the files of partitions lie that are at or above ``start`` and below ``end``, in byte order."""
    return AtOrBelow(AbovePath(FileKey(end, "")), AbovePath(FileKey(start, "")))


def above_state(definition: PathWatermark, state: PathState) -> ListingStart:
    """Return the position right above what is committed."""
    leaf = definition.layout == "leaf"
    if definition.scope == "partition":
        leaf = leaf or all(reaches_leaves(definition, partition) for partition in state.names if partition)
        return AbovePartitions(state.names, definition.template, state.closed_before, leaf)
    if state.last is None:
        return FromBeginning()
    return AbovePath(state.last, leaf or reaches_leaves(definition, state.last.partition))
