"""When the next message may be posted."""

from __future__ import annotations

from dataclasses import dataclass

from partitions.pauses import pause

APART = 300.0
"""Seconds between two messages: what begins or ends meanwhile is told together, and what does both is not told."""


@dataclass(frozen=True)
class DeliveryState:
    """How the last message went.

    Attributes:
        at: when it was posted, seconds of the asker's own clock.
        refused: how often in turn the address has not taken it.
    """

    at: float = 0.0
    refused: int = 0

    def rest(self, now: float) -> float:
        """Return the seconds until the next message may be posted; none if the clock was put back."""
        waits = pause(self.refused) if self.refused else APART
        return max(0.0, self.at + waits - now) if self.at <= now else 0.0

    def after(self, now: float, *, taken: bool) -> DeliveryState:
        """Return the state after a message was posted now."""
        return DeliveryState(now) if taken else DeliveryState(now, self.refused + 1)
