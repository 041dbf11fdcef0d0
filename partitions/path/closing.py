"""Close partitions of scope ``partition`` some time after their end.

See docs/explanation/watermarks.md, Scope. The time template parses a partition's time. Files of a closed
partition are late, not new.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from partitions.path.definition import PathWatermark
from partitions.path.order import FileKey
from partitions.path.source import SourceFile
from partitions.path.state import PathState
from partitions.path.time_template import TimeTemplate
from partitions.plan import pluralize
from partitions.sentinels import Watermark


def close_old_partitions(definition: PathWatermark, state: PathState, now: datetime) -> Watermark:
    """Return the watermark that closes the partitions that ended ``close_after`` ago, never the newest.

    Only the last slice may close, when no older file is left to load.
    """
    template, closed_before = definition.template, state.closed_before
    if template and definition.close_after is not None:
        times = [start for name in state.names if (start := template.time(name))]
        if times:
            limit = min(template.floor(now - definition.close_after), max(times))
            closed_before = limit if closed_before is None else max(closed_before, limit)
    if template and closed_before:
        return {"paths": _open(template, state, closed_before), "closed_before": closed_before}
    return state.partition_watermark()


def unclosable_warnings(definition: PathWatermark, files: Sequence[SourceFile]) -> Iterator[str]:
    """Yield a warning if partitions do not fit the time template, so that they never close."""
    if unparsed := _unparsed(definition, files):
        named = repr(unparsed[0]) if unparsed[0] else "the root"
        single = len(unparsed) == 1
        yield (
            f"{pluralize(len(unparsed), 'partition')} {'does' if single else 'do'} not fit the time template and never"
            f" {'closes' if single else 'close'}{':' if single else ', such as'} {named}"
        )


def _unparsed(definition: PathWatermark, files: Sequence[SourceFile]) -> list[str]:
    template = definition.template
    if definition.scope == "global" or template is None:
        return []
    partitions = dict.fromkeys(FileKey.of(file.path).partition for file in files)
    return [partition for partition in partitions if template.time(partition) is None]


def _open(template: TimeTemplate, state: PathState, closed_before: datetime) -> dict[str, str]:
    return {
        name: last
        for name, last in state.names.items()
        if not ((start := template.time(name)) and start < closed_before)
    }
