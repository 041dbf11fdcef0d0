"""When a window that is loaded is read again: grace, abstinence, and the job's cutoff (docs/reference/windows.md)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from partitions.window.state import WindowState


def job_cutoff(state: WindowState, grace: int, now: int) -> int | None:
    """The cutoff of the whole job: its highest usable high less the grace; None without any. No high counts for more than now."""
    highest = state.highest
    return None if highest is None else min(highest, now) - grace


def cutoff(highs: Iterable[int], start: int, grace: int, abstinent: int) -> int:
    """The cutoff of a work unit: its highest high, or the start if it has none. It is not clipped to the window."""
    highest = max(highs, default=None)
    return start if highest is None else highest + abstinent - grace


@dataclass(frozen=True)
class Cutoffs:
    """What decides about windows that were loaded before.

    Attributes:
        job: the job's cutoff; None if nothing is loaded.
        grace: milliseconds.
        abstinent: milliseconds.
    """

    job: int | None
    grace: int
    abstinent: int

    def read_again(self, end: int, high: int, *, grows: bool) -> bool:
        """Whether a window is read again."""
        own = self.own(high)
        return end > own if grows or self.job is None else end > max(own, self.job)

    def lower(self, start: int, high: int) -> int:
        """Where such a read starts."""
        return max(self.own(high), start)

    def own(self, high: int) -> int:
        """The cutoff of a window with a high."""
        return cutoff((high,), high, self.grace, self.abstinent)
