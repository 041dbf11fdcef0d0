"""A cold start: a filter names the prefixes that are listed while there is no watermark (docs/watermarks.md, Cold start and the partition filter)."""

from __future__ import annotations

from datetime import datetime

from partitions.path.definition import PathWatermark
from partitions.path.template import TimeTemplate
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


def cold_prefixes(definition: PathWatermark, now: datetime) -> list[str]:
    """Return the prefixes that are listed, oldest first; none without a filter."""
    chosen = definition.partition_filter
    return TimeTemplate(chosen.prefix_template).prefixes(chosen.lookback, now) if chosen else []
