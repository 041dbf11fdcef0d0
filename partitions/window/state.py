"""The state of a window watermark: the loaded windows of each unit (docs/explanation/watermarks.md).

Loaded, left-out and requested windows are intervals (``partitions.window.window_intervals``). A fully
loaded unit needs only one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from typing_extensions import override

from partitions.errors import CorruptWatermark
from partitions.log_position import LogPosition
from partitions.sentinels import Watermark, value_text
from partitions.watermark import is_empty
from partitions.watermark_state import ReadVersion, WatermarkState
from partitions.window.calendar_grid import Grid, steps
from partitions.window.state_changes import StateChanges
from partitions.window.window_intervals import WindowInterval, WindowIntervals
from partitions.window.work_outcomes import (
    Failure,
    LoadedUnit,
    OutdatedStretch,
    TimeBound,
    UpstreamRead,
    WindowSpan,
)

_STORED_NAMES = {
    "skipped": "skipped",
    "over_cap": "left",
    "reread_whole": "whole",
    "old": "stale",
    "early": "early",
    "changed": "changed",
    "upstream": "upstream",
    "read_at": "read_at",
}
"""The stored names of fields that are left out if they are empty."""


@dataclass(frozen=True)
class WindowState(WatermarkState):
    """The committed state; highs never decrease.

    Attributes:
        grid: the grid of all intervals that carry none of their own.
        units: intervals of loaded windows by unit, ascending by start.
        open: by unit, the starts of windows that were still growing at their last load.
        failed: failures of work units that wait for another try, by unit and start.
        skipped: by unit, stretches ``[start, end]`` that abstinence has left unread.
        over_cap: intervals of loaded windows that were due again, but did not fit under the cap on work units.
        reread_whole: intervals of windows that must still be read again from their starts.
        old: intervals of windows as an earlier definition cut them, whose rows are still in the table. A
        read that overlaps one deletes it.
        early: intervals of windows that a clock running ahead loaded before their end. They are read again
        once they are over.
        changed: by unit, loaded stretches ``[start, end]`` that have changed in the table that is read. They
        are read again once the upstream has all of them. With ``refresh: changed`` a third member says
        up to which position of the table's log they are read, in words; without it, that is unknown.
        upstream: by dataflow whose table is read, number and id of its newest entry that ``changed`` takes
        into account.
        read_at: position in the log of the table that is read, in its stored form. All loaded windows are
        as the table was there, except the ``changed`` ones. Empty: unknown, or the commits do not matter.
        retried: whether the last commit retried failed work units. With room for a single work unit, the
        next commit then takes one that has not failed.
    """

    grid: Grid = field(default_factory=lambda: Grid("none"))
    units: Mapping[str, list[WindowInterval]] = field(default_factory=dict)
    open: Mapping[str, list[int]] = field(default_factory=dict)
    failed: Mapping[str, Mapping[TimeBound, Failure]] = field(default_factory=dict)
    skipped: Mapping[str, list[list[int]]] = field(default_factory=dict)
    over_cap: Mapping[str, list[WindowInterval]] = field(default_factory=dict)
    reread_whole: Mapping[str, list[WindowInterval]] = field(default_factory=dict)
    old: Mapping[str, list[WindowInterval]] = field(default_factory=dict)
    early: Mapping[str, list[WindowInterval]] = field(default_factory=dict)
    changed: Mapping[str, list[list[Any]]] = field(default_factory=dict)
    upstream: Mapping[str, list[Any]] = field(default_factory=dict)
    read_at: Mapping[str, Any] = field(default_factory=dict)
    retried: bool = False

    @classmethod
    def of(cls, watermark: Mapping[str, Any] | None) -> Self:
        """Parse what :meth:`watermark` returns; an empty watermark is a source that was never read.

        Raises:
            CorruptWatermark: for an object of another form.
        """
        if watermark is None or is_empty(watermark):
            return cls()
        try:
            state = cls(
                Grid.parse(watermark["grid"]),
                watermark["units"],
                watermark.get("open", {}),
                {
                    unit: {_start(text): Failure(*fields) for text, fields in of_unit.items()}
                    for unit, of_unit in watermark.get("failed", {}).items()
                },
                **{name: watermark.get(stored, {}) for name, stored in _STORED_NAMES.items()},
                retried=bool(watermark.get("retried")),
            )
            for name in ("units", "over_cap", "reread_whole", "old", "early"):
                for intervals in getattr(state, name).values():
                    _check(intervals)
            if state.read_at:
                LogPosition.of(state.read_at)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise CorruptWatermark(
                'window watermark: expected {"grid": text, "units": {unit: [[start, high], …]}, "open", "failed", "skipped",'
                f' "left", "whole", "stale", "early"}}, found {value_text(dict(watermark))}'
            ) from error
        return state

    @staticmethod
    def holds_nothing(watermark: Mapping[str, Any], /) -> bool:
        """Return whether a watermark holds nothing but old windows, as after a reset.

        The table may still hold their rows.
        """
        return set(watermark) == {"grid", "units", "stale"} and watermark["units"] == {}

    @staticmethod
    @override
    def read_version(watermark: Mapping[str, Any], /) -> ReadVersion | None:
        """Return the position up to which changes of the table that is read are taken into account."""
        position = WindowState.of(watermark).position
        return None if position is None else ReadVersion(position.version, position.id, table=position.table)

    @property
    def position(self) -> LogPosition | None:
        """Return the position of :attr:`read_at`; None if it is unknown."""
        return LogPosition.of(self.read_at) if self.read_at else None

    def watermark(self) -> Watermark:
        """Return the state as JSON data; ``{}`` if nothing is known of any unit."""
        if not self.units and not self.failed and not self.old:
            return {}
        stored: Watermark = {"grid": self.grid.text, "units": dict(self.units)}
        if self.failed:
            stored["failed"] = {
                unit: {_text(start): _failure_fields(failure) for start, failure in of_unit.items()}
                for unit, of_unit in self.failed.items()
            }
        for name, stored_name in {"open": "open", **_STORED_NAMES}.items():
            if of_units := getattr(self, name):
                stored[stored_name] = dict(of_units)
        return stored | ({"retried": True} if self.retried else {})

    @property
    def highest(self) -> int | None:
        """Return the highest high of all units, epoch milliseconds; None if nothing is loaded."""
        return highest_of({"units": self.units})

    def grid_of(self, interval: WindowInterval) -> Grid:
        """Return the grid that cut an interval."""
        return Grid.parse(interval[2]) if len(interval) > 2 else self.grid

    def high(self, unit: str, start: int) -> int | None:
        """Return the high of the window with this start; None if the window is not loaded."""
        return WindowIntervals(self.units.get(unit, ()), self.grid).high(start)

    def failed_rereads(self, unit: str) -> dict[TimeBound, Failure]:
        """Return a unit's failures of windows that are loaded: only the last read failed, and the rows stay.

        A window that was still growing at its last load is not among them: its end is missing.
        """
        loaded = WindowIntervals(self.units.get(unit, ()), self.grid)
        growing = set(self.open.get(unit, ()))
        return {
            start: failure
            for start, failure in self.failed.get(unit, {}).items()
            if failure.attempts
            and (unit in self.units if start is None else loaded.high(start) is not None)
            and start not in growing
        }

    def rebased(self, grid: Grid) -> WindowState:
        """Return the state with another default grid; intervals of the old grid then carry its text."""
        if grid == self.grid:
            return self
        old_text, new_text = self.grid.text, grid.text

        def changed(of_units: Mapping[str, list[WindowInterval]]) -> dict[str, list[WindowInterval]]:
            return {
                unit: [
                    [*interval, old_text]
                    if len(interval) == 2
                    else interval[:2]
                    if interval[2] == new_text
                    else interval
                    for interval in intervals
                ]
                for unit, intervals in of_units.items()
            }

        return replace(
            self,
            grid=grid,
            units=changed(self.units),
            over_cap=changed(self.over_cap),
            reread_whole=changed(self.reread_whole),
            old=changed(self.old),
            early=changed(self.early),
        )

    def loaded_after(self, instant: int) -> dict[str, list[WindowInterval]]:
        """Return, by unit, the loaded intervals from the window that holds an instant on."""
        remaining_of: dict[str, list[WindowInterval]] = {}
        for unit, intervals in self.units.items():
            remaining = [interval for interval in intervals if interval[1] > instant]
            if remaining:
                remaining_of[unit] = [
                    [
                        max(
                            interval[0],
                            steps(self.grid_of(interval), interval[0]).start(max(instant, interval[0])),
                        ),
                        *interval[1:],
                    ]
                    for interval in remaining
                ]
        return remaining_of

    def after(
        self,
        loaded_units: Iterable[LoadedUnit],
        failed: Iterable[tuple[str, TimeBound, str]] = (),
        deferred: Iterable[WindowSpan] = (),
        *,
        at: int | None = None,
        early: Iterable[WindowSpan] = (),
        replaced: Iterable[tuple[str, int]] = (),
        rest: Iterable[tuple[str, int, int]] = (),
        upstream: UpstreamRead | None = None,
        outdated: Iterable[OutdatedStretch] = (),
    ) -> WindowState:
        """Return the state after a commit.

        Args:
            loaded_units: the work units that were read and written.
            failed: work units that could not be read, by unit and start, with the error.
            deferred: due work units that have to wait; without this record they might not be due next
            time.
            at: the time of the run, epoch milliseconds.
            early: windows that turn out to have been loaded before their end.
            replaced: old windows whose rows were deleted, by unit and start.
            rest: unit, start and end of the parts of replaced windows that no current window covers. They
            were read again and stay old.
            upstream: the upstream as the read saw it; None if the windows do not wait for it.
            outdated: loaded stretches that have changed in the table since they were read.
        """
        changes = StateChanges(vars(self))
        if upstream is not None:
            changes.see_upstream(upstream)
        changes.add_early(early)
        changes.drop_replaced(replaced)
        for unit, lower, upper in rest:
            changes.add_old(unit, lower, upper)
        for loaded in loaded_units:
            changes.record_success(loaded)
        for stretch in outdated:
            changes.add_changed(stretch.unit, stretch.start, stretch.end, [stretch.read_at])
        for unit, start, error in failed:
            changes.record_failure(unit, start, error, at)
        for deferred_units in deferred:
            changes.record_deferred(deferred_units, at)
        return replace(self, **changes.fields())

    def covers(self, earlier: WindowState) -> bool:
        """Return whether no window's high is lower than in an earlier state."""
        return all(self._covers(earlier, unit, intervals) for unit, intervals in earlier.units.items())

    def _covers(self, earlier: WindowState, unit: str, intervals: list[WindowInterval]) -> bool:
        own = self.units.get(unit)
        if own is None or (self.grid == earlier.grid and own == intervals):
            return own is not None or not intervals
        loaded = WindowIntervals(own, self.grid)
        return all(loaded.covers(interval, earlier.grid_of(interval)) for interval in intervals)


def highest_of(watermark: Mapping[str, Any]) -> int | None:
    """Return the highest high of a state in its stored form; None if nothing is loaded."""
    units: Mapping[str, list[WindowInterval]] = watermark.get("units") or {}
    return max((interval[1] for intervals in units.values() for interval in intervals), default=None)


def _check(intervals: list[WindowInterval]) -> None:
    previous_start = None
    for interval in intervals:
        start, end, *grid = interval
        if previous_start is not None and start < previous_start:
            raise ValueError(
                f"expected intervals ascending by start, found {interval!r} above {previous_start}"
            )
        previous_start = start
        if type(interval) is not list or type(start) is not int or type(end) is not int or start >= end:
            raise ValueError(f"expected [start, high] with start below high, found {interval!r}")
        if grid:
            Grid.parse(*grid)


def _failure_fields(failure: Failure) -> list[Any]:
    return list(failure) if failure.attempts or failure.at is not None else [0]


def _text(start: TimeBound) -> str:
    return "-" if start is None else str(start)


def _start(text: str) -> TimeBound:
    return None if text == "-" else int(text)
