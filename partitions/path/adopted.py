"""Derive a watermark from the paths of loaded files, where no run has recorded one.

See docs/reference/state.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from partitions.path.definition import PathWatermark
from partitions.path.position_of_state import above_state
from partitions.path.slices import watermark_of
from partitions.path.state import PathState
from partitions.sentinels import Watermark


def upper_bound(definition: PathWatermark, state: PathState, paths: Iterable[str]) -> Watermark:
    """Return a watermark at or above a state and all of these paths."""
    is_above = above_state(definition, state).is_above
    return watermark_of(definition, state.after_files(path for path in paths if is_above(path)))


def adopted_watermark(definition: PathWatermark, paths: Iterable[str]) -> Watermark:
    """Return the watermark of loaded files, without any other record of them.

    If a filter narrowed the cold start, everything before the oldest loaded partition stays closed.
    """
    state = PathState().after_files(paths)
    if definition.scope == "partition" and definition.partition_filter and definition.template:
        times = [start for name in state.names if (start := definition.template.time(name))]
        state = replace(state, closed_before=min(times, default=None))
    return watermark_of(definition, state)
