"""What is loaded of a unit, what is missing and why, and what overlaps (spec 03, Ledger)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from partitions.intervals import Interval, difference, intersection, missing, overlaid, overlaps, union
from partitions.window.grid import Windows
from partitions.window.runs import Run
from partitions.window.state import WindowState

Why = Literal["never_loaded", "failed", "abstinence", "left_out", "open", "no_window"]

WORDS: Mapping[Why, str] = {
    "never_loaded": "never loaded",
    "failed": "failed",
    "abstinence": "skipped by abstinence",
    "left_out": "left out by the cap on work units",
    "open": "the window is still open",
    "no_window": "no window covers it",
}
"""Reasons of gaps, for people."""


class Cause(NamedTuple):
    """Why something is missing.

    Attributes:
        attempts: how often it was tried, where it failed.
        error: why it failed.
    """

    why: Why
    attempts: int | None = None
    error: str | None = None

    @property
    def words(self) -> str:
        """For people."""
        if self.why != "failed":
            return WORDS[self.why]
        times = "once" if self.attempts == 1 else f"{self.attempts} times"
        return f"failed {times}: {self.error or 'without saying why'}"


Gap = tuple[int, int, Cause]
"""``[start, end)``, and why nothing of it is loaded."""

_NEVER, _LEFT, _OPEN = Cause("never_loaded"), Cause("left_out"), Cause("open")
_SKIPPED, _NO_WINDOW = Cause("abstinence"), Cause("no_window")

_ALIKE = 8
"""Units with no more runs than this are compared with each other, so that thousands that are alike are looked at once."""


@dataclass(frozen=True)
class Coverage:
    """What is known of a unit, or of several alike. All stretches are ascending and lie apart.

    Attributes:
        covered: what is loaded, whatever the windows were; what abstinence has left unread is not.
        gaps: what is missing between ``from`` and ``to``, or of a unit that is gone, before its last window's end.
        overlaps: what windows cover that were cut in different ways.
        complete_up_to: the end of what is covered without a gap from ``from`` on; None where the first instant is missing.
    """

    covered: tuple[Interval, ...]
    gaps: tuple[Gap, ...]
    overlaps: tuple[Interval, ...]
    complete_up_to: int | None


NOTHING = Coverage((), (), (), None)
"""Without a time dimension nothing is covered and nothing missing."""


@dataclass(frozen=True)
class Coverages:
    """Looks at one unit after another.

    Attributes:
        state: what is committed.
        windows: all of the definition, up to now.
        start: ``from``.
        end: ``to``, or now where that is earlier; not before ``start``.
    """

    state: WindowState
    windows: Windows
    start: int
    end: int
    _alike: dict[Any, Coverage] = field(default_factory=dict)

    def of(self, unit: str, *, gone: bool) -> Coverage:
        """What is known of a unit; of one that is gone nothing is expected behind what was loaded last."""
        key = self._key(unit, gone)
        if key is None or key not in self._alike:
            found = self._look(unit, gone)
            if key is None:
                return found
            self._alike[key] = found
        return self._alike[key]

    def _key(self, unit: str, gone: bool) -> Any:
        """What is equal for units that are alike; None where that is not worth a look."""
        state, runs = self.state, self.state.units.get(unit, ())
        special = any(unit in found for found in (state.failed, state.skipped, state.left, state.whole))
        if special or len(runs) > _ALIKE:
            return None
        return gone, tuple(state.open.get(unit, ())), tuple(map(tuple, runs))

    def _look(self, unit: str, gone: bool) -> Coverage:
        runs = [(run[0], run[1]) for run in self.state.units.get(unit, ())]
        skipped = union(sorted(map(_interval, self.state.skipped.get(unit, ()))))
        covered = difference(runs, skipped) if skipped else union(runs)
        end = min(self.end, max((high for _, high in runs), default=self.start)) if gone else self.end
        gaps = self._explained(unit, missing(covered, self.start, end), skipped)
        reached = gaps[0][0] if gaps else end
        return Coverage(
            tuple(covered), tuple(gaps), tuple(overlaps(runs)), reached if reached > self.start else None
        )

    def _explained(self, unit: str, bare: Sequence[Interval], skipped: Sequence[Interval]) -> list[Gap]:
        """Each gap, cut where its reason changes."""
        marks = self._everywhere
        for layer in (
            self._opened(unit),
            [(start, end, _SKIPPED) for start, end in skipped],
            list(self._left_out(unit)),
            self._failed(unit),
        ):
            marks = overlaid(marks, layer)
        return _joined(overlaid([(start, end, _NEVER) for start, end in bare], intersection(marks, bare)))

    @cached_property
    def _everywhere(self) -> list[Gap]:
        """What is the same for all units: where there is no window, and where it is not over yet."""
        windows = self.windows
        cut = [
            (windows.starts[first], windows.ends[after - 1])
            for first, after in windows.bounds
            if first < after
        ]
        none: list[Gap] = [(start, end, _NO_WINDOW) for start, end in missing(cut, self.start, self.end)]
        return overlaid(none, [(*windows[index], _OPEN) for index in sorted(windows.open)])

    def _opened(self, unit: str) -> list[Gap]:
        """Windows that were open when they were loaded last, wherever they end now."""
        index = self.windows.index
        starts = sorted(start for start in self.state.open.get(unit, ()) if start in index)
        return [(*self.windows[index[start]], _OPEN) for start in starts]

    def _left_out(self, unit: str) -> Iterator[Gap]:
        runs: list[Run] = [*self.state.left.get(unit, ()), *self.state.whole.get(unit, ())]
        yield from ((start, end, _LEFT) for start, end in union(sorted(map(_interval, runs))))

    def _failed(self, unit: str) -> list[Gap]:
        index = self.windows.index
        tried = [
            (start, found)
            for start, found in self.state.failed.get(unit, {}).items()
            if start in index and start is not None
        ]
        return [
            (*self.windows[index[start]], Cause("failed", found.attempts, found.error))
            for start, found in sorted(tried, key=lambda one: one[0])
        ]


def _interval(run: Sequence[Any]) -> Interval:
    return run[0], run[1]


def _joined(gaps: Iterable[Gap]) -> list[Gap]:
    """Neighbours with the same reason are one."""
    made: list[Gap] = []
    for gap in gaps:
        if made and made[-1][1] == gap[0] and made[-1][2] == gap[2]:
            made[-1] = made[-1][0], gap[1], gap[2]
        else:
            made.append(gap)
    return made
