"""A wake-up signal that signal handlers, files and threads send, and that one thread waits for."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class WakeSignal:
    """Wakes a waiting thread through a pipe; a signal handler that sets an event could deadlock."""

    def __init__(self) -> None:
        """Open the pipe."""
        self._hears, self._rings = os.pipe()
        os.set_blocking(self._rings, False)

    def ring(self) -> None:
        """Wake the thread that waits, or the next one that does."""
        with suppress(BlockingIOError):  # it rings already
            os.write(self._rings, b".")

    def wait(self, seconds: float) -> bool:
        """Return whether a signal comes within so many seconds."""
        ready, _, _ = select.select([self._hears], [], [], seconds)
        if ready:
            os.read(self._hears, 1 << 16)
        return bool(ready)

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._hears)
        os.close(self._rings)


@contextmanager
def wake_signal() -> Iterator[WakeSignal]:
    """Yield a wake-up signal that is closed after the block."""
    opened = WakeSignal()
    try:
        yield opened
    finally:
        opened.close()
