"""A cold start: a filter names the prefixes that are listed while there is no watermark (docs/watermarks.md, Cold start and the partition filter)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from partitions.path.definition import PathWatermark
from partitions.path.order import FileKey
from partitions.path.slices import watermark_of
from partitions.path.state import PathState
from partitions.path.time_template import TimeTemplate
from partitions.sentinels import Watermark


def cold_start(definition: PathWatermark, now: datetime) -> Watermark | None:
    """The state below which a filtered cold start looks at nothing; None without a filter."""
    chosen = definition.partition_filter
    if chosen is None:
        return None
    template = TimeTemplate(chosen.prefix_template)
    if definition.scope == "partition":
        return {"paths": {}, "closed_before": template.step(template.floor(now), -chosen.lookback)}
    return {"path": f"{min(template.prefixes(chosen.lookback, now))}/"}


def first_state(definition: PathWatermark, state: PathState, since: Watermark | None) -> Watermark:
    """Return what a slice builds on: with scope partition a filtered cold start closes what lies before it.

    Args:
        definition: what the user declared.
        state: what is committed.
        since: where a filtered cold start began; None if the slice is of none.
    """
    if since is not None and definition.scope == "partition" and state.status == "initial":
        return since
    return watermark_of(definition, state)


def earliest_cold_start(definition: PathWatermark, paths: Iterable[str]) -> Watermark | None:
    """Return where a filtered cold start began that has loaded these files, as far as they tell: it looks at prefixes as a whole.

    Returns:
        None without a filter, or if it leads to none of the files.
    """
    chosen = definition.partition_filter
    if chosen is None:
        return None
    template = TimeTemplate(chosen.prefix_template)
    prefixes = {prefix for path in paths if (prefix := template.prefix(FileKey.of(path).partition))}
    if definition.scope == "partition":
        starts = [start for prefix in prefixes if (start := template.time(prefix))]
        return {"paths": {}, "closed_before": min(starts)} if starts else None
    return {"path": f"{min(prefixes)}/"} if prefixes else None


def cold_prefixes(definition: PathWatermark, now: datetime) -> list[str]:
    """Return the prefixes that are listed, oldest first; none without a filter."""
    chosen = definition.partition_filter
    return TimeTemplate(chosen.prefix_template).prefixes(chosen.lookback, now) if chosen else []
