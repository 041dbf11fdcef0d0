"""When people are told of something that lasts: a run of others, or a source that does not answer."""

from __future__ import annotations

import math
from dataclasses import dataclass

LONG = 30.0
"""Seconds after which something that lasts is worth a word."""


@dataclass(frozen=True)
class Wait:
    """A wait for one thing.

    Attributes:
        reason: what is waited for, for people.
        since: when that was seen first, seconds of the asker's own clock.
    """

    reason: str = ""
    since: float = 0.0

    def for_(self, reason: str, now: float) -> Wait:
        """Return the wait for a reason as it is now: the same, or a new one."""
        return self if reason == self.reason else Wait(reason, now)

    def is_long(self, now: float) -> bool:
        """Return whether people are to be told of it."""
        return now - self.since >= LONG


def reminder(seconds: float) -> float:
    """Return 30 s, 60 s, 120 s and so on, the last that is not longer: what lasts is told less and less often."""
    return LONG * 2.0 ** int(math.log2(seconds / LONG))
