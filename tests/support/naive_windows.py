"""The rule of docs/explanation/watermarks.md written down literally, one work unit at a time: what the planner of the window kind is compared with."""

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
    """What is read of a window of a unit: ``[lower, end)``."""

    start: int
    end: int
    unit: str
    lower: int

    @property
    def key(self) -> Key:
        return self.start, self.unit


@dataclass(frozen=True)
class Asked:
    """What somebody has asked to read anew: windows that intersect a range, of some units."""

    ranges: Sequence[tuple[int, int]] | None = None
    units: Collection[str] | None = None

    def holds(self, start: int, end: int, unit: str) -> bool:
        inside = self.ranges is None or any(a < b and start < b and a < end for a, b in self.ranges)
        return inside and (self.units is None or unit in self.units)


@dataclass
class Naive:
    """All that is known of each work unit."""

    highs: dict[Key, int] = field(default_factory=dict)
    failed: dict[Key, tuple[int, int]] = field(default_factory=dict)  # attempts, and when the last was
    retried: bool = False
    open: set[Key] = field(default_factory=set)
    left: set[Key] = field(default_factory=set)
    whole: set[Key] = field(default_factory=set)

    def due(
        self, definition: WindowWatermark, windows: Windows, units: Sequence[str], asked: Asked | None
    ) -> list[Work]:
        """In planning order."""
        grace, abstinent = definition.grace_ms, definition.abstinent_ms
        job = max(self.highs.values(), default=None)
        found = []
        for start, end in windows:
            for unit in units:
                key, high = (start, unit), self.highs.get((start, unit))
                if asked is not None:
                    if asked.holds(start, end, unit):
                        found.append(Work(start, end, unit, start))
                elif high is None:
                    found.append(Work(start, end, unit, start))
                else:
                    own = high + abstinent - grace
                    assert job is not None
                    if (
                        key in {*self.failed} | self.left | self.whole
                        or (key in self.open and end > own)
                        or end > max(own, job - grace)
                    ):
                        lower = start if key in self.whole else min(max(own, start), end)
                        found.append(Work(start, end, unit, lower))
        return found

    def chosen(self, due: list[Work], most: int | None, now: int, asked: bool) -> list[Work]:
        """Those that a cap lets pass: of what failed at most half, the oldest attempt first; of others the oldest unserved first."""
        if most is None or len(due) <= most:
            return due
        failed = [] if asked else [one for one in due if one.key in self.failed]
        others = [one for one in due if one not in failed]
        rested = sorted(
            (one for one in failed if self._rested(one.key, now)), key=lambda one: self.failed[one.key][1]
        )
        half = max(most // 2, int(not self.retried))
        tried = rested[: max(half, most - len(others))]
        fresh = [one for one in others if one.key not in self.highs]
        served = sorted((one for one in others if one.key in self.highs), key=lambda one: self.highs[one.key])
        taken = {*tried, *[*fresh, *served][: most - len(tried)]}
        return [one for one in due if one in taken]

    def _rested(self, key: Key, now: int) -> bool:
        attempts, at = self.failed[key]
        return at + min(60_000 << (attempts - 1), 3_600_000) <= now

    def run(
        self,
        windows: Windows,
        due: list[Work],
        taken: list[Work],
        fails: Collection[int],
        asked: bool,
        now: int,
    ) -> None:
        """Load what was taken, in this order; those of some numbers fail."""
        for one in set(due) - set(taken):
            if one.key in self.highs and (asked or one.key not in self.failed):
                (self.whole if asked or one.key in self.whole else self.left).add(one.key)
        if taken:
            self.retried = any(one.key in self.failed for one in taken)
        open_starts = {windows.starts[index] for index in windows.open}
        for number, one in enumerate(taken):
            if number in fails:
                self.failed[one.key] = (self.failed.get(one.key, (0, 0))[0] + 1, now)
                if asked or (one.key in self.whole and one.key in self.highs):
                    self.whole.add(one.key)
                continue
            self.highs[one.key] = max(one.end, self.highs.get(one.key, one.end))
            self.failed.pop(one.key, None)
            self.left.discard(one.key)
            if one.lower == one.start:
                self.whole.discard(one.key)
            (self.open.add if one.start in open_starts else self.open.discard)(one.key)


def highs(state: WindowState) -> Mapping[Key, int]:
    """Every high that a state knows, found by stepping through its runs."""
    known: dict[Key, int] = {}
    for unit, runs in state.units.items():
        for run in runs:
            for start, end in _windows(state, run):
                known[start, unit] = max(end, known.get((start, unit), end))
    return known


def keys(state: WindowState, of_units: Mapping[str, list[list[int]]]) -> set[Key]:
    """Every work unit that some runs of a state hold."""
    return {
        (start, unit) for unit, runs in of_units.items() for run in runs for start, _ in _windows(state, run)
    }


def _windows(state: WindowState, run: list[int]) -> Iterable[tuple[int, int]]:
    start, windows = run[0], steps(state.grid_of(run), run[0])
    while start < run[1]:
        end = windows.next(start)
        yield start, min(end, run[1])
        start = end
