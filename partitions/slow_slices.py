"""Halve the slices that follow a slow one: one that took longer than ``checkpoint.interval_secs`` (docs/reference/files.md)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class SlowSlices:
    """The slow slices of one run that no fast one has made up for yet; while there are some, slices are halved.

    Attributes:
        limit_seconds: how long a slice may take (``checkpoint.interval_secs``).
        count: of slow slices, less the fast ones after them; at least 0.
    """

    limit_seconds: float
    count: int = 0

    @property
    def halve_next(self) -> bool:
        """Whether the next slice is loaded in halves."""
        return self.count > 0

    def note(self, seconds: float) -> None:
        """Count a slice that took some seconds."""
        self.count = max(0, self.count + (1 if seconds > self.limit_seconds else -1))
