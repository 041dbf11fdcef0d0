"""Catch the signals that end a command which keeps running."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def catch_end_signals(on_signal: Callable[[], object] = lambda: None) -> Iterator[threading.Event]:
    """Yield an event that is set when the user ends the command.

    Nothing is interrupted, so every started process is known. A shell in the background makes its children
    ignore signals, but a signal that this process handles is not ignored in its own children.

    Args:
        on_signal: called after each signal.
    """
    ended = threading.Event()

    def end(*_: object) -> None:
        ended.set()
        on_signal()

    previous = {number: signal.signal(number, end) for number in _SIGNALS}
    try:
        yield ended
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
