"""The planner of epochs: which chunks of new input go together, and which splits are waited for or asleep (docs/streams.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from partitions.path.definition import Checkpoint
from partitions.plan import Plan, Skip, counted
from partitions.stream.definition import StreamWatermark
from partitions.stream.slices import EpochSlice, Input
from partitions.stream.state import StreamState


@dataclass(frozen=True)
class Chunk:
    """The rows of one version of a table, which no epoch cuts.

    Attributes:
        version: of the table.
        files: that it adds.
        bytes: of these.
        whole: whether it stands for all rows that were there by then.
    """

    version: int
    files: int
    bytes: int
    whole: bool = False


def plan(
    definition: StreamWatermark,
    state: StreamState,
    table: str,
    chunks: Sequence[Chunk],
    now: datetime,
    *,
    dataflow: str,
    number: int,
) -> Plan[EpochSlice]:
    """Return the next epochs.

    Args:
        definition: of the watermark.
        state: after the newest entry.
        table: id of the source's table.
        chunks: of it above the state's position, oldest first, also those without files.
        now: the clock, aware.
        dataflow: its name.
        number: of the newest entry; 0 without one.
    """
    cut = _cut(definition, chunks)
    taken = cut[: definition.max_slices]
    slices = tuple(
        EpochSlice(
            number + place,
            {"epoch": state.epoch, "global": state.value},
            _input(table, group),
            counts=place == len(cut),
        )
        for place, group in enumerate(taken, 1)
    )
    files = sum(slice_.input.files for slice_ in slices)
    why = (
        f"{counted(files, 'file')} of new input in {counted(len(slices), 'epoch')}"
        if slices
        else "there is no new input"
    )
    if state.open_from is not None:
        at = state.open_from.isoformat() if isinstance(state.open_from, datetime) else f"{state.open_from:,}"
        why += f"; windows are open from {at} on, and {counted(state.buffered, 'row')} buffered"
    rest = len(cut) - len(taken)
    skips = [*_skips(definition, state)]
    if rest:
        skips.append(
            Skip(counted(rest, "epoch"), f"a run makes at most {definition.max_slices} (max_slices)")
        )
    return Plan(dataflow, "stream", number, now, why, slices, tuple(skips))


def _cut(definition: StreamWatermark, chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """Chunks in groups of at most so much input, each with one that has files; those without go with the group before, or the first."""
    limits, groups = definition.checkpoint, list[list[Chunk]]()
    for chunk in chunks:
        group = groups[-1] if groups else None
        if group is None or (_has_files(group) and chunk.files and not _fits(group, chunk, limits)):
            groups.append([chunk])
        else:
            group.append(chunk)
    return [group for group in groups if _has_files(group)]


def _has_files(group: Sequence[Chunk]) -> bool:
    return any(chunk.files for chunk in group)


def _fits(group: Sequence[Chunk], chunk: Chunk, limits: Checkpoint) -> bool:
    files = sum(each.files for each in group) + chunk.files
    size = sum(each.bytes for each in group) + chunk.bytes
    return files <= limits.interval_files and size <= limits.interval_bytes


def _input(table: str, group: Sequence[Chunk]) -> Input:
    return Input(
        table,
        group[0].version,
        group[-1].version,
        group[0].whole,
        sum(chunk.files for chunk in group),
        sum(chunk.bytes for chunk in group),
    )


def _skips(definition: StreamWatermark, state: StreamState) -> Sequence[Skip]:
    """Splits that the global watermark waits for, or goes on without."""
    known = state.splits
    awaited = [name for name in definition.splits if name not in known or known[name].watermark is None]
    idle = [
        name
        for name, split in known.items()
        if definition.idle == "exclude" and split.idle >= definition.idle_after
    ]
    skips = [Skip(f"split {name}", "is awaited: it had no row yet") for name in awaited if name not in idle]
    skips += [
        Skip(f"split {name}", f"is idle: it had no rows for {counted(known[name].idle, 'epoch')}")
        for name in idle
    ]
    return skips
