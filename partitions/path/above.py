"""What lies above a state, and what at or below it: where a listing starts, and where the sweep looks (docs/watermarks.md, Listing)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from partitions.path.cold_start import cold_prefixes
from partitions.path.definition import PathWatermark
from partitions.path.layout import reaches_leaves
from partitions.path.listing_bounds import AbovePartitions, AbovePath, AtOrBelow, FromBeginning, Position
from partitions.path.slices import watermark_of
from partitions.path.state import PathState
from partitions.sentinels import Watermark


def position(
    definition: PathWatermark, state: PathState, now: datetime, since: PathState | None = None
) -> Position:
    """Where a listing starts. The partition filter narrows a cold start only: later it would lose a gap.

    Args:
        definition: what the user declared.
        state: what is committed.
        now: the clock of this run, aware.
        since: where a filtered cold start began (:func:`partitions.path.cold_start.cold_start`).
    """
    if definition.tracking == "set" and state.status != "initial":
        return _above(definition, since) if since else FromBeginning()
    if state.status == "initial":
        return FromBeginning.within(cold_prefixes(definition, now))
    return _above(definition, state)


def at_or_below(definition: PathWatermark, state: PathState, since: PathState | None) -> Position:
    """Where the late-file sweep looks: at everything from the cold start's beginning up to the watermark."""
    return AtOrBelow(_above(definition, state), _above(definition, since) if since else FromBeginning())


def upper_bound(definition: PathWatermark, state: PathState, paths: Iterable[str]) -> Watermark:
    """Return a watermark at or above all that a state covers, and at or above these paths."""
    above = _above(definition, state).above
    return watermark_of(definition, state.processed(path for path in paths if above(path)))


def adopted(definition: PathWatermark, paths: Iterable[str]) -> Watermark:
    """The watermark that loaded files tell, without any other record of them.

    If a filter has narrowed the cold start, all before the oldest partition that was loaded stays closed.
    """
    state = PathState().processed(paths)
    if definition.scope == "partition" and definition.partition_filter and definition.template:
        times = [start for name in state.names if (start := definition.template.time(name))]
        state = replace(state, closed_before=min(times, default=None))
    return watermark_of(definition, state)


def _above(definition: PathWatermark, state: PathState) -> Position:
    leaf = definition.layout == "leaf"
    if definition.scope == "partition":
        leaf = leaf or all(reaches_leaves(definition, partition) for partition in state.names if partition)
        return AbovePartitions(state.names, definition.template, state.closed_before, leaf)
    if state.last is None:
        return FromBeginning()
    return AbovePath(state.last, leaf or reaches_leaves(definition, state.last.partition))
