"""Retries of a source that breaks off, within the run and with growing pauses.

Nothing of a slice is committed meanwhile: its write failed, and the next write carries the same tag
(docs/explanation/protocol.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from partitions.errors import SourceInterrupted
from resources.retries import retry_attempts

T = TypeVar("T")

_ATTEMPTS, _FIRST, _LONGEST = 7, 1.0, 30.0
"""Attempts, and seconds of the first and the longest pause: about a minute in all, in which a database restarts or fails over."""


def retry_interruptions(ask: Callable[[], T]) -> T:
    """Return the result of ``ask``; call it again, with growing pauses, while its source breaks off.

    Raises:
        SourceInterrupted: the last attempt broke off, too.
    """
    for attempt in retry_attempts(
        SourceInterrupted, attempts=_ATTEMPTS, timeout=None, wait_initial=_FIRST, wait_max=_LONGEST
    ):
        with attempt:
            return ask()
    raise AssertionError("an attempt either returns or raises")
