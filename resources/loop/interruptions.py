"""What passes by itself is tried again within the run, after pauses that grow: a source that breaks off, a table whose other writers were first.

Nothing of a slice is committed meanwhile: what failed was its write, and the next write carries the same tag (docs/protocol.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from partitions.errors import SourceInterrupted, WriteConflict
from resources.retries import attempts_while

T = TypeVar("T")

_ATTEMPTS, _FIRST, _LONGEST = 7, 1.0, 30.0
"""Attempts, and seconds of the first and the longest pause: about a minute in all, in which a database restarts or fails over."""


_CONFLICTS, _FIRST_CONFLICT, _LONGEST_CONFLICT = 20, 0.1, 5.0
"""The same of writes that other writers of the table were faster than: each of them has come through with a commit of its own."""


def outlasting_conflicts(write: Callable[[], T]) -> T:
    """Return what ``write`` returns, and call it again while other writers of the table are faster.

    Raises:
        WriteConflict: of the last attempt.
    """
    for attempt in attempts_while(
        WriteConflict,
        attempts=_CONFLICTS,
        timeout=None,
        wait_initial=_FIRST_CONFLICT,
        wait_max=_LONGEST_CONFLICT,
    ):
        with attempt:
            return write()
    raise AssertionError("an attempt either returns or raises")


def outlasting_interruptions(ask: Callable[[], T]) -> T:
    """Return what ``ask`` returns, and call it again while its source breaks off.

    Raises:
        SourceInterrupted: of the last attempt.
    """
    for attempt in attempts_while(
        SourceInterrupted, attempts=_ATTEMPTS, timeout=None, wait_initial=_FIRST, wait_max=_LONGEST
    ):
        with attempt:
            return ask()
    raise AssertionError("an attempt either returns or raises")
