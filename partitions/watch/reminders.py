"""Decide when people hear of a long wait: another run, or a source that does not answer."""

from __future__ import annotations

import math
from dataclasses import dataclass

LONG = 30.0
"""Seconds after which a wait is worth a message."""


@dataclass(frozen=True)
class Wait:
    """A wait for one thing.

    Attributes:
        reason: the awaited thing, for people.
        since: start of the wait, seconds of the caller's own clock.
    """

    reason: str = ""
    since: float = 0.0

    def for_reason(self, reason: str, now: float) -> Wait:
        """Return this wait if the reason is the same, else a new one."""
        return self if reason == self.reason else Wait(reason, now)

    def is_long(self, now: float) -> bool:
        """Return whether people should hear of it."""
        return now - self.since >= LONG


def reminder_step(seconds: float) -> float:
    """Return the largest of 30 s, 60 s, 120 s and so on that is not above ``seconds``.

    So reminders of a long wait get rarer.
    """
    return LONG * 2.0 ** int(math.log2(seconds / LONG))
