"""Retry writes that conflict with other writers: the one place that sets attempts and pauses.

The loop retries whatever a slice must be planned or evaluated again for. A commit that stays valid
whatever came between, such as an append or a change of branches, is retried where it is made. A conflict
in the last attempt also ends the retries around it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from partitions.errors import WriteConflict
from resources.retries import retry_attempts

T = TypeVar("T")

_ATTEMPTS, _FIRST, _LONGEST, _JITTER = 20, 0.1, 5.0, 0.2
"""Number of attempts; first and longest pause and random extra in seconds. Each attempt fails only if another writer commits."""


class NeedsEngine(Exception):
    """Only the engine's own writer can make this commit; the text says why, for people."""


def retry_conflicts(write: Callable[[], T]) -> T:
    """Return the result of ``write``; call it again after each conflict with another writer.

    Raises:
        WriteConflict: the conflict of the last attempt. Callers that retry conflicts pass it on.
    """
    try:
        for attempt in retry_attempts(
            _may_pass,
            attempts=_ATTEMPTS,
            timeout=None,
            wait_initial=_FIRST,
            wait_max=_LONGEST,
            wait_jitter=_JITTER,
        ):
            with attempt:
                return write()
    except WriteConflict as conflict:
        conflict.outlasted = True
        raise
    raise AssertionError("an attempt either returns or raises")


def _may_pass(error: Exception) -> bool:
    return isinstance(error, WriteConflict) and not error.outlasted
