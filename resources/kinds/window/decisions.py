"""The rules of windows x units for decisions (docs/reference/state.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, CorruptWatermark, NeedsDecision, SourceError
from partitions.sentinels import deserialise, serialise
from partitions.window.covering_state import upper_bound
from partitions.window.migration import migrate_state
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState
from partitions.window.window_intervals import WindowInterval
from partitions.window.work_unit import WorkUnit
from resources.kinds.contract.decisions import AcceptedSource, AcceptsSource, LoadedBefore, StateRules
from resources.kinds.state_of_entry import state_of
from resources.watermarks.entry import Entry

_NAMED = 10
"""The most work units that a message names; nobody would read more."""


class WindowRules(StateRules):
    """The rules of one dataflow."""

    def __init__(
        self,
        dataflow: Dataflow,
        history: Callable[[], Iterable[Entry]],
        moves_local_times: Callable[[Entry], bool] = lambda last: False,
    ) -> None:
        """Bind to a dataflow, and all remaining entries of its log.

        ``moves_local_times`` returns whether another zone since an entry puts other rows into the windows.
        """
        self._dataflow, self._history, self._moves_local_times = dataflow, history, moves_local_times

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

        Work that waits to be read still waits. If other rows lie in the windows now, nothing counts as
        loaded: each window is read again, and its rows are replaced.

        Raises:
            ConfigurationError: code ``other_zone``: ``load: append`` would add these rows again.
        """
        dataflow = self._dataflow
        is_loaded = bool(WindowState.of(deserialise(text)).units)
        if last is not None and is_loaded and self._moves_local_times(last):
            if dataflow.target.only_adds:
                raise ConfigurationError(
                    f"dataflow {dataflow.name}: watermark.timezone: expected the zone that its windows were loaded in, found"
                    f" {dataflow.window.timezone}: the values of {dataflow.source.row_columns.window} have no zone, so other rows lie"
                    " in the windows now, and load: append would add rows a second time. Restore watermark.timezone; or reload the"
                    " table with `state reset --replace`",
                    code="other_zone",
                )
            return serialise(WindowState().watermark())
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


class RefreshingWindowRules(WindowRules, AcceptsSource):
    """The rules of a dataflow that loads windows again whose rows have changed in its table."""

    def __init__(
        self,
        dataflow: Dataflow,
        history: Callable[[], Iterable[Entry]],
        moves_local_times: Callable[[Entry], bool],
        look: Callable[[WindowState], object],
    ) -> None:
        """Bind the rules; ``look`` reads the commits of the table behind a state."""
        super().__init__(dataflow, history, moves_local_times)
        self._look = look

    def accept_source(self, last: Entry) -> AcceptedSource:
        """Return the state that takes the table as it is now.

        If its log does not go on where the windows were read, nothing tells which have changed. So the next
        runs load all of them again.
        """
        state = state_of(WindowState, self._dataflow, last)
        try:
            self._look(state)
        except NeedsDecision:
            table = self._dataflow.source.lake_table
            read_at = state.position.words if state.position else "an unknown version"
            note = f"the next runs load all loaded windows again: they were read at {read_at} of {table}, and its log does not go on there"
            return AcceptedSource(serialise(replace(state, read_at={}).watermark()), (note,))
        except SourceError:  # a run says it, and the decision may be about something else
            pass
        return AcceptedSource(last.watermark)


def _touches(work: WorkUnit, runs: Sequence[WindowInterval] | None) -> bool:
    if work.lower is None or work.end is None:
        return runs is not None
    return any(run[0] < work.end and work.lower < run[1] for run in runs or ())
