"""A replay in place of windows: all that intersect a range, each whole, as forced windows (docs/replay.md, Windows)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.instants import as_datetime
from partitions.plan import Plan
from partitions.request import Forced, Part
from partitions.window.slices import WindowSlice
from partitions.window.work_unit import WorkUnit
from resources.kinds.kind import Kind
from resources.replay.asked import asked_windows
from resources.replay.parts import PartsReplay

_ALL = 1_000_000
"""Slices of one plan: a replay is not cut short by what a run may take on."""


class WindowReplay(PartsReplay):
    """Windows of a range."""

    def check(self) -> None:
        """Raise ConfigurationError if the range is none of windows."""
        asked_windows(self.dataflow, self.asked, self.now)

    def planned(self) -> tuple[Kind[Any], Plan[WindowSlice]]:
        """Look up units only."""
        kind, newest = (
            self.platform.kind(unlimited(self.dataflow)),
            self.platform.log.newest(self.dataflow.name),
        )
        asked = asked_windows(self.dataflow, self.asked, self.now)
        return kind, kind.plan(newest, self.now, Forced(Part((asked,))))

    def label(self, slice_: WindowSlice) -> str:
        """Its first work unit."""
        return slice_.works[0].label(self.dataflow.window.zone)

    def bounds(self, slice_: WindowSlice) -> tuple[datetime, datetime]:
        """From the first window to the last."""
        lower, upper = _bounds(slice_)
        zone = self.dataflow.window.zone
        return as_datetime(lower, zone), as_datetime(upper, zone)

    def request(self, slice_: WindowSlice, since: int) -> Forced:  # noqa: ARG002 - entries of forced windows tell it by their reason
        """Its windows and units."""
        return Forced(part_of(slice_.works), self.asked.words)


def unlimited(dataflow: Dataflow) -> Dataflow:
    """Return the dataflow whose plans hold all that is asked for, however much."""
    update = {"max_slices": _ALL, "parallelism": None}
    return dataflow.model_copy(update={"watermark": dataflow.window.model_copy(update=update)})


def _bounds(slice_: WindowSlice) -> tuple[int, int]:
    starts = [work.start for work in slice_.works if work.start is not None]
    ends = [work.end for work in slice_.works if work.end is not None]
    return min(starts), max(ends)


def part_of(works: Collection[WorkUnit]) -> Part:
    """Return the windows of work units, with all of their units: stretches that follow each other are one."""
    spans: list[tuple[int, int]] = []
    for start, end in sorted({(work.start or 0, work.end or 0) for work in works}):
        if spans and spans[-1][1] == start:
            spans[-1] = spans[-1][0], end
        else:
            spans.append((start, end))
    return Part(tuple(spans), frozenset(work.unit for work in works))
