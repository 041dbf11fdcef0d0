"""A source that breaks off is asked again within the run, after pauses that grow.

Nothing of a slice is committed meanwhile: what failed was its write, and the next write carries the same tag (docs/explanation/protocol.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from partitions.errors import SourceInterrupted
from resources.retries import retry_attempts

T = TypeVar("T")

_ATTEMPTS, _FIRST, _LONGEST = 7, 1.0, 30.0
"""Attempts, and seconds of the first and the longest pause: about a minute in all, in which a database restarts or fails over."""


def outlasting_interruptions(ask: Callable[[], T]) -> T:
    """Return what ``ask`` returns, and call it again while its source breaks off.

    Raises:
        SourceInterrupted: of the last attempt.
    """
    for attempt in retry_attempts(
        SourceInterrupted, attempts=_ATTEMPTS, timeout=None, wait_initial=_FIRST, wait_max=_LONGEST
    ):
        with attempt:
            return ask()
    raise AssertionError("an attempt either returns or raises")
