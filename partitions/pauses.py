"""Pause before work that failed is requested again; each attempt doubles the pause.

All times are seconds of the caller's own clock. After a clock was put back, no pause lasts until the old
time.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST, LONGEST = 60.0, 3600.0
"""Seconds from the first attempt to the second, and the most between two attempts."""

_DOUBLED = 10
"""The most doublings of a pause: it reaches the longest one well before."""


def retry_pause(attempts: int) -> float:
    """Return the seconds from the last attempt to the next; 0 before the first."""
    return min(FIRST * 2 ** min(attempts - 1, _DOUBLED), LONGEST) if attempts > 0 else 0.0


def remaining_pause(attempts: int, last: float, now: float) -> float:
    """Return the seconds until the next attempt may start.

    Args:
        attempts: number of attempts so far.
        last: time of the last attempt.
        now: by the same clock.
    """
    return max(0.0, last + retry_pause(attempts) - now) if last <= now else 0.0


@dataclass(frozen=True)
class RetryBackoff:
    """The attempts to run some work since the last progress.

    Any progress resets the pause. New work alone does not: otherwise every new file would trigger another
    attempt at work that cannot succeed. But if the first work to do has changed, because a bad file was
    repaired or removed, one attempt in each pause need not wait for its end.

    Attributes:
        done: identifies the progress at the last attempt.
        what: identifies the work of the last attempt.
        since: time of the first attempt, whole seconds; with ``done`` and ``count`` it tells attempts
        apart for ever.
        count: number of attempts.
        last: time of the last attempt.
        early: whether the last attempt came before the end of a pause.
    """

    done: str = ""
    what: str = ""
    since: int = 0
    count: int = 0
    last: float = 0.0
    early: bool = False

    @property
    def name(self) -> str:
        """A text that is unique among attempts, even after the state was deleted and created anew."""
        return f"{self.done}:{self.since}:{self.count}"

    def wait(self, progress: str, work: str, now: float) -> float:
        """Return the seconds until this work may be requested."""
        if progress != self.done or (work != self.what and not self.early):
            return 0.0
        return remaining_pause(self.count, self.last, now)

    def next(self, progress: str, work: str, now: float) -> RetryBackoff:
        """Return the back-off after a request for this work."""
        if progress != self.done or not self.count:
            return RetryBackoff(progress, work, int(now), 1, now)
        early = remaining_pause(self.count, self.last, now) > 0
        return RetryBackoff(progress, work, self.since, self.count + 1, now, early)
