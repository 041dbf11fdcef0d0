"""Planning of the windows x units that are due (docs/reference/windows.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from partitions.dataflow import Dataflow
from partitions.errors import SourceUnreachable
from partitions.instants import milliseconds
from partitions.plan import Plan
from partitions.request import DUE, Request
from partitions.sentinels import Watermark, deserialise
from partitions.window.definition import WindowWatermark
from partitions.window.early import find_early_start
from partitions.window.plan import plan
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState, highest_of
from partitions.window.upstream import Position, UpstreamTables, with_changes
from partitions.window.work_unit import describe_works
from resources.kinds.contract.planning import Planning
from resources.kinds.state_of_entry import state_of
from resources.kinds.window.columns import WindowColumns
from resources.kinds.window.sources import FolderWindows, QueriedWindows, WindowSource
from resources.kinds.window.stream_completeness import Waits
from resources.tables.contract.commits import Version
from resources.watermarks.entry import Entry

_MAX_TRIES = 10
"""The most plans that are made while the upstream loads."""


@dataclass(frozen=True)
class WindowPlanning(Planning[WindowSlice]):
    """Plans of windows x units, each with a high watermark of its own.

    Attributes:
        dataflow: the definition.
        source: the source, as a reader of windows x units.
        window_columns: the columns that tell a row's window and unit.
        units: returns the identities of all units.
        history: returns all remaining entries of the log.
        input_versions: returns the newest versions of the inputs that windows wait for, by name.
        newest_entries: returns number and id of the newest entry of each dataflow that windows wait for.
        awaited: returns what windows wait for, at a state and an instant; None if they wait for nothing.
        changes: returns what commits of the table that is read have changed, at a state and an instant; None
            if they do not matter.
    """

    replans_after_load: ClassVar[bool] = False
    """A second plan would find the windows within the grace due again, and so on without end."""

    dataflow: Dataflow
    source: WindowSource
    window_columns: WindowColumns
    units: Callable[[], tuple[str, ...]]
    history: Callable[[], Iterable[Entry]] = tuple
    input_versions: Callable[[], Mapping[str, Version]] = dict
    newest_entries: Callable[[UpstreamTables], Mapping[str, Position]] = lambda upstream: upstream.positions
    awaited: Callable[[WindowState, datetime], Waits | UpstreamTables | None] = lambda state, now: None
    changes: Callable[[WindowState, datetime], UpstreamTables | None] = lambda state, now: None

    @property
    def _definition(self) -> WindowWatermark:
        return self.dataflow.window

    @property
    def pacing(self) -> timedelta:
        """The declared pacing; a slice is then one work unit."""
        return self._definition.pacing

    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[WindowSlice]:
        """Return the plan above the entry; looks up the units, but no rows and no files.

        Slices that wait for other dataflows are set to the version that they read. If one of these
        dataflows loads something meanwhile, or a decision lowers its state, the plan is made again: it must
        not know more than the version.
        """
        state = state_of(WindowState, self.dataflow, entry)
        for _ in range(_MAX_TRIES):
            awaited = self.awaited(state, now)
            changes = self.changes(state, now)
            planned = self._plan(entry, state, now, request, awaited, changes)
            source, sees_source = self.source, awaited is not None or changes is not None
            if not sees_source or not isinstance(source, QueriedWindows) or not planned.slices:
                return planned
            versions = self.input_versions()
            read_at = changes.source.position if changes is not None and changes.source else None
            version = None if read_at is None else source.version_of(read_at)
            slices = (replace(slice_, input_versions=versions, version=version) for slice_ in planned.slices)
            planned = replace(planned, slices=tuple(source.at_one_version(list(slices))))
            if awaited is None or self._is_newest(awaited, state, now):
                return planned
        raise SourceUnreachable(
            f"dataflow {self.dataflow.name}: expected {self.dataflow.source.label} to rest while a run is planned, found new loads"
            f" {_MAX_TRIES} times. Run again"
        )

    def _is_newest(self, awaited: Waits | UpstreamTables, state: WindowState, now: datetime) -> bool:
        """Return whether what windows wait for is as it was."""
        if isinstance(awaited, UpstreamTables):
            return self.newest_entries(awaited) == awaited.positions
        return self.awaited(state, now) == awaited

    def _plan(
        self,
        entry: Entry | None,
        state: WindowState,
        now: datetime,
        request: Request,
        awaited: Waits | UpstreamTables | None,
        changes: UpstreamTables | None,
    ) -> Plan[WindowSlice]:
        tables = awaited.tables(self.dataflow.zone) if isinstance(awaited, Waits) else awaited
        rewound = entry is not None and entry.replace_until is not None
        deletes = self.dataflow.target.replace_by_watermark or rewound
        planned = plan(
            self._definition.up_to(awaited.reached) if awaited else self._definition,
            state,
            self.units(),
            now,
            dataflow=self.dataflow.name,
            state_number=entry.number if entry else 0,
            # If only the window's start identifies its rows, the commit deletes all of them.
            rereads_whole_windows=self.window_columns.tagged and deletes,
            only_adds=self.dataflow.target.only_adds,
            has_step=self.dataflow.has_step,
            reads_any_stretch=self.source.reads_any_stretch,
            request=request,
            early_since=find_early_start(state, now, self._highs()),
            upstream=with_changes(tables, changes),
        )
        if isinstance(awaited, Waits):
            planned = replace(planned, why=f"{planned.why}; {awaited.in_words}")
        if superseded := self._superseded(planned.slices, state):
            planned = replace(planned, warnings=(*planned.warnings, superseded))
        if isinstance(self.source, FolderWindows):
            works = [work for slice_ in planned.slices for work in slice_.works]
            planned = replace(planned, skips=(*planned.skips, *self.source.empty_windows(works)))
        if not rewound:
            return planned
        return replace(planned, slices=tuple(replace(slice_, makes_room=True) for slice_ in planned.slices))

    def _superseded(self, slices: Iterable[WindowSlice], state: WindowState) -> str | None:
        """Return which forced windows of a complete source change nothing; None if there is none."""
        is_complete = any(source.complete for source in self.dataflow.source.parts.values())
        superseded = [slice_ for slice_ in slices if is_complete and slice_.is_superseded(state.highest)]
        works = [work for slice_ in superseded for work in slice_.works if work.reason == "forced"]
        if not works:
            return None
        return (
            f"forced, but changes no row: {describe_works(works, self._definition.zone)}. A later window of {self.dataflow.source.label} is loaded, and each"
            " window is the whole (source.complete). Force the last loaded window to read the source again"
        )

    def _highs(self) -> Iterator[tuple[int, int]]:
        """Yield each entry's time and the highest high watermark of its state, newest entry first."""
        for entry in self.history():
            time = milliseconds(datetime.fromisoformat(entry.time))
            yield time, state_of(WindowState, self.dataflow, entry).highest or 0

    def covers(self, state: str, other: str) -> bool:
        """Return whether no window's high watermark falls from ``other`` to ``state``."""
        return WindowState.of(deserialise(state)).covers(WindowState.of(deserialise(other)))

    def modified(self, slice_: WindowSlice, before: Watermark, now: datetime) -> int | None:
        """Return the latest end of the slice's windows and of those loaded before; None without windows."""
        ends = [work.end for work in slice_.works if work.end is not None]
        return max([*ends, min(highest_of(before) or 0, milliseconds(now))]) if ends else None
