"""When a partition of scope ``partition`` closes: what its template says of its time, and since when nothing of it is new (docs/explanation/watermarks.md, Scope)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from partitions.path.definition import PathWatermark
from partitions.path.order import FileKey
from partitions.path.source import SourceFile
from partitions.path.state import PathState
from partitions.path.time_template import TimeTemplate
from partitions.plan import counted
from partitions.sentinels import Watermark


def closed(definition: PathWatermark, state: PathState, now: datetime) -> Watermark:
    """Return the watermark that closes what ended ``close_after`` ago, never the newest; only with the last slice, when no older file is left over."""
    template, closed = definition.template, state.closed_before
    if template and definition.close_after is not None:
        times = [start for name in state.names if (start := template.time(name))]
        if times:
            limit = min(template.floor(now - definition.close_after), max(times))
            closed = limit if closed is None else max(closed, limit)
    if template and closed:
        return {"paths": _open(template, state, closed), "closed_before": closed}
    return state.partition_watermark()


def never_closing(definition: PathWatermark, files: Sequence[SourceFile]) -> Iterator[str]:
    """Yield a warning that names a partition which the time template does not parse."""
    if unparsed := _unparsed(definition, files):
        named = repr(unparsed[0]) if unparsed[0] else "the root"
        single = len(unparsed) == 1
        yield (
            f"{counted(len(unparsed), 'partition')} {'does' if single else 'do'} not fit the time template and never"
            f" {'closes' if single else 'close'}{':' if single else ', such as'} {named}"
        )


def _unparsed(definition: PathWatermark, files: Sequence[SourceFile]) -> list[str]:
    template = definition.template
    if definition.scope == "global" or template is None:
        return []
    partitions = dict.fromkeys(FileKey.of(file.path).partition for file in files)
    return [partition for partition in partitions if template.time(partition) is None]


def _open(template: TimeTemplate, state: PathState, closed: datetime) -> dict[str, str]:
    return {
        name: last
        for name, last in state.names.items()
        if not ((start := template.time(name)) and start < closed)
    }
