"""A replay in place of windows: all that intersect a range, each whole, as forced windows (docs/replay.md, Windows)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.instants import as_datetime
from partitions.plan import Plan
from partitions.request import Forced, Part
from partitions.window.slices import WindowSlice
from partitions.window.work_unit import WorkUnit
from resources.kinds.kind import Kind
from resources.kinds.window.opening import open_windows
from resources.platform.stores import Stores
from resources.replay.asked import Asked, asked_windows
from resources.replay.parts import PartsReplay

_ALL = 1_000_000
"""Slices of one plan: a replay is not cut short by what a run may take on."""


@dataclass(frozen=True)
class WindowReplay(PartsReplay):
    """Windows of a range, or of partitions.

    Attributes:
        part: which windows of which units.
    """

    part: Part

    @classmethod
    def of(cls, platform: Stores, dataflow: Dataflow, asked: Asked, now: datetime) -> WindowReplay:
        """Windows that intersect a range, of all units."""
        range_ = asked_windows(dataflow, asked, now)
        return cls(platform, dataflow, asked.words, now, Part((range_,)))

    @property
    def loaded_by(self) -> Dataflow:
        """The dataflow, whatever one of its runs may take on."""
        return unlimited(self.dataflow)

    def planned(self) -> tuple[Kind[Any], Plan[WindowSlice]]:
        """Look up units only."""
        kind, newest = (
            open_windows(self.platform, self.loaded_by),
            self.platform.log.newest(self.dataflow.name),
        )
        return kind, kind.plan(newest, self.now, Forced(self.part))

    def label(self, slice_: WindowSlice) -> str:
        """Its first work unit."""
        return slice_.works[0].label(self.dataflow.window.zone)

    def bounds(self, slice_: WindowSlice) -> tuple[Any, Any]:
        """From the first window to the last; of units without time the first and the last unit."""
        zone, works = self.dataflow.window.zone, slice_.works
        starts = [work.start for work in works if work.start is not None]
        ends = [work.end for work in works if work.end is not None]
        if not starts or not ends:
            return works[0].label(zone), works[-1].label(zone)
        return as_datetime(min(starts), zone), as_datetime(max(ends), zone)

    def request(self, slice_: WindowSlice, since: int) -> Forced:
        """Its windows and units."""
        return Forced(part_of(slice_.works), self.words)


def unlimited(dataflow: Dataflow) -> Dataflow:
    """Return the dataflow whose plans hold all that is asked for, however much."""
    update = {"max_slices": _ALL, "parallelism": None}
    return dataflow.model_copy(update={"watermark": dataflow.window.model_copy(update=update)})


def part_of(works: Collection[WorkUnit]) -> Part:
    """Return the windows of work units, with all of their units: stretches that follow each other are one."""
    units = frozenset(work.unit for work in works)
    if any(work.start is None for work in works):
        return Part(None, units)
    spans: list[tuple[int, int]] = []
    for start, end in sorted({(work.start or 0, work.end or 0) for work in works}):
        if spans and spans[-1][1] == start:
            spans[-1] = spans[-1][0], end
        else:
            spans.append((start, end))
    return Part(tuple(spans), units)
