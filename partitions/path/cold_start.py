"""A filtered cold start: without a watermark, only the filter's prefixes are listed.

See docs/explanation/watermarks.md, Cold start and the partition filter.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from partitions.errors import ConfigurationError
from partitions.path.definition import PathWatermark
from partitions.path.order import FileKey
from partitions.path.slices import watermark_of
from partitions.path.state import PathState
from partitions.path.time_template import TimeTemplate
from partitions.sentinels import Watermark


def cold_start(definition: PathWatermark, now: datetime) -> Watermark | None:
    """Return the state that a filtered cold start begins above; None without a filter."""
    chosen = definition.partition_filter
    if chosen is None:
        return None
    template = TimeTemplate(chosen.prefix_template)
    if definition.scope == "partition":
        return {"paths": {}, "closed_before": template.step(template.floor(now), -chosen.lookback)}
    return {"path": f"{min(prefixes(template, chosen.lookback, now))}/"}


def first_state(definition: PathWatermark, state: PathState, since: Watermark | None) -> Watermark:
    """Return the state below the first slice.

    With scope partition a filtered cold start closes everything before its prefixes.

    Args:
        definition: the user's definition.
        state: the committed state.
        since: where a filtered cold start began; None for any other run.
    """
    if since is not None and definition.scope == "partition" and state.status == "initial":
        return since
    return watermark_of(definition, state)


def earliest_cold_start(definition: PathWatermark, paths: Iterable[str]) -> Watermark | None:
    """Return where a filtered cold start must have begun to load these files.

    A cold start lists whole prefixes.

    Returns:
        None without a filter, or if it matches none of the files.
    """
    chosen = definition.partition_filter
    if chosen is None:
        return None
    template = TimeTemplate(chosen.prefix_template)
    template_prefixes = {prefix for path in paths if (prefix := template.prefix(FileKey.of(path).partition))}
    if definition.scope == "partition":
        starts = [start for prefix in template_prefixes if (start := template.time(prefix))]
        return {"paths": {}, "closed_before": min(starts)} if starts else None
    return {"path": f"{min(template_prefixes)}/"} if template_prefixes else None


def cold_prefixes(definition: PathWatermark, now: datetime) -> list[str]:
    """Return the prefixes that a cold start lists, oldest first; none without a filter."""
    chosen = definition.partition_filter
    return prefixes(TimeTemplate(chosen.prefix_template), chosen.lookback, now) if chosen else []


def prefixes(template: TimeTemplate, lookback: int, now: datetime) -> list[str]:
    """Return the prefixes of now and of the ``lookback`` units before it, oldest first, in UTC.

    There are lookback + 1; fewer if the template leaves out a unit, so that two prefixes are equal.

    Raises:
        ConfigurationError: the look-back reaches beyond year 1.
    """
    current = template.floor(now)
    try:
        starts = [template.step(current, -back) for back in range(lookback, -1, -1)]
    except (OverflowError, ValueError) as error:
        raise ConfigurationError(
            f"lookback: expected no more {template.unit} than there are since year 1, found {lookback}"
        ) from error
    return list(dict.fromkeys(start.strftime(template.text) for start in starts))
