"""A bell that signals, files and threads ring, and that one thread waits for."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Bell:
    """Wakes who waits. A pipe: a handler of signals that sets an event may wait for itself."""

    def __init__(self) -> None:
        """Open it."""
        self._hears, self._rings = os.pipe()
        os.set_blocking(self._rings, False)

    def ring(self) -> None:
        """Wake who waits, or will wait next."""
        with suppress(BlockingIOError):  # it rings already
            os.write(self._rings, b".")

    def wait(self, seconds: float) -> bool:
        """Return whether it rang within so many seconds."""
        ready, _, _ = select.select([self._hears], [], [], seconds)
        if ready:
            os.read(self._hears, 1 << 16)
        return bool(ready)

    def close(self) -> None:
        """Close it."""
        os.close(self._hears)
        os.close(self._rings)


@contextmanager
def bell() -> Iterator[Bell]:
    """Yield a bell as long as the block runs."""
    opened = Bell()
    try:
        yield opened
    finally:
        opened.close()
