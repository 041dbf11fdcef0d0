"""Replays aside of windows: all that intersect a range, each whole; a promote swaps the rows of each window of each unit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.instants import as_datetime
from partitions.plan import Plan, counted
from partitions.predicate import Predicate
from partitions.replay.parts import promoted_works
from partitions.request import Forced
from partitions.sentinels import serialise
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState
from partitions.window.work_unit import WorkUnit, describe_works
from resources.kinds.window.columns import WindowColumns
from resources.kinds.window.kind import WindowKind
from resources.kinds.window.opening import open_windows
from resources.kinds.window.replay import WindowReplay, part_of, unlimited
from resources.replay.asked import Asked, asked_windows
from resources.replay.isolated.chunks import AsideChunk, Parts, chunks_of
from resources.replay.isolated.kind import AsideKind, Begun, Swap
from resources.replay.isolated.refusals import again_refused, never_loaded
from resources.replay.isolated.standing import Aside
from resources.watermarks.entry import LOADS, Entry
from resources.watermarks.work_units import WORK_UNITS, loaded_units

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class AsideWindows(AsideKind):
    """Windows of a range."""

    def check(self, asked: Asked, now: datetime) -> None:
        """Windows of time, none of which are in the table as they were cut before."""
        asked_windows(self.dataflow, asked, now)
        name = self.dataflow.name
        newest = self.platform.log.newest(name)
        if newest is not None and WindowState.of(newest.state()).stale:
            raise ConfigurationError(
                f"dataflow {name}: expected windows as they are cut now, found rows of windows that were cut otherwise in {self.dataflow.table}: a promote"
                " would leave them. Replay in place, without --into: that deletes them"
            )

    def planned(self, asked: Asked, now: datetime) -> Plan[WindowSlice]:
        """Look up units only."""
        return WindowReplay.of(self.platform, self.dataflow, asked, now).planned()[1]

    def begun(self, asked: Asked, now: datetime) -> Begun:
        """Bounds are times in the zone of the definition."""
        lower, upper = asked_windows(self.dataflow, asked, now)
        return Begun(self._range(lower, upper))

    def parts(self, aside: Aside, now: datetime) -> Parts:
        """Windows and units as they are now."""
        asked = Asked(aside.request["start"], aside.request["end"])
        again = WindowReplay.of(self.platform, self.dataflow, asked, now)
        plan = again.planned()[1]
        chunks = []
        for slice_ in plan.slices:
            lower, upper = again.bounds(slice_)
            works = tuple((work.start or 0, work.end or 0, work.unit, work.grid) for work in slice_.works)
            chunks.append(AsideChunk(range=serialise({"lower": lower, "upper": upper}), works=works))
        return Parts(chunks=tuple(chunks), warnings=tuple(plan.warnings))

    def loaded_by(self, aside: Aside) -> Dataflow:
        """The live dataflow under the replay's name, whose plans hold all of a chunk."""
        return unlimited(aside.of(self.dataflow))

    def kind_of(self, loaded_by: Dataflow) -> WindowKind:
        """The live source under the replay's name."""
        return open_windows(self.platform, loaded_by)

    def request(self, aside: Aside, chunk: AsideChunk) -> Forced:
        """Its windows and units."""
        return Forced(part_of(_works(chunk)), chunk.words)

    def swap(self, aside: Aside, entry: Entry | None, since: Sequence[Entry]) -> Swap:
        """The rows of the windows that the live state has, but for what runs have read since."""
        log, dataflow = self.platform.log, self.dataflow
        if entry is not None and entry.number != aside.number and log.floor(dataflow.name) > aside.number:
            raise again_refused(aside, "an entry that is no longer in the log")
        columns = WindowColumns.of(dataflow)
        works = [work for chunk in chunks_of(log, aside) for work in _works(chunk)]
        state = WindowState.of(entry.state() if entry else None)
        loads = [past for past in since if past.why in LOADS and past.file_list]
        read = [
            work for past in loads for work in loaded_units(log.get_list(past.file_list or "", WORK_UNITS))
        ]
        swapped = promoted_works(works, state, read, whole=columns.tagged)
        if not swapped and loads:
            raise again_refused(aside, f"entry {loads[0].number}")
        if not swapped:
            raise never_loaded(aside)
        zone, time = dataflow.window.zone, dataflow.window.time_entry
        name = time.name if time else WindowSlice.name
        slice_ = WindowSlice(swapped, zone, dataflow.window.default_grid.text, name, makes_room=True)
        there = {(work.start, work.unit): (work.lower, work.end) for work in swapped}
        left = [work for work in works if there.get(work.key) != (work.start, work.end)]
        stays = [
            f"rows of {describe_works(left, zone)} stay as they are where runs have loaded them since, or are still to load them"
        ]
        amount = f"rows of {counted(len(swapped), 'work unit')} ({aside.words})"

        def where(rows: DataFrame) -> Predicate:
            return columns.where(swapped, rows)

        return Swap(slice_, slice_.lower, slice_.upper, where, amount, stays if left else ())

    def _range(self, lower: int, upper: int) -> str:
        zone = self.dataflow.window.zone
        return serialise({"lower": as_datetime(lower, zone), "upper": as_datetime(upper, zone)})


def _works(chunk: AsideChunk) -> list[WorkUnit]:
    return [WorkUnit(start, end, unit, start, "forced", grid=grid) for start, end, unit, grid in chunk.works]
