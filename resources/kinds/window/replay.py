"""Replays of windows: all that intersect a range, each whole, as forced windows.

See docs/reference/replay.md, Windows. A promote swaps the rows of each window of each unit.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, StrandlineError
from partitions.instants import as_datetime
from partitions.plan import Plan, pluralize
from partitions.predicate import Predicate
from partitions.replay.promoted import promoted_works
from partitions.request import Forced, WorkUnitSelection
from partitions.sentinels import serialise
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState
from partitions.window.work_unit import WorkUnit, describe_works
from resources.kinds.contract.kind import Kind
from resources.kinds.window.awaited import waiting_error
from resources.kinds.window.columns import WindowColumns
from resources.kinds.window.opening import open_windows
from resources.kinds.window.retention import refuse_expired_windows
from resources.kinds.window.source_changes import find_outdated
from resources.outcome import Outcome
from resources.replay.chunks import ReplayChunk
from resources.replay.isolated.chunks import chunks_of
from resources.replay.isolated.refusals import never_loaded, nothing_read, range_loaded_again
from resources.replay.isolated.standing import IsolatedReplay
from resources.replay.kind import Cut, ReplayKind, Swap
from resources.replay.options import ChosenPartitions, requested_windows
from resources.tables.contract.table import Table
from resources.watermarks.entry import LOADS, Entry
from resources.watermarks.work_units import WORK_UNITS, loaded_units

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ALL = 1_000_000
"""The most slices of one plan: a replay is not cut short by what a run may take on."""


@dataclass(frozen=True)
class WindowReplay(ReplayKind):
    """A replay of the windows of a range, for all units; or of chosen partitions."""

    @property
    def _part(self) -> WorkUnitSelection:
        if isinstance(self.options, ChosenPartitions):
            return self.options.part
        return WorkUnitSelection((requested_windows(self.dataflow, self.options, self.now),))

    def check(self) -> None:
        """Check the range; for a promote, also that the table holds no windows of an earlier cut."""
        _, end = requested_windows(self.dataflow, self.options, self.now)
        refuse_expired_windows(self.dataflow, end, self.now)
        newest, name = self.newest, self.dataflow.name
        if self.options.is_isolated and newest is not None and WindowState.of(newest.state()).old:
            raise ConfigurationError(
                f"dataflow {name}: expected only windows that the current definition cuts, found rows of "
                f"windows that an earlier definition cut in {self.dataflow.table}: a promote would leave "
                "those rows. Replay in place, without --into, which deletes them"
            )

    def range(self) -> str:
        """Return the bounds as times in the definition's zone; none for all windows of some units."""
        ranges, zone = self._part.ranges or (), self.dataflow.window.zone
        if not ranges:
            return "{}"
        lower, upper = min(start for start, _ in ranges), max(end for _, end in ranges)
        return serialise({"lower": as_datetime(lower, zone), "upper": as_datetime(upper, zone)})

    @override
    def cut(self, range_: str | None = None) -> Cut:
        """Plan the windows and units as they are now; only the units are looked up."""
        plan = self.kind_of(self.loaded_by(self.dataflow)).planning.plan(
            self.newest, self.now, Forced(self._part)
        )
        chunks = [
            ReplayChunk.of(
                *self._bounds(slice_.works),
                works=[(work.start, work.end, work.unit, work.grid) for work in slice_.works],
            )
            for slice_ in plan.slices
        ]
        waits = None if isinstance(self.options, ChosenPartitions) else self._waiting(plan)
        warnings = (*plan.warnings, waits.message) if waits else plan.warnings
        return Cut(chunks, [(slice_,) for slice_ in plan.slices], plan.skips, warnings)

    @override
    def find_unread(self, outcome: Outcome) -> StrandlineError | None:
        """Return the error of a run some of whose windows wait for the upstream."""
        return self._waiting(outcome.plan) if outcome.plan is not None else None

    def _waiting(self, plan: Plan[Any]) -> StrandlineError | None:
        then = "Load what they wait for, and replay them again"
        return waiting_error(self.platform, self.dataflow, plan, then)

    def _bounds(self, works: Sequence[WorkUnit]) -> tuple[Any, Any]:
        """Return the bounds from the first window to the last; without time, the first and the last unit."""
        zone = self.dataflow.window.zone
        starts = [work.start for work in works if work.start is not None]
        ends = [work.end for work in works if work.end is not None]
        if not starts or not ends:
            return works[0].label(zone), works[-1].label(zone)
        return as_datetime(min(starts), zone), as_datetime(max(ends), zone)

    @override
    def request(self, chunk: ReplayChunk, since: int = 0, table: Table | None = None) -> Forced:
        """Return the request for the chunk's windows and units."""
        return Forced(_part_of(_works(chunk)), self.reason(chunk))

    def kind_of(self, dataflow: Dataflow) -> Kind[WindowSlice]:
        """Return the window kind."""
        return open_windows(self.platform, dataflow)

    def loaded_by(self, dataflow: Dataflow) -> Dataflow:
        """Return the dataflow whose plans have room for the whole request."""
        update = {"max_slices": _ALL, "parallelism": None}
        return dataflow.model_copy(update={"watermark": dataflow.window.model_copy(update=update)})

    def swap(self, isolated: IsolatedReplay, entry: Entry | None, since: Sequence[Entry]) -> Swap:
        """Swap the rows of the windows that the live state has, except what runs have read since."""
        log, dataflow = self.platform.log, self.dataflow
        if (
            entry is not None
            and entry.number != isolated.number
            and log.floor(dataflow.name) > isolated.number
        ):
            raise range_loaded_again(isolated, "an entry that is no longer in the log")
        columns = WindowColumns.of(dataflow)
        state = WindowState.of(entry.state() if entry else None)
        works, unread = self._read_works(isolated)
        if not works:
            raise nothing_read(isolated)
        loads = [past for past in since if past.why in LOADS and past.file_list]
        read = [
            work for past in loads for work in loaded_units(log.get_list(past.file_list or "", WORK_UNITS))
        ]
        swapped = promoted_works(works, state, read, whole=columns.tagged)
        if not swapped and loads:
            raise range_loaded_again(isolated, f"entry {loads[0].number}")
        if not swapped:
            raise never_loaded(isolated)
        zone, time = dataflow.window.zone, dataflow.window.time_entry
        name = time.name if time else WindowSlice.name
        newest = log.newest(isolated.log)
        own = WindowState.of(newest.state() if newest else None)
        outdated = find_outdated(self.platform, dataflow, own, swapped)
        slice_ = WindowSlice(
            swapped, zone, dataflow.window.default_grid.text, name, makes_room=True, outdated=outdated
        )
        swapped_spans = {(work.start, work.unit): (work.lower, work.end) for work in swapped}
        staying_works = [work for work in works if swapped_spans.get(work.key) != (work.start, work.end)]
        stays = [
            f"rows of {describe_works(staying, zone)} stay as they are{why}"
            for staying, why in (
                (staying_works, " where runs have loaded them since, or will load them"),
                (unread, ": the replay has not read them"),
            )
            if staying
        ]
        amount = f"rows of {pluralize(len(swapped), 'work unit')} ({isolated.words})"

        def where(rows: DataFrame) -> Predicate:
            return columns.where(swapped, rows)

        return Swap(slice_, slice_.lower, slice_.upper, where, amount, stays)

    def _read_works(self, isolated: IsolatedReplay) -> tuple[list[WorkUnit], list[WorkUnit]]:
        """Return the work units of a replay that it has read, and those that it has left out.

        Units and windows that are no longer declared when a chunk runs are not read.
        """
        log = self.platform.log
        newest = log.newest(isolated.log)
        own = WindowState.of(newest.state() if newest else None)
        read, unread = list[WorkUnit](), list[WorkUnit]()
        for work in (work for chunk in chunks_of(log, isolated) for work in _works(chunk)):
            high = None if work.start is None else own.high(work.unit, work.start)
            is_read = work.start is None or (high is not None and high >= (work.end or 0))
            (read if is_read else unread).append(work)
        return read, unread


def _works(chunk: ReplayChunk) -> list[WorkUnit]:
    return [WorkUnit(start, end, unit, start, "forced", grid=grid) for start, end, unit, grid in chunk.works]


def _part_of(works: Collection[WorkUnit]) -> WorkUnitSelection:
    """Return the windows of work units, with all their units; adjacent windows are joined."""
    units = frozenset(work.unit for work in works)
    if any(work.start is None for work in works):
        return WorkUnitSelection(None, units)
    spans: list[tuple[int, int]] = []
    for start, end in sorted({(work.start or 0, work.end or 0) for work in works}):
        if spans and spans[-1][1] == start:
            spans[-1] = spans[-1][0], end
        else:
            spans.append((start, end))
    return WorkUnitSelection(tuple(spans), units)
