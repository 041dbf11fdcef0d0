"""A cold start: a filter names the prefixes that are listed while there is no watermark (docs/explanation/watermarks.md, Cold start and the partition filter)."""

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
    """The state below which a filtered cold start looks at nothing; None without a filter."""
    chosen = definition.partition_filter
    if chosen is None:
        return None
    template = TimeTemplate(chosen.prefix_template)
    if definition.scope == "partition":
        return {"paths": {}, "closed_before": template.step(template.floor(now), -chosen.lookback)}
    return {"path": f"{min(prefixes(template, chosen.lookback, now))}/"}


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
    written = {prefix for path in paths if (prefix := template.prefix(FileKey.of(path).partition))}
    if definition.scope == "partition":
        starts = [start for prefix in written if (start := template.time(prefix))]
        return {"paths": {}, "closed_before": min(starts)} if starts else None
    return {"path": f"{min(written)}/"} if written else None


def cold_prefixes(definition: PathWatermark, now: datetime) -> list[str]:
    """Return the prefixes that are listed, oldest first; none without a filter."""
    chosen = definition.partition_filter
    return prefixes(TimeTemplate(chosen.prefix_template), chosen.lookback, now) if chosen else []


def prefixes(template: TimeTemplate, lookback: int, now: datetime) -> list[str]:
    """Return the prefixes of now and the ``lookback`` units of the template before it, oldest first, in UTC.

    They are lookback + 1; fewer if the template has a hole, so that two units are written alike.

    Raises:
        ConfigurationError: when the look-back reaches beyond year 1.
    """
    current = template.floor(now)
    try:
        starts = [template.step(current, -back) for back in range(lookback, -1, -1)]
    except (OverflowError, ValueError) as error:
        raise ConfigurationError(
            f"lookback: expected no more {template.unit} than there are since year 1, found {lookback}"
        ) from error
    return list(dict.fromkeys(start.strftime(template.text) for start in starts))
