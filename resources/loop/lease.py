"""A lease: a sign of life that the holder of an intent renews in the watermark log, for machines that cannot see its process.

Who waits looks whether the sign changes while it is looking, by its own clock alone: no two clocks are compared
(docs/explanation/protocol.md, Two runs). Safety does not depend on it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from partitions.errors import StrandlineError
from resources.watermarks import holder as holders
from resources.watermarks.entry import Entry, Intent, utc_now
from resources.watermarks.holder import RunIsLive, host_name, process_is_alive
from resources.watermarks.log import WatermarkLog
from resources.watermarks.stored_objects import LEASES

HEARTBEAT_SECONDS = 5.0
"""Seconds between two signs."""

PATIENCE_SECONDS = 20.0
"""Seconds without one after which a holder counts as gone."""


@contextmanager
def keep_lease(log: WatermarkLog, intent: Intent) -> Iterator[None]:
    """Give signs of life until the block is left. A store that does not take one is no reason to stop working."""
    done = threading.Event()

    def renew() -> None:
        count = 0
        while not done.is_set():
            count += 1
            with suppress(StrandlineError):
                log.put_over(intent.dataflow, LEASES, _name(intent), f"{count} {utc_now()}".encode())
            done.wait(HEARTBEAT_SECONDS)

    thread = threading.Thread(target=renew, name=f"lease of {intent.dataflow} {intent.number}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        with suppress(StrandlineError):
            log.delete(intent.dataflow, LEASES, [_name(intent)])


def is_held(log: WatermarkLog, intent: Intent, run_is_live: RunIsLive, wait: Callable[[float], None]) -> bool:
    """Return whether the holder of an intent lives: its process tells, or Dagster of a run on another machine; if neither does, the lease.

    Raises:
        ProviderError: if the log cannot be read.
    """
    alive = holders.is_alive(intent.holder, intent.id, run_is_live)
    return is_renewed(log, intent, wait) if alive is None else alive


def is_renewed(log: WatermarkLog, intent: Intent, wait: Callable[[float], None]) -> bool:
    """Whether a sign comes while we are looking; for at most ``PATIENCE_SECONDS`` seconds of our own clock.

    Raises:
        ProviderError: if the log cannot be read.
    """
    first = log.get_object(intent.dataflow, LEASES, _name(intent))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        wait(1.0)
        now = log.get_object(intent.dataflow, LEASES, _name(intent))
        if now != first:
            return now is not None
    return False


def sign(log: WatermarkLog, intent: Intent) -> str:
    """The last sign of life of an intent's holder: a text that changes with every renewal of its lease."""
    lease = log.get_object(intent.dataflow, LEASES, _name(intent))
    return f"{intent.id} {lease.decode(errors='replace') if lease else ''}"


def held_by(log: WatermarkLog, dataflow: str, newest: Entry | None) -> dict[str, Any] | None:
    """Who holds the next number of a dataflow, for people and as JSON; None if no process does. Nothing is decided by it.

    ``alive`` tells whether the process is there, and is null for one on another machine. ``renewed`` is the last sign of life of its lease,
    by the clock of that machine.
    """
    intent = log.open_intent(dataflow, newest)
    if intent is None:
        return None
    holder, last = intent.holder, sign(log, intent).split(" ")[-1]
    return {
        "number": intent.number,
        "run_id": holder.run_id,
        "host": host_name(holder),
        "process": holder.pid,
        "since": intent.time,
        "alive": process_is_alive(holder),
        "renewed": last or None,
    }


def _name(intent: Intent) -> str:
    return f"{intent.number:010d}-{intent.id}"
