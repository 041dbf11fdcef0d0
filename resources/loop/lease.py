"""A lease: a sign of life that the holder of an intent renews in the watermark log, for machines that cannot see its process.

Who waits looks whether the sign changes while it is looking, by its own clock alone: no two clocks are compared (spec 09,
Numbers, intents, holders). Safety does not depend on it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from partitions.errors import StrandlineError
from resources.watermarks.entry import Intent
from resources.watermarks.log import LEASES, WatermarkLog

BEAT = 5.0
"""Seconds between two signs."""

PATIENCE = 20.0
"""Seconds without one after which a holder counts as gone."""


@contextmanager
def renewed(log: WatermarkLog, intent: Intent) -> Iterator[None]:
    """Give signs of life until the block is left. A store that does not take one is no reason to stop working."""
    done = threading.Event()

    def renew() -> None:
        count = 0
        while not done.is_set():
            count += 1
            with suppress(StrandlineError):
                log.put_over(intent.dataflow, LEASES, _name(intent), str(count).encode())
            done.wait(BEAT)

    thread = threading.Thread(target=renew, name=f"lease of {intent.dataflow} {intent.number}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        with suppress(StrandlineError):
            log.delete(intent.dataflow, LEASES, [_name(intent)])


def is_renewed(log: WatermarkLog, intent: Intent, wait: Callable[[float], None]) -> bool:
    """Whether a sign comes while we are looking; for at most ``PATIENCE`` seconds of our own clock.

    Raises:
        ProviderError: where the log cannot be read.
    """
    first = log.get_object(intent.dataflow, LEASES, _name(intent))
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        wait(1.0)
        now = log.get_object(intent.dataflow, LEASES, _name(intent))
        if now != first:
            return now is not None
    return False


def _name(intent: Intent) -> str:
    return f"{intent.number:010d}-{intent.id}"
