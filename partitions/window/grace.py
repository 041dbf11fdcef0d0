"""When a loaded window is read again: grace, abstinence, and the job's cutoff.

See docs/reference/windows.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from partitions.window.state import WindowState


def job_cutoff(state: WindowState, grace: int, now: int) -> int | None:
    """Return the cutoff of the whole job: its highest high less the grace; None without a high.

    Highs above now count as now.
    """
    highest = state.highest
    return None if highest is None else min(highest, now) - grace


def cutoff(highs: Iterable[int], start: int, grace: int, abstinent: int) -> int:
    """Return the cutoff of a work unit from its highest high, or its start if it has none.

    It is not clipped to the window.
    """
    highest = max(highs, default=None)
    return start if highest is None else highest + abstinent - grace


@dataclass(frozen=True)
class Cutoffs:
    """The cutoffs of loaded windows.

    Attributes:
        job: the job's cutoff; None if nothing is loaded.
        grace: the grace, milliseconds.
        abstinent: the abstinence, milliseconds.
    """

    job: int | None
    grace: int
    abstinent: int

    def read_again(self, end: int, high: int, *, grows: bool) -> bool:
        """Return whether a loaded window is read again."""
        own = self.own(high)
        return end > own if grows or self.job is None else end > max(own, self.job)

    def rests(self, end: int, high: int) -> bool:
        """Return whether abstinence keeps a window that grows from being read."""
        return self.abstinent > 0 and not self.read_again(end, high, grows=True)

    def lower(self, start: int, high: int) -> int:
        """Return the instant where such a read starts."""
        return max(self.own(high), start)

    def own(self, high: int) -> int:
        """Return the cutoff of a window with a high."""
        return cutoff((high,), high, self.grace, self.abstinent)
