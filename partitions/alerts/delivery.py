"""Decide when the next message may be posted."""

from __future__ import annotations

from dataclasses import dataclass

from partitions.pauses import retry_pause

PAUSE_BETWEEN_MESSAGES = 300.0
"""Seconds between two messages. A message covers all changes since the last; problems that start and end in between are left out."""


@dataclass(frozen=True)
class DeliveryState:
    """The outcome of the last message.

    Attributes:
        at: when it was posted, seconds of the caller's own clock.
        refused: how often in a row the address refused it.
    """

    at: float = 0.0
    refused: int = 0

    def remaining_pause(self, now: float) -> float:
        """Return the seconds until the next message may be posted; 0 if the clock was put back."""
        waits = retry_pause(self.refused) if self.refused else PAUSE_BETWEEN_MESSAGES
        return max(0.0, self.at + waits - now) if self.at <= now else 0.0

    def after(self, now: float, *, is_accepted: bool) -> DeliveryState:
        """Return the state after a message at this time."""
        return DeliveryState(now) if is_accepted else DeliveryState(now, self.refused + 1)
