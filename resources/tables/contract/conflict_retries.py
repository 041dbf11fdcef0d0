"""Conflicts of the writers of one table: this is the one place that says how often a run tries again, and after which pauses.

Whatever a slice must be planned or evaluated again for is tried by the loop. A commit of files that are good whatever came between, as
those of an append, and a change of branches are tried where they are put. A conflict of all attempts ends the attempts around it, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from partitions.errors import WriteConflict
from resources.retries import attempts_while

T = TypeVar("T")

_ATTEMPTS, _FIRST, _LONGEST, _JITTER = 20, 0.1, 5.0, 0.2
"""Attempts, and seconds of the first and the longest pause and of what chance adds: another writer has come through with a commit of its own in each."""


class NeedsEngine(Exception):
    """The engine's own writer must make a commit; the text says why, for people."""


def outlasting_conflicts(write: Callable[[], T]) -> T:
    """Return what ``write`` returns, and call it again while other writers of the table are faster.

    Raises:
        WriteConflict: of the last attempt. It ends the attempts of a caller, too.
    """
    try:
        for attempt in attempts_while(
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
