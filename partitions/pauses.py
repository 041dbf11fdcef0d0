"""When work that did not get done is asked for again: after a pause that doubles with each attempt, whoever asks.

Everything here is in seconds of the asker's own clock. After a clock was put back, no pause lasts until the old time.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST, LONGEST = 60.0, 3600.0
"""Seconds from the first attempt to the second, and between two attempts at most."""

_DOUBLED = 10
"""Times that a pause doubles at most: it is the longest one long before."""


def pause(attempts: int) -> float:
    """Seconds from the last attempt to the next; none before the first."""
    return min(FIRST * 2 ** min(attempts - 1, _DOUBLED), LONGEST) if attempts > 0 else 0.0


def rest(attempts: int, last: float, now: float) -> float:
    """Seconds until the next attempt may begin.

    Args:
        attempts: how often it was tried.
        last: when it was tried last.
        now: by the same clock.
    """
    return max(0.0, last + pause(attempts) - now) if last <= now else 0.0


@dataclass(frozen=True)
class RetryBackoff:
    """How often something was asked for since anything was done.

    Whatever was done resets the pause. New work does not: what cannot be done would be asked for again with each file that
    arrives. But when there is other work to begin with than the last time, because a bad file was repaired or removed, one attempt in
    each pause need not wait for its end.

    Attributes:
        done: tells what was done when it was asked for, from what was done at any other time.
        what: tells the work that was asked for last.
        since: when it was asked for first, whole seconds; with ``done`` and ``count`` it tells attempts apart for ever.
        count: how often it was asked for.
        last: when it was asked for last.
        early: whether that was before the end of a pause.
    """

    done: str = ""
    what: str = ""
    since: int = 0
    count: int = 0
    last: float = 0.0
    early: bool = False

    @property
    def name(self) -> str:
        """A text that no other attempt has, also when a state was deleted and begun again."""
        return f"{self.done}:{self.since}:{self.count}"

    def wait(self, done: str, what: str, now: float) -> float:
        """Seconds until this work may be asked for."""
        if done != self.done or (what != self.what and not self.early):
            return 0.0
        return rest(self.count, self.last, now)

    def next(self, done: str, what: str, now: float) -> RetryBackoff:
        """After asking for the work."""
        if done != self.done or not self.count:
            return RetryBackoff(done, what, int(now), 1, now)
        early = rest(self.count, self.last, now) > 0
        return RetryBackoff(done, what, self.since, self.count + 1, now, early)
