"""The state of a window watermark: what is loaded of each unit, up to where (docs/watermarks.md).

What is loaded, left out or asked for is kept as intervals of windows (``partitions.window.window_intervals``): of a unit that is complete one,
however many windows it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from partitions.errors import CorruptWatermark, in_one_line
from partitions.pauses import rest
from partitions.sentinels import Watermark
from partitions.watermark import is_empty
from partitions.window.grid import Grid, steps
from partitions.window.window_intervals import WindowInterval, WindowIntervals

__all__ = ["DeferredUnits", "Failure", "LoadedUnit", "TimeBound", "WindowInterval", "WindowState"]

_SHOWN = 500
"""Letters of an error that a state keeps: every failed work unit has one."""

TimeBound = int | None
"""The start or the end of a window, epoch milliseconds; None if there is no time dimension."""


class Failure(NamedTuple):
    """What is known of a work unit that was not loaded when it was its turn.

    Attributes:
        attempts: how often it was tried; 0: without a time dimension, the cap on work units left it out.
        error: why, in a line.
        at: when it was tried last, or left out first, epoch milliseconds.
    """

    attempts: int
    error: str | None = None
    at: int | None = None

    def rested(self, now: int) -> bool:
        """Whether the pause is over."""
        return self.wait(now) == 0

    def wait(self, now: int) -> float:
        """Return the seconds until the pause is over."""
        return 0.0 if self.at is None else rest(self.attempts, self.at / 1000, now / 1000)


class LoadedUnit(NamedTuple):
    """A work unit that was read and written.

    Attributes:
        start: of its window; None without a time dimension.
        end: of its window, as it was planned: the high that it has now.
        lower: what was read starts here.
        unit: its identity.
        open: whether now has cut the window short.
        grid: how the window was cut.
    """

    start: TimeBound
    end: TimeBound
    lower: TimeBound
    unit: str
    open: bool
    grid: Grid


class DeferredUnits(NamedTuple):
    """Neighbouring windows of a unit that were due and were not loaded.

    Attributes:
        unit: its identity.
        start: of the first; None without a time dimension.
        end: of the last.
        grid: text of how they were cut.
        whole: whether somebody has asked to read them anew from their starts on.
    """

    unit: str
    start: TimeBound
    end: TimeBound
    grid: str
    whole: bool = False


@dataclass(frozen=True)
class WindowState:
    """What is committed. No high ever falls.

    Attributes:
        grid: of all intervals that carry none.
        units: intervals of what is loaded by unit, ascending by start.
        open: the starts of windows whose last success was on one that now had cut short, by unit.
        failed: what waits to be tried again, by unit and start.
        skipped: what abstinence has left unread, ``[start, end]``, by unit.
        left: intervals of loaded windows that were due again when the cap on work units left them out.
        whole: intervals of windows that somebody has asked to read anew and that could not be, or not yet.
        stale: intervals of windows as they are cut no more, whose rows are in the table all the same: what reads over them again deletes them.
        early: intervals of windows that were loaded before their time, by a clock that ran ahead: they are read again once it has come.
        retried: whether the last commit was about work units that had failed before: with one place, it is the others' turn then.
    """

    grid: Grid = field(default_factory=lambda: Grid("none"))
    units: Mapping[str, list[WindowInterval]] = field(default_factory=dict)
    open: Mapping[str, list[int]] = field(default_factory=dict)
    failed: Mapping[str, Mapping[TimeBound, Failure]] = field(default_factory=dict)
    skipped: Mapping[str, list[list[int]]] = field(default_factory=dict)
    left: Mapping[str, list[WindowInterval]] = field(default_factory=dict)
    whole: Mapping[str, list[WindowInterval]] = field(default_factory=dict)
    stale: Mapping[str, list[WindowInterval]] = field(default_factory=dict)
    early: Mapping[str, list[WindowInterval]] = field(default_factory=dict)
    retried: bool = False

    @classmethod
    def of(cls, watermark: Mapping[str, Any] | None) -> WindowState:
        """Read the form of :meth:`watermark`; empty is the state of a new source.

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
                **{name: watermark.get(name, {}) for name in ("skipped", "left", "whole", "stale", "early")},
                retried=bool(watermark.get("retried")),
            )
            for name in ("units", "left", "whole", "stale", "early"):
                for intervals in getattr(state, name).values():
                    _check(intervals)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise CorruptWatermark(
                'window watermark: expected {"grid": text, "units": {unit: [[start, high], …]}, "open", "failed", "skipped",'
                f' "left", "whole", "stale", "early"}}, found another form: {error!r}'
            ) from error
        return state

    @staticmethod
    def holds_nothing(watermark: Mapping[str, Any]) -> bool:
        """Return whether a watermark that is not empty counts nothing as loaded: after a reset it knows only which old windows the table may hold."""
        return set(watermark) == {"grid", "units", "stale"} and watermark["units"] == {}

    def watermark(self) -> Watermark:
        """As JSON data; without anything known of any unit it is empty."""
        if not self.units and not self.failed and not self.stale:
            return {}
        made: Watermark = {"grid": self.grid.text, "units": dict(self.units)}
        if self.failed:
            made["failed"] = {
                unit: {_text(start): _shortened(failure) for start, failure in of_unit.items()}
                for unit, of_unit in self.failed.items()
            }
        for name in ("open", "skipped", "left", "whole", "stale", "early"):
            if of_units := getattr(self, name):
                made[name] = dict(of_units)
        return made | ({"retried": True} if self.retried else {})

    @property
    def highest(self) -> int | None:
        """The highest usable high of the job; None if there is none."""
        return max((interval[1] for intervals in self.units.values() for interval in intervals), default=None)

    def grid_of(self, interval: WindowInterval) -> Grid:
        """How the windows of an interval were cut."""
        return Grid.parse(interval[2]) if len(interval) > 2 else self.grid

    def high(self, unit: str, start: int) -> int | None:
        """The high of the window that starts there; None if it has no usable one."""
        return WindowIntervals(self.units.get(unit, ()), self.grid).high(start)

    def rebased(self, grid: Grid) -> WindowState:
        """The same state with another grid as its own: what was loaded by the old one stays known as that."""
        if grid == self.grid:
            return self
        old, new = self.grid.text, grid.text

        def changed(of_units: Mapping[str, list[WindowInterval]]) -> dict[str, list[WindowInterval]]:
            return {
                unit: [
                    [*interval, old]
                    if len(interval) == 2
                    else interval[:2]
                    if interval[2] == new
                    else interval
                    for interval in intervals
                ]
                for unit, intervals in of_units.items()
            }

        return replace(
            self,
            grid=grid,
            units=changed(self.units),
            left=changed(self.left),
            whole=changed(self.whole),
            stale=changed(self.stale),
            early=changed(self.early),
        )

    def loaded_after(self, instant: int) -> dict[str, list[WindowInterval]]:
        """Runs of the loaded windows that end after an instant, by unit."""
        late_of: dict[str, list[WindowInterval]] = {}
        for unit, intervals in self.units.items():
            late = [interval for interval in intervals if interval[1] > instant]
            if late:
                late_of[unit] = [
                    [
                        max(
                            interval[0],
                            steps(self.grid_of(interval), interval[0]).start(max(instant, interval[0])),
                        ),
                        *interval[1:],
                    ]
                    for interval in late
                ]
        return late_of

    def with_high(self, unit: str, start: int, high: int) -> WindowState:
        """A window that is loaded up to somewhere, whatever its grid; a high that is no higher than its start is none."""
        if high <= start:
            return self
        intervals = WindowIntervals(self.units.get(unit, ()), self.grid)
        intervals.raised(start, high, Grid("none"))
        return replace(self, units={**self.units, unit: intervals.items})

    def after(
        self,
        done: Iterable[LoadedUnit],
        failed: Iterable[tuple[str, TimeBound, str]] = (),
        deferred: Iterable[DeferredUnits] = (),
        *,
        at: int | None = None,
        early: Iterable[DeferredUnits] = (),
        replaced: Iterable[tuple[str, int]] = (),
        rest: Iterable[tuple[str, int, int]] = (),
    ) -> WindowState:
        """The state after a commit.

        Args:
            done: what was read and written.
            failed: work units that could not be read, by unit and start, with the error.
            deferred: what was due and has to wait, since it may not be due by itself the next time.
            at: when, epoch milliseconds.
            early: what is known now to have been loaded before its time.
            replaced: old windows whose rows were deleted, by unit and start.
            rest: what of them no window holds now, and was read again: unit, start and end.
        """
        made = _Making(self)
        made.early(early)
        made.replaced(replaced)
        for unit, lower, upper in rest:
            made.kept(unit, lower, upper)
        for loaded in done:
            made.succeeded(loaded)
        for unit, start, error in failed:
            before = made.failure(unit, start)
            made.set_failure(
                unit, start, Failure((before.attempts if before else 0) + 1, in_one_line(error, _SHOWN), at)
            )
        for left in deferred:
            made.deferred(left, at)
        return made.state()

    def covers(self, other: WindowState) -> bool:
        """Whether no high falls from ``other`` to this state."""
        return all(self._covers(other, unit, intervals) for unit, intervals in other.units.items())

    def _covers(self, other: WindowState, unit: str, intervals: list[WindowInterval]) -> bool:
        own = self.units.get(unit)
        if own is None or (self.grid == other.grid and own == intervals):
            return own is not None or not intervals
        known = WindowIntervals(own, self.grid)
        return all(known.covers(interval, other.grid_of(interval)) for interval in intervals)


class _Making:
    """A state that is being changed; what is not changed is shared with the old one."""

    def __init__(self, state: WindowState) -> None:
        self._old = state
        self._intervals: dict[str, dict[str, WindowIntervals]] = {
            "units": {},
            "left": {},
            "whole": {},
            "stale": {},
            "early": {},
        }
        self._open, self._failed, self._skipped = dict(state.open), dict(state.failed), dict(state.skipped)
        self._retried = False

    def state(self) -> WindowState:
        old = self._old
        parts = {
            name: {**getattr(old, name), **{unit: intervals.items for unit, intervals in of_units.items()}}
            for name, of_units in self._intervals.items()
        }
        return WindowState(
            old.grid,
            parts["units"],
            _filled(self._open),
            _filled(self._failed),
            _filled(self._skipped),
            _filled(parts["left"]),
            _filled(parts["whole"]),
            _filled(parts["stale"]),
            _filled(parts["early"]),
            self._retried,
        )

    def failure(self, unit: str, start: TimeBound) -> Failure | None:
        return self._failed.get(unit, {}).get(start)

    def set_failure(self, unit: str, start: TimeBound, failure: Failure) -> None:
        self._retried |= failure.attempts > 1
        self._failed[unit] = {**self._failed.get(unit, {}), start: failure}

    def deferred(self, units: DeferredUnits, at: int | None) -> None:
        if units.start is not None and units.end is not None:
            self._of("whole" if units.whole else "left", units.unit).added(
                units.start, units.end, Grid.parse(units.grid)
            )
        elif self.failure(units.unit, None) is None:
            self.set_failure(units.unit, None, Failure(0, None, at))

    def succeeded(self, loaded: LoadedUnit) -> None:
        if (failure := self.failure(loaded.unit, loaded.start)) is not None:
            self._retried |= failure.attempts > 0
            self._failed[loaded.unit] = {
                start: other for start, other in self._failed[loaded.unit].items() if start != loaded.start
            }
        intervals = self._of("units", loaded.unit)
        if loaded.start is None or loaded.end is None or loaded.lower is None:
            if self._has("stale", loaded.unit):
                self._of("stale", loaded.unit).items.clear()  # all rows of the unit make room
            return
        before = intervals.raised(loaded.start, loaded.end, loaded.grid)
        self._read(loaded.unit, before, loaded.lower, loaded.end)
        if self._has("early", loaded.unit) and (before is None or before <= loaded.end):
            self._of("early", loaded.unit).dropped(loaded.start)
        for name in ("left", "whole"):
            if self._has(name, loaded.unit):
                self._of(name, loaded.unit).dropped(loaded.start)
        starts = [start for start in self._open.get(loaded.unit, ()) if start != loaded.start]
        self._open[loaded.unit] = sorted([*starts, loaded.start]) if loaded.open else starts

    def early(self, deferred: Iterable[DeferredUnits]) -> None:
        for units in deferred:
            if units.start is not None and units.end is not None:
                self._of("early", units.unit).added(units.start, units.end, Grid.parse(units.grid))

    def replaced(self, old: Iterable[tuple[str, int]]) -> None:
        for unit, start in old:
            self._of("stale", unit).dropped(start)

    def kept(self, unit: str, start: int, end: int) -> None:
        self._of("stale", unit).added(start, end, Grid("none"))

    def _has(self, name: str, unit: str) -> bool:
        return unit in self._intervals[name] or unit in getattr(self._old, name)

    def _of(self, name: str, unit: str) -> WindowIntervals:
        made = self._intervals[name]
        if unit not in made:
            made[unit] = WindowIntervals(getattr(self._old, name).get(unit, ()), self._old.grid)
        return made[unit]

    def _read(self, unit: str, before: int | None, lower: int, end: int) -> None:
        """Keep what abstinence has left unread: nobody has read what lies between the high and where a read started."""
        left = list(_less(self._skipped.get(unit, ()), lower, end))
        if before is not None and lower > before:
            left.append([before, lower])
        self._skipped[unit] = left


def _filled(of_units: Mapping[str, Any]) -> dict[str, Any]:
    return {unit: of_unit for unit, of_unit in of_units.items() if of_unit}


def _less(ranges: Iterable[list[int]], lower: int, upper: int) -> Iterator[list[int]]:
    for start, end in ranges:
        if start < min(end, lower):
            yield [start, min(end, lower)]
        if max(start, upper) < end:
            yield [max(start, upper), end]


def _check(intervals: list[WindowInterval]) -> None:
    below = None
    for interval in intervals:
        start, end, *grid = interval
        if below is not None and start < below:
            raise ValueError(f"expected runs ascending by start, found {interval!r} above {below}")
        below = start
        if type(interval) is not list or type(start) is not int or type(end) is not int or start >= end:
            raise ValueError(f"expected [start, high] with start below high, found {interval!r}")
        if grid:
            Grid.parse(*grid)


def _shortened(failure: Failure) -> list[Any]:
    return list(failure) if failure.attempts or failure.at is not None else [0]


def _text(start: TimeBound) -> str:
    return "-" if start is None else str(start)


def _start(text: str) -> TimeBound:
    return None if text == "-" else int(text)
