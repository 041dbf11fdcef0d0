"""How long a Spark Connect server that does not answer is waited for. pyspark is imported where this is."""

from __future__ import annotations

from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState

_TRIES, _LONGEST_WAIT = 7, 10_000
"""How often a call is tried again, and milliseconds between two tries: half a minute in all. pyspark's own ten minutes would
keep a run hanging at a server that died."""


class Patience(DefaultPolicy):
    """Of one session. A server that one call has waited for in vain is gone, and no other call of the session waits for it.

    Else each thing that pyspark gives back after a failed query, in threads that a process waits for at its end, would wait again.
    """

    def __init__(self) -> None:
        super().__init__(max_retries=_TRIES, max_backoff=_LONGEST_WAIT)
        self.gone = False

    def can_retry(self, e: BaseException) -> bool:
        """As pyspark's own, until the server is gone."""
        return not self.gone and super().can_retry(e)

    def to_state(self) -> RetryPolicyState:
        """The tries of one call."""
        return _Call(self)


class _Call(RetryPolicyState):
    def __init__(self, policy: Patience) -> None:
        super().__init__(policy)
        self._patience = policy

    def next_attempt(self, exception: BaseException | None = None) -> int | None:
        """The last try of a call tells all others."""
        wait = super().next_attempt(exception)
        if wait is None:
            self._patience.gone = True
        return wait
