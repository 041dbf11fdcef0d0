"""Migrate a state to a changed definition, so that no pending work is lost.

See docs/reference/windows.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from partitions.errors import ConfigurationError
from partitions.intervals import consecutive, subtract, union
from partitions.window.definition import WindowWatermark
from partitions.window.due_ranges import DueFinder
from partitions.window.grace import Cutoffs
from partitions.window.old_windows import recut_state
from partitions.window.state import WindowState
from partitions.window.window_intervals import WindowInterval
from partitions.window.windows import Windows
from partitions.window.work_outcomes import TimeBound, WindowSpan

__all__ = ["migrate_state"]


def migrate_state(
    state: WindowState,
    definition: WindowWatermark,
    now: datetime,
    *,
    tagged: bool = False,
    has_step: bool = False,
    before: WindowState | None = None,
) -> WindowState:
    """Return the state under a new definition.

    A window that starts where an old one started keeps its high; all others are new. That alone would lose
    work. If the old window was shorter, the time after it may never have been loaded. And work that
    failed, waits or was cut short may no longer start a window. So a window that keeps a high and holds
    such work is read again from its start.

    A step, ``sql`` or ``transform``, may make the rows of a window as a whole, such as its sum. Then a window
    that keeps a high is read again from its start, too, unless it is cut as before.

    If rows are known only by the start of their window, a window keeps its high only if it is cut as
    before. The rows of all other windows are old, and are deleted when their time is read again.

    Args:
        state: the state under the definition before.
        definition: the new definition.
        now: the clock, aware.
        tagged: whether rows tell their window only by its start.
        has_step: whether a step makes the rows from those of the source.
        before: the newest state, whose rows are in the table; None if ``state`` tells them, too.

    Raises:
        ConfigurationError: if loaded rows have no window at all, and the new definition has windows.
    """
    if not tagged:
        state = replace(state, old={})
    if definition.time_entry is None:
        return _without_windows(state, before) if tagged else state
    state = state.rebased(definition.default_grid)
    windows = definition.windows(now)
    if tagged:
        _check_timed(state, before)
        state = recut_state(state, before, windows, definition.time_range.start(now))
    migration = _Migration(state, windows, has_step)
    whole = [units for unit in state.units for units in migration.reread_windows(unit)]
    grows = {unit: starts for unit in state.units if (starts := migration.newly_open_starts(unit))}
    if not whole and not migration.moved and not grows:
        return state
    settled = migration.settled_state().after((), (), whole)
    opened = {unit: sorted({*settled.open.get(unit, ()), *starts}) for unit, starts in grows.items()}
    return replace(settled, open={**settled.open, **opened})


def _without_windows(state: WindowState, before: WindowState | None) -> WindowState:
    """Return the state for a definition without windows: each read of a unit deletes all its rows."""
    old = recut_state(state, before, Windows.of(()), 0).old
    remaining = WindowState(state.grid) if any(state.units.values()) else state
    return replace(remaining, old=old)


def _check_timed(*states: WindowState | None) -> None:
    if any(not intervals for state in states if state is not None for intervals in state.units.values()):
        raise ConfigurationError(
            "the table's rows were loaded without windows, so nothing tells which rows a window "
            "replaces: they would be duplicated. Reload the table: strandline state reset NAME --replace "
            "--reason TEXT"
        )


@dataclass
class _Migration:
    state: WindowState
    windows: Windows
    has_step: bool

    def __post_init__(self) -> None:
        self._unit_due = DueFinder(self.state, self.windows, Cutoffs(None, 0, 0))
        parts = ("failed", "open", "over_cap", "reread_whole", "early")
        units = {unit for part in parts for unit in getattr(self.state, part)}
        self.moved = {unit: ranges for unit in sorted(units) if (ranges := list(self._moved_stretches(unit)))}
        """The stretches of pending work whose windows the new definition cuts differently, by unit."""

    def reread_windows(self, unit: str) -> Iterator[WindowSpan]:
        """Yield the windows of a unit that keep a high and must be read again from their start."""
        waiting = {
            index for start, end in self.moved.get(unit, ()) for index in self.windows.touching(start, end)
        }
        covered = self._covered(unit)
        again = []
        for first, after, high in self._unit_due.loaded_ranges(unit):
            # It was loaded as a shorter window, and the rest of its time is not all loaded; or rows were made of another stretch.
            if high is not None and (
                self.has_step
                or (high < self.windows.ends[first] and subtract([self.windows[first]], covered))
            ):
                waiting.add(first)
            again += [index for index in range(first, after) if index in waiting]
        for first, after in consecutive(again, self.windows.stretch):
            grid = self.windows.stretches[self.windows.stretch(first)].grid
            yield WindowSpan(
                unit, self.windows.starts[first], self.windows.ends[after - 1], grid.text, reread_whole=True
            )

    def newly_open_starts(self, unit: str) -> list[int]:
        """Return the starts of open windows that the state does not list as open.

        The definition before had no such windows.
        """
        if not self.windows.open:
            return []
        noted = {*self.state.open.get(unit, ()), *self.state.failed.get(unit, ())}
        covered = self._covered(unit)
        starts = []
        for first, _, high in self._unit_due.loaded_ranges(unit):
            start = self.windows.starts[first]
            if (
                high is not None
                and first in self.windows.open
                and start not in noted
                and subtract([(start, self.windows.cut[first])], covered)
            ):
                starts.append(start)
        return starts

    def _covered(self, unit: str) -> list[tuple[int, int]]:
        return union(sorted(interval[:2] for interval in self.state.units.get(unit, ())))

    def settled_state(self) -> WindowState:
        """Return the state without the pending work that moved to current windows."""

        def keep_staying(intervals: Mapping[str, list[WindowInterval]]) -> dict[str, list[WindowInterval]]:
            staying = {
                unit: [interval for interval in of_unit if self._is_cut_as_before(interval)]
                for unit, of_unit in intervals.items()
            }
            return {unit: of_unit for unit, of_unit in staying.items() if of_unit}

        failed = {
            unit: {
                start: failure for start, failure in of_unit.items() if not self._lies_inside_window(start)
            }
            for unit, of_unit in self.state.failed.items()
        }
        opened = {
            unit: [start for start in starts if not self._lies_inside_window(start)]
            for unit, starts in self.state.open.items()
        }
        return replace(
            self.state,
            failed={unit: of_unit for unit, of_unit in failed.items() if of_unit},
            open={unit: starts for unit, starts in opened.items() if starts},
            over_cap=keep_staying(self.state.over_cap),
            reread_whole=keep_staying(self.state.reread_whole),
            early=keep_staying(self.state.early),
        )

    def _moved_stretches(self, unit: str) -> Iterator[tuple[int, int]]:
        starts: Iterable[TimeBound] = (*self.state.failed.get(unit, ()), *self.state.open.get(unit, ()))
        yield from ((start or 0, (start or 0) + 1) for start in starts if self._lies_inside_window(start))
        parts = (self.state.over_cap, self.state.reread_whole, self.state.early)
        intervals = (interval for part in parts for interval in part.get(unit, ()))
        yield from (
            (interval[0], interval[1]) for interval in intervals if not self._is_cut_as_before(interval)
        )

    def _lies_inside_window(self, start: TimeBound) -> bool:
        """Return whether a start lies inside a window without starting one.

        A start without a time comes from a definition without windows.
        """
        if start is None:
            return True
        return start not in self.windows.index and bool(self.windows.touching(start, start + 1))

    def _is_cut_as_before(self, interval: WindowInterval) -> bool:
        """Return whether the windows of an interval are cut as before."""
        touched = self.windows.touching(interval[0], interval[1])
        if not touched:
            return True
        grid = self.state.grid_of(interval)
        same = all(self.windows.stretches[self.windows.stretch(index)].grid == grid for index in touched)
        return same and interval[0] in self.windows.index
