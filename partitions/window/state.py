"""The state of a window watermark: what is loaded of each unit, up to where (spec 02, The log; spec 03, State and what runs).

A *run* of a unit is ``[start, high]``: windows of one grid that follow each other, each loaded up to its end, the last one up to
``high``. So a unit that is complete has one run, however many windows it has. A run of another grid than the state's own
carries that grid's text as its third member; the windows of a run are found by stepping from its start.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from partitions.errors import CorruptWatermark
from partitions.sentinels import Watermark
from partitions.watermark import is_empty
from partitions.window.grid import Grid, steps

Run = list[Any]
"""``[start, high]`` or ``[start, high, grid]``, epoch milliseconds."""

Start = int | None
"""A window's start; None where there is no time dimension."""


class Failure(NamedTuple):
    """What is known of a work unit that was not loaded when it was its turn.

    Attributes:
        attempts: how often it was tried; 0: the cap on work units left it out.
        error: why, in a line.
        at: when it was tried last, epoch milliseconds.
    """

    attempts: int
    error: str | None = None
    at: int | None = None


class Done(NamedTuple):
    """A work unit that was read and written.

    Attributes:
        start: of its window; None without a time dimension.
        end: of its window, as it was planned: the high that it has now.
        lower: what was read starts here.
        unit: its identity.
        open: whether now has cut the window short.
        grid: how the window was cut.
    """

    start: Start
    end: Start
    lower: Start
    unit: str
    open: bool
    grid: Grid


@dataclass(frozen=True)
class WindowState:
    """What is committed. No high ever falls.

    Attributes:
        grid: of all runs that carry none.
        units: runs by unit, ascending by start.
        open: the starts of windows whose last success was on one that now had cut short, by unit.
        failed: what waits to be tried again, by unit and start.
        skipped: what abstinence has left unread, ``[start, end]``, by unit.
    """

    grid: Grid = field(default_factory=lambda: Grid("none"))
    units: Mapping[str, list[Run]] = field(default_factory=dict)
    open: Mapping[str, list[int]] = field(default_factory=dict)
    failed: Mapping[str, Mapping[Start, Failure]] = field(default_factory=dict)
    skipped: Mapping[str, list[list[int]]] = field(default_factory=dict)

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
                    unit: {_start(text): Failure(*found) for text, found in of_unit.items()}
                    for unit, of_unit in watermark.get("failed", {}).items()
                },
                watermark.get("skipped", {}),
            )
            for runs in state.units.values():
                _check(runs)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CorruptWatermark(
                'window watermark: expected {"grid": text, "units": {unit: [[start, high], …]}, "open", "failed", "skipped"},'
                f" found another form: {error!r}"
            ) from error
        return state

    def watermark(self) -> Watermark:
        """As JSON data; without anything known of any unit it is empty."""
        if not self.units and not self.failed:
            return {}
        made: Watermark = {"grid": self.grid.text, "units": dict(self.units)}
        if self.open:
            made["open"] = dict(self.open)
        if self.failed:
            made["failed"] = {
                unit: {_text(start): _shortened(found) for start, found in of_unit.items()}
                for unit, of_unit in self.failed.items()
            }
        if self.skipped:
            made["skipped"] = dict(self.skipped)
        return made

    @property
    def highest(self) -> int | None:
        """The highest usable high of the job; None where there is none."""
        return max((run[1] for runs in self.units.values() for run in runs), default=None)

    def grid_of(self, run: Run) -> Grid:
        """How the windows of a run were cut."""
        return Grid.parse(run[2]) if len(run) > 2 else self.grid

    def high(self, unit: str, start: int) -> int | None:
        """The high of the window that starts there; None where it has no usable one."""
        return next(
            (high for run in self.units.get(unit, ()) if (high := self._high(run, start)) is not None), None
        )

    def _high(self, run: Run, start: int) -> int | None:
        if not run[0] <= start < run[1]:
            return None
        windows = steps(self.grid_of(run), run[0])
        return min(windows.next(start), run[1]) if windows.on(start) else None

    def rebased(self, grid: Grid) -> WindowState:
        """The same state with another grid as its own: what was loaded by the old one stays known as that."""
        if grid == self.grid or not self.units:
            return replace(self, grid=grid)
        old, new = self.grid.text, grid.text
        units = {
            unit: [run if len(run) > 2 else [*run, old] for run in runs] for unit, runs in self.units.items()
        }
        plain = {unit: [run[:2] if run[2] == new else run for run in runs] for unit, runs in units.items()}
        return replace(self, grid=grid, units=plain)

    def with_high(self, unit: str, start: int, high: int) -> WindowState:
        """A window that is loaded up to somewhere, whatever its grid; a high that is no higher than its start is none."""
        if high <= start:
            return self
        single = Grid("none").text
        return replace(
            self, units={**self.units, unit: _inserted(self.units.get(unit, []), [start, high, single])}
        )

    def after(
        self,
        done: Iterable[Done],
        failed: Iterable[tuple[str, Start, str]] = (),
        left_out: Iterable[tuple[str, Start]] = (),
        *,
        at: int | None = None,
    ) -> WindowState:
        """The state after a commit.

        Args:
            done: what was read and written.
            failed: work units that could not be read, by unit and start, with the error.
            left_out: work units that were due and that the cap left out.
            at: when, epoch milliseconds.
        """
        made = _Making(self)
        for one in done:
            made.succeeded(one)
        for unit, start, error in failed:
            before = made.failure(unit, start)
            made.set_failure(unit, start, Failure((before.attempts if before else 0) + 1, error[:500], at))
        for unit, start in left_out:
            if made.failure(unit, start) is None:
                made.set_failure(unit, start, Failure(0))
        return made.state()

    def covers(self, other: WindowState) -> bool:
        """Whether no high falls from ``other`` to this state."""
        return all(
            self._covers(unit, run, other.grid_of(run)) for unit, runs in other.units.items() for run in runs
        )

    def _covers(self, unit: str, run: Run, grid: Grid) -> bool:
        runs = self.units.get(unit, [])
        return any(own[0] <= run[0] and run[1] <= own[1] and self.grid_of(own) == grid for own in runs)


class _Making:
    """A state that is being changed; what is not changed is shared with the old one."""

    def __init__(self, state: WindowState) -> None:
        self._old = state
        self._units, self._open = dict(state.units), dict(state.open)
        self._failed = dict(state.failed)
        self._skipped = dict(state.skipped)
        self._own: set[str] = set()

    def state(self) -> WindowState:
        return WindowState(
            self._old.grid,
            self._units,
            {unit: starts for unit, starts in self._open.items() if starts},
            {unit: of_unit for unit, of_unit in self._failed.items() if of_unit},
            self._skipped,
        )

    def failure(self, unit: str, start: Start) -> Failure | None:
        return self._failed.get(unit, {}).get(start)

    def set_failure(self, unit: str, start: Start, failure: Failure) -> None:
        self._failed[unit] = {**self._failed.get(unit, {}), start: failure}

    def succeeded(self, one: Done) -> None:
        if one.start in self._failed.get(one.unit, {}):
            self._failed[one.unit] = {
                start: found for start, found in self._failed[one.unit].items() if start != one.start
            }
        if one.unit not in self._own:
            self._units[one.unit] = [list(run) for run in self._units.get(one.unit, [])]
            self._own.add(one.unit)
        if one.start is not None and one.end is not None and one.lower is not None:
            self._read(one.unit, one.start, one.end, one.grid, one.lower)
            starts = [start for start in self._open.get(one.unit, ()) if start != one.start]
            self._open[one.unit] = sorted([*starts, one.start]) if one.open else starts

    def _read(self, unit: str, start: int, end: int, grid: Grid, lower: int) -> None:
        before = self._raise(self._units[unit], start, end, grid)
        if before is not None and lower > before:  # abstinence: nobody has read what lies between
            self._skipped[unit] = [*self._skipped.get(unit, []), [before, lower]]
        elif unit in self._skipped:
            left = list(_less(self._skipped[unit], lower, end))
            self._skipped[unit] = left
            if not left:
                del self._skipped[unit]

    def _raise(self, runs: list[Run], start: int, end: int, grid: Grid) -> int | None:
        """Put the window's high where it belongs; returns the one that it had."""
        index = bisect_left(runs, start, key=lambda run: run[0])
        # Of the runs that begin at or before it, the nearest are the likeliest to hold it.
        for number in reversed(range(min(index + 1, len(runs)))):
            run = runs[number]
            before = self._old._high(run, start)
            if before is not None:
                if before == run[1] and end > run[1]:  # its last window has grown
                    run[1] = end
                    self._join(runs, number, grid)
                return before
        runs.insert(index, [start, end] if grid == self._old.grid else [start, end, grid.text])
        self._join(runs, index, grid)
        if index:
            self._join(runs, index - 1, grid)
        return None

    def _join(self, runs: list[Run], index: int, grid: Grid) -> None:
        """Make one run of two that follow each other on one grid."""
        if index + 1 >= len(runs):
            return
        left, right = runs[index], runs[index + 1]
        if (
            left[1] == right[0]
            and left[2:] == right[2:]
            and grid.grain != "none"
            and steps(grid, left[0]).on(right[0])
        ):
            left[1] = right[1]
            del runs[index + 1]


def _less(ranges: Iterable[list[int]], lower: int, upper: int) -> Iterator[list[int]]:
    for start, end in ranges:
        if start < min(end, lower):
            yield [start, min(end, lower)]
        if max(start, upper) < end:
            yield [max(start, upper), end]


def _inserted(runs: list[Run], run: Run) -> list[Run]:
    return sorted([*runs, run], key=lambda one: one[0])


def _check(runs: list[Run]) -> None:
    for run in runs:
        if not (type(run) is list and type(run[0]) is int and type(run[1]) is int and run[0] < run[1]):
            raise ValueError(f"expected [start, high] with start below high, found {run!r}")


def _shortened(failure: Failure) -> list[Any]:
    return list(failure) if failure.attempts else [0]


def _text(start: Start) -> str:
    return "-" if start is None else str(start)


def _start(text: str) -> Start:
    return None if text == "-" else int(text)
