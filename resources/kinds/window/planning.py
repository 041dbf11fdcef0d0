"""Planning of the windows x units that are due (docs/reference/windows.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from partitions.dataflow import Dataflow
from partitions.instants import milliseconds
from partitions.plan import Plan
from partitions.request import DUE, Request
from partitions.sentinels import Watermark, deserialise
from partitions.window.definition import WindowWatermark
from partitions.window.early import find_early_start
from partitions.window.plan import plan
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState, highest_of
from resources.kinds.contract.planning import Planning
from resources.kinds.state_of_entry import state_of
from resources.kinds.window.columns import WindowColumns
from resources.kinds.window.sources import FolderWindows, WindowSource
from resources.kinds.window.stream_completeness import Waits
from resources.watermarks.entry import Entry


@dataclass(frozen=True)
class WindowPlanning(Planning[WindowSlice]):
    """Plans of windows x units, each with a high watermark of its own.

    Attributes:
        dataflow: the definition.
        source: the source, as a reader of windows x units.
        window_columns: the columns that tell a row's window and unit.
        units: returns the identities of all units.
        history: returns all remaining entries of the log.
        waits: returns the stream that windows wait for; None if they wait for nothing.
    """

    replans_after_load: ClassVar[bool] = False
    """A second plan would find the windows within the grace due again, and so on without end."""

    dataflow: Dataflow
    source: WindowSource
    window_columns: WindowColumns
    units: Callable[[], tuple[str, ...]]
    history: Callable[[], Iterable[Entry]] = tuple
    waits: Callable[[], Waits | None] = lambda: None

    @property
    def _definition(self) -> WindowWatermark:
        return self.dataflow.window

    @property
    def pacing(self) -> timedelta:
        """The declared pacing; a slice is then one work unit."""
        return self._definition.pacing

    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[WindowSlice]:
        """Return the plan above the entry; looks up the units, but no rows and no files."""
        state = state_of(WindowState, self.dataflow, entry)
        rewound = entry is not None and entry.replace_until is not None
        deletes = self.dataflow.target.replace_by_watermark or rewound
        waits = self.waits()
        planned = plan(
            self._definition.up_to(waits.reached) if waits else self._definition,
            state,
            self.units(),
            now,
            dataflow=self.dataflow.name,
            state_number=entry.number if entry else 0,
            # If only the window's start identifies its rows, the commit deletes all of them.
            rereads_whole_windows=self.window_columns.tagged and deletes,
            reads_any_stretch=self.source.reads_any_stretch,
            request=request,
            early_since=find_early_start(state, now, self._highs()),
        )
        if waits is not None:
            planned = replace(planned, why=f"{planned.why}; {waits.in_words}")
        if isinstance(self.source, FolderWindows):
            works = [work for slice_ in planned.slices for work in slice_.works]
            planned = replace(planned, skips=(*planned.skips, *self.source.empty_windows(works)))
        if not rewound:
            return planned
        return replace(planned, slices=tuple(replace(slice_, makes_room=True) for slice_ in planned.slices))

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
