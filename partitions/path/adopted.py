"""The watermark that paths of loaded files tell, where no run has recorded one (docs/reference/state.md)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from partitions.path.definition import PathWatermark
from partitions.path.position_of_state import above_state
from partitions.path.slices import watermark_of
from partitions.path.state import PathState
from partitions.sentinels import Watermark


def upper_bound(definition: PathWatermark, state: PathState, paths: Iterable[str]) -> Watermark:
    """Return a watermark at or above all that a state covers, and at or above these paths."""
    above = above_state(definition, state).above
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
