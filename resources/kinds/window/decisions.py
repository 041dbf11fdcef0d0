"""The rules of windows x units for decisions (docs/reference/state.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, CorruptWatermark
from partitions.sentinels import deserialise, serialise
from partitions.window.covering_state import upper_bound
from partitions.window.migration import migrate_state
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState
from partitions.window.window_intervals import WindowInterval
from partitions.window.work_unit import WorkUnit
from resources.kinds.contract.decisions import LoadedBefore, StateRules
from resources.kinds.state_of_entry import state_of
from resources.watermarks.entry import Entry

_NAMED = 10
"""The most work units that a message names; nobody would read more."""


class WindowRules(StateRules):
    """The rules of one dataflow."""

    def __init__(self, dataflow: Dataflow, history: Callable[[], Iterable[Entry]]) -> None:
        """Bind to a dataflow, and all remaining entries of its log."""
        self._dataflow, self._history = dataflow, history

    def parse_watermark(self, text: str) -> str:
        """Parse ``{"grid": …, "units": {…}}``."""
        try:
            state = WindowState.of(deserialise(text))
        except CorruptWatermark as error:
            raise ConfigurationError(
                f'dataflow {self._dataflow.name}: expected a watermark such as {{"grid": "daily UTC", "units": {{"{{}}": [[start, high]]}}}} in'
                f" epoch milliseconds, found {text[:200]!r} ({error.message})"
            ) from error
        return serialise(state.watermark())

    def migrate_watermark(self, text: str, now: datetime, last: Entry | None) -> str:
        """Return the watermark with the high watermarks of windows that start where old ones started.

        Work that waits to be read still waits.
        """
        dataflow = self._dataflow
        state, before = (
            WindowState.of(deserialise(text)),
            state_of(WindowState, dataflow, last) if last else None,
        )
        migrated = migrate_state(
            state,
            dataflow.window,
            now,
            tagged=dataflow.tagged,
            has_step=dataflow.sql is not None or dataflow.transform is not None,
            before=before,
        )
        return serialise(migrated.watermark())

    def watermark_from_rows(self) -> None:
        """Return None: a window without rows counts as loaded, too, so rows do not show what is loaded."""
        return

    def replaces_reloaded_rows(self) -> bool:
        """Return whether a slice finds the earlier rows of what it reads."""
        return not self._dataflow.target.only_adds

    def loaded_upper_bound(self, entry: Entry) -> str:
        """Return a bound above everything that was ever loaded, also above earlier rewinds."""
        states = [state_of(WindowState, self._dataflow, past) for past in (entry, *self._history())]
        return serialise(upper_bound(states).watermark())

    def check_rewind(self) -> None:
        """Accept any rewind: high watermarks have an order."""

    def count_already_loaded(self, slices: Sequence[WindowSlice], last: Entry | None) -> LoadedBefore:
        """Return how many work units were read before, at least in part, whatever the windows were then."""
        state = state_of(WindowState, self._dataflow, last)
        again = [
            work
            for slice_ in slices
            for work in slice_.works
            if _touches(work, state.units.get(work.unit)) or _touches(work, state.old.get(work.unit))
        ]
        names = [work.label(self._dataflow.window.zone) for work in again[:_NAMED]]
        return LoadedBefore(len(again), "work unit", names)


def _touches(work: WorkUnit, runs: Sequence[WindowInterval] | None) -> bool:
    if work.lower is None or work.end is None:
        return runs is not None
    return any(run[0] < work.end and work.lower < run[1] for run in runs or ())
