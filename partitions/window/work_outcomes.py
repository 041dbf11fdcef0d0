"""What becomes of a work unit in a commit: it is loaded, has failed, or is deferred (docs/reference/windows.md)."""

from __future__ import annotations

from typing import NamedTuple

from partitions.pauses import rest
from partitions.window.calendar_grid import Grid

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
        whole: whether they are to be read again from their starts on.
    """

    unit: str
    start: TimeBound
    end: TimeBound
    grid: str
    whole: bool = False
