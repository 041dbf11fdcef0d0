"""A replay in place of windows: all that intersect a range, each whole, as forced windows (docs/replay.md, Windows)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from partitions.dataflow import Dataflow
from partitions.instants import as_datetime
from partitions.plan import Plan, Skip
from partitions.request import Forced, Part
from partitions.window.slices import WindowSlice
from resources.loop.loop import Loop
from resources.platform import Platform
from resources.replay.asked import Asked, asked_windows
from resources.replay.reading import Piece
from resources.replay.under_way import InPlace, begin, done_keys, find

_ALL = 1_000_000
"""Slices of one plan: a replay is not cut short by what a run may take on."""


@dataclass(frozen=True)
class WindowReplay:
    """Windows of a range; attributes as of :class:`resources.replay.columns.ColumnReplay`."""

    platform: Platform
    dataflow: Dataflow
    asked: Asked
    now: datetime

    def check(self) -> None:
        """Raise ConfigurationError if the range is none of windows."""
        asked_windows(self.dataflow, self.asked, self.now)

    def plan(self) -> Plan[Any]:
        """Return the slices that are still to be read. Looks up units only."""
        return self._plan(find(self.platform.log, self.dataflow.name, self.asked))[0]

    def pieces(self, loop: Loop[Any]) -> tuple[Sequence[Piece], Sequence[str]]:  # noqa: ARG002 - of all replays
        """Begin, or go on: return all slices as chunks."""
        log, name = self.platform.log, self.dataflow.name
        begun = find(log, name, self.asked) or begin(log, name, self.asked)
        made, done = self._plan(begun)
        pieces = []
        for slice_ in (*done, *made.slices):
            lower, upper = _bounds(slice_)
            request = partial(Forced, _part(slice_), self.asked.words)
            zone = self.dataflow.window.zone
            bounds = as_datetime(lower, zone), as_datetime(upper, zone)
            pieces.append(Piece(*bounds, request, self.asked.words, done=slice_ in done))
        return pieces, made.warnings

    def _plan(self, begun: InPlace | None) -> tuple[Plan[Any], Sequence[WindowSlice]]:
        """The plan of what is left, and the slices that are done."""
        log, kind = self.platform.log, self.platform.kind(unlimited(self.dataflow))
        newest = log.newest(self.dataflow.name)
        asked = asked_windows(self.dataflow, self.asked, self.now)
        made = kind.plan(newest, self.now, Forced(Part((asked,))))
        known = done_keys(log, kind, begun)
        done = [slice_ for slice_ in made.slices if known.issuperset(slice_.keys)]
        left = tuple(slice_ for slice_ in made.slices if slice_ not in done)
        zone = self.dataflow.window.zone
        skips = [Skip(slice_.works[0].label(zone), "done before") for slice_ in done]
        return replace(made, slices=left, skips=(*skips, *made.skips)), done


def unlimited(dataflow: Dataflow) -> Dataflow:
    """Return the dataflow whose plans hold all that is asked for, however much."""
    update = {"max_slices": _ALL, "parallelism": None}
    return dataflow.model_copy(update={"watermark": dataflow.window.model_copy(update=update)})


def _bounds(slice_: WindowSlice) -> tuple[int, int]:
    starts = [work.start for work in slice_.works if work.start is not None]
    ends = [work.end for work in slice_.works if work.end is not None]
    return min(starts), max(ends)


def _part(slice_: WindowSlice) -> Part:
    """The windows of a slice: stretches that follow each other are one."""
    spans: list[tuple[int, int]] = []
    for start, end in sorted({(work.start or 0, work.end or 0) for work in slice_.works}):
        if spans and spans[-1][1] == start:
            spans[-1] = spans[-1][0], end
        else:
            spans.append((start, end))
    return Part(tuple(spans), frozenset(work.unit for work in slice_.works))
