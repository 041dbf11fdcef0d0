"""Halve the slices after a slow one (docs/reference/files.md).

A slice is slow if it took longer than ``checkpoint.interval_secs``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class SlowSlices:
    """A run's balance of slow slices: while it is positive, the next slice is halved.

    Attributes:
        limit_seconds: how long a slice may take (``checkpoint.interval_secs``).
        count: slow slices less the fast ones after them; at least 0.
    """

    limit_seconds: float
    count: int = 0

    @property
    def halve_next(self) -> bool:
        """Whether to load the next slice in halves."""
        return self.count > 0

    def note(self, seconds: float) -> None:
        """Count a slice by its duration."""
        self.count = max(0, self.count + (1 if seconds > self.limit_seconds else -1))
