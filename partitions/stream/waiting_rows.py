"""Buffered rows of a stream, and what they wait for (docs/reference/streams.md)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from partitions.plan import pluralize
from partitions.stream.definition import StreamWatermark
from partitions.stream.ending import pending_epoch
from partitions.stream.event_time import EventTime
from partitions.stream.idle_splits import excluded_splits
from partitions.stream.splits import ONLY_SPLIT
from partitions.stream.state import Split, StreamState

Reason = Literal["next_run", "awaited", "all_idle", "too_few_splits", "slowest"]

_NAMED = 3


class NamedSplit(NamedTuple):
    """A split by its name.

    Attributes:
        name: empty in a stream of one split.
        split: its watermark and silence.
    """

    name: str
    split: Split


@dataclass(frozen=True)
class WaitingRows:
    """Buffered rows, and what they wait for.

    Attributes:
        rows: their number, at least 1.
        epoch: the oldest epoch with rows that still wait, by the number of its entry; None if unknown.
        lowest: a lower bound of their event times; None if unknown.
        reason: why they wait. ``next_run``: they do not, the next run lets them out. ``awaited``: splits
        without a row yet. ``all_idle``: no split has new rows. ``too_few_splits``: ``min_splits``.
        ``slowest``: the splits whose watermark is the global one.
        splits: the splits that the reason is about, by name.
    """

    rows: int
    epoch: int | None
    lowest: EventTime | None
    reason: Reason
    splits: tuple[NamedSplit, ...] = ()

    @property
    def in_words(self) -> str:
        """What the rows wait for, after "wait for"; of ``next_run`` the next run."""
        names = ", ".join(name for name, _ in self.splits[:_NAMED])
        more = f" and {len(self.splits) - _NAMED:,} more" if len(self.splits) > _NAMED else ""
        subject = f"split{'' if len(self.splits) == 1 else 's'} {names}{more}"
        match self.reason:
            case "next_run":
                return "the next run, with which they leave"
            case "awaited":
                return f"the first row of {subject}"
            case "all_idle":
                return "new rows: all splits are idle"
            case "too_few_splits":
                return f"more splits: {pluralize(len(self.splits), 'split')} so far (min_splits)"
            case "slowest" if self.splits[0].name == ONLY_SPLIT:
                return f"newer rows: the watermark is at {time_in_words(self.splits[0].split.watermark)}"
            case "slowest":
                at = time_in_words(self.splits[0].split.watermark)
                return f"{subject}, the slowest, at {at}{_silence(self.splits[0].split)}"


def waiting_rows(definition: StreamWatermark, state: StreamState) -> WaitingRows | None:
    """Return what the buffered rows wait for; None if no row waits."""
    if not state.buffered:
        return None
    lowest = min((segment.lowest for segment in state.segments), default=None)
    epoch = min((int(segment.name) for segment in state.segments), default=None)
    reason, splits = _blockers(definition, state)
    return WaitingRows(state.buffered, epoch, lowest, reason, tuple(splits))


def _blockers(definition: StreamWatermark, state: StreamState) -> tuple[Reason, list[NamedSplit]]:
    if state.flush is not None or pending_epoch(state) is not None:
        return "next_run", []
    awake = awake_splits(definition, state)
    awaited = [named for named in awake if named.split.watermark is None]
    if awaited:
        return "awaited", awaited
    if not awake:
        return "all_idle", []
    if state.value is None:
        return "too_few_splits", awake
    return "slowest", slowest_splits(definition, state)


def awake_splits(definition: StreamWatermark, state: StreamState) -> list[NamedSplit]:
    """Return the splits that the global watermark waits for, by name, declared ones included."""
    options = definition.policy
    splits = {**dict.fromkeys(options.declared, Split()), **state.splits}
    excluded = excluded_splits(options, {name: split.idle for name, split in splits.items()})
    return [NamedSplit(name, splits[name]) for name in sorted(splits) if name not in excluded]


def slowest_splits(definition: StreamWatermark, state: StreamState) -> list[NamedSplit]:
    """Return the splits that hold the global watermark back, slowest first; none while it is undefined."""
    if state.value is None:
        return []
    behind = [
        named
        for named in awake_splits(definition, state)
        if named.split.watermark is not None and named.split.watermark <= state.value
    ]
    return sorted(behind, key=lambda named: (named.split.watermark, named.name))


def time_in_words(at: EventTime) -> str:
    """Return an event time for people."""
    return at.isoformat() if isinstance(at, datetime) else f"{at:,}"


def _silence(split: Split) -> str:
    return f", without rows for {pluralize(split.idle, 'epoch')}" if split.idle else ""
