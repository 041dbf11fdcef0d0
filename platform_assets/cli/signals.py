"""How a command that stays hears that it is to end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signalled(heard: Callable[[], object] = lambda: None) -> Iterator[threading.Event]:
    """Yield an event that is set when the user ends the command. Nothing is interrupted, so every started process is known.

    A shell in the background makes its children ignore signals. A signal that this process handles is not ignored in its children.

    Args:
        heard: called after each signal.
    """
    ended = threading.Event()

    def end(*_: object) -> None:
        ended.set()
        heard()

    before = {sent: signal.signal(sent, end) for sent in _SIGNALS}
    try:
        yield ended
    finally:
        for sent, handler in before.items():
            signal.signal(sent, handler)
