"""A literal version of the rule in docs/explanation/watermarks.md, one work unit at a time.

The planner of the window kind is compared with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from partitions.window.calendar_grid import steps
from partitions.window.definition import WindowWatermark
from partitions.window.state import WindowState
from partitions.window.windows import Windows

Key = tuple[int, str]
"""A window's start, and a unit."""


class Work(NamedTuple):
    """The part ``[lower, end)`` that is read of a unit's window."""

    start: int
    end: int
    unit: str
    lower: int

    @property
    def key(self) -> Key:
        return self.start, self.unit


@dataclass(frozen=True)
class ForcedParts:
    """A forced request: windows that intersect a range, of some units."""

    ranges: Sequence[tuple[int, int]] | None = None
    units: Collection[str] | None = None

    def holds(self, start: int, end: int, unit: str) -> bool:
        inside = self.ranges is None or any(a < b and start < b and a < end for a, b in self.ranges)
        return inside and (self.units is None or unit in self.units)


@dataclass
class Naive:
    """The state of each work unit."""

    highs: dict[Key, int] = field(default_factory=dict)
    failed: dict[Key, tuple[int, int]] = field(default_factory=dict)  # attempts, and when the last was
    retried: bool = False
    open: set[Key] = field(default_factory=set)
    skipped: set[Key] = field(default_factory=set)
    whole: set[Key] = field(default_factory=set)

    def due(
        self, definition: WindowWatermark, windows: Windows, units: Sequence[str], forced: ForcedParts | None
    ) -> list[Work]:
        """Return the due work in planning order."""
        grace, abstinent = definition.grace_ms, definition.abstinent_ms
        job = max(self.highs.values(), default=None)
        due_work = []
        for start, end in windows:
            for unit in units:
                key, high = (start, unit), self.highs.get((start, unit))
                if forced is not None:
                    if forced.holds(start, end, unit):
                        due_work.append(Work(start, end, unit, start))
                elif high is None:
                    due_work.append(Work(start, end, unit, start))
                else:
                    own = high + abstinent - grace
                    assert job is not None
                    if (
                        key in {*self.failed} | self.skipped | self.whole
                        or (key in self.open and end > own)
                        or end > max(own, job - grace)
                    ):
                        lower = start if key in self.whole else min(max(own, start), end)
                        due_work.append(Work(start, end, unit, lower))
        return due_work

    def chosen(self, due: list[Work], most: int | None, now: int, forced: bool) -> list[Work]:
        """Return the work that a cap lets pass.

        At most half is work that failed, the oldest attempt first; then come the units that waited
        longest.
        """
        if most is None or len(due) <= most:
            return due
        failed = [] if forced else [work for work in due if work.key in self.failed]
        other_work = [work for work in due if work not in failed]
        rested = sorted(
            (work for work in failed if self._rested(work.key, now)),
            key=lambda work: self.failed[work.key][1],
        )
        half = max(most // 2, int(not self.retried))
        tried = rested[: max(half, most - len(other_work))]
        fresh = [work for work in other_work if work.key not in self.highs]
        served = sorted(
            (work for work in other_work if work.key in self.highs), key=lambda work: self.highs[work.key]
        )
        selected = {*tried, *[*fresh, *served][: most - len(tried)]}
        return [work for work in due if work in selected]

    def _rested(self, key: Key, now: int) -> bool:
        attempts, at = self.failed[key]
        return at + min(60_000 << (attempts - 1), 3_600_000) <= now

    def run(
        self,
        windows: Windows,
        due: list[Work],
        selected: list[Work],
        fails: Collection[int],
        forced: bool,
        now: int,
    ) -> None:
        """Load the selected work in this order; the work units with these numbers fail."""
        for work in set(due) - set(selected):
            if work.key in self.highs and (forced or work.key not in self.failed):
                (self.whole if forced or work.key in self.whole else self.skipped).add(work.key)
        if selected:
            self.retried = any(work.key in self.failed for work in selected)
        open_starts = {windows.starts[index] for index in windows.open}
        for number, work in enumerate(selected):
            if number in fails:
                self.failed[work.key] = (self.failed.get(work.key, (0, 0))[0] + 1, now)
                if forced or (work.key in self.whole and work.key in self.highs):
                    self.whole.add(work.key)
                continue
            self.highs[work.key] = max(work.end, self.highs.get(work.key, work.end))
            self.failed.pop(work.key, None)
            self.skipped.discard(work.key)
            if work.lower == work.start:
                self.whole.discard(work.key)
            (self.open.add if work.start in open_starts else self.open.discard)(work.key)


def highs(state: WindowState) -> Mapping[Key, int]:
    """Return every high of a state, by stepping through its runs."""
    known_highs: dict[Key, int] = {}
    for unit, runs in state.units.items():
        for run in runs:
            for start, end in _windows(state, run):
                known_highs[start, unit] = max(end, known_highs.get((start, unit), end))
    return known_highs


def keys(state: WindowState, of_units: Mapping[str, list[list[int]]]) -> set[Key]:
    """Return every work unit in some runs of a state."""
    return {
        (start, unit) for unit, runs in of_units.items() for run in runs for start, _ in _windows(state, run)
    }


def _windows(state: WindowState, run: list[int]) -> Iterable[tuple[int, int]]:
    start, windows = run[0], steps(state.grid_of(run), run[0])
    while start < run[1]:
        end = windows.next(start)
        yield start, min(end, run[1])
        start = end
