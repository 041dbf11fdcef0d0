"""Retries against a Spark Connect server that does not answer, shared by all sessions of a process.

pyspark is imported where this module is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState

SECONDS = 18.0
"""Seconds from the first unanswered call until a server counts as gone. `strandline dev` has restarted its server by then; a run that
meets a dead one ends in half a minute altogether."""

_TRIES, _LONGEST_WAIT = 11, 2_000
"""The most retries of one call, and the most milliseconds between two: together about as long."""
_FORGOTTEN_AFTER = 60.0
"""Seconds without a failed call, after which the next failed call starts another outage."""

_outages: dict[str, Outage] = {}
_lock = threading.Lock()


@dataclass
class Outage:
    """The time in which a server has not answered this process.

    After the patience, each call is tried once. Otherwise each object that pyspark releases after a failed
    query, in threads that a process waits for at its end, would wait again; and so would each dataflow of
    a process that has several.

    Attributes:
        clock: monotonic seconds.
        began: when the first call failed; None: the server has answered since.
        newest: when the last call failed.
    """

    clock: Callable[[], float] = time.monotonic
    began: float | None = field(default=None, init=False)
    newest: float = field(default=0.0, init=False)
    gave_up: bool = field(default=False, init=False)

    def is_over_patience(self) -> bool:
        """Record a failed call; return whether calls are no longer retried."""
        now = self.clock()
        if self.began is None or now - self.newest > _FORGOTTEN_AFTER:
            self.began, self.gave_up = now, False
        self.newest = now
        return self.gave_up or now - self.began >= SECONDS

    def give_up(self) -> None:
        """Stop all retries, after one call has used up its tries."""
        self.gave_up = True

    def end(self) -> None:
        """Record that the server has answered."""
        self.began = None


def outage_of(server: str) -> Outage:
    """Return the outage of a server, by its address."""
    with _lock:
        return _outages.setdefault(server, Outage())


class OutagePolicy(DefaultPolicy):
    """Retries calls to a server until it has not answered for 18 s, or one call has used up its tries."""

    def __init__(self, outage: Outage) -> None:
        """Use the outage that all sessions on a server share."""
        super().__init__(max_retries=_TRIES, max_backoff=_LONGEST_WAIT)
        self.outage = outage

    def can_retry(self, e: BaseException) -> bool:
        """Return pyspark's own answer; False once the server counts as gone."""
        return super().can_retry(e) and not self.outage.is_over_patience()

    def to_state(self) -> RetryPolicyState:
        """Return the counter of one call's tries."""
        return _CallRetries(self)


class _CallRetries(RetryPolicyState):
    def __init__(self, policy: OutagePolicy) -> None:
        super().__init__(policy)
        self._patience = policy

    def next_attempt(self, exception: BaseException | None = None) -> int | None:
        """Return the next wait in milliseconds; None after the last try, which stops all other calls, too."""
        wait = super().next_attempt(exception)
        if wait is None:
            self._patience.outage.give_up()
        return wait
