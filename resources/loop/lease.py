"""A lease that an intent's holder renews in the log, for machines that cannot see its process.

A waiting run checks whether the lease changes while it watches, by its own clock; no two clocks are
compared (docs/explanation/protocol.md, Two runs). Safety does not depend on it.
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
"""Seconds between two renewals of a lease."""

PATIENCE_SECONDS = 20.0
"""Seconds without a renewal after which a holder counts as gone."""


@contextmanager
def keep_lease(log: WatermarkLog, intent: Intent) -> Iterator[None]:
    """Renew the lease until the block ends. A store that refuses it stops no work."""
    stopped = threading.Event()

    def renew() -> None:
        count = 0
        while not stopped.is_set():
            count += 1
            with suppress(StrandlineError):
                log.put_over(intent.dataflow, LEASES, _name(intent), f"{count} {utc_now()}".encode())
            stopped.wait(HEARTBEAT_SECONDS)

    thread = threading.Thread(target=renew, name=f"lease of {intent.dataflow} {intent.number}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
        with suppress(StrandlineError):
            log.delete(intent.dataflow, LEASES, [_name(intent)])


def is_held(log: WatermarkLog, intent: Intent, run_is_live: RunIsLive, wait: Callable[[float], None]) -> bool:
    """Return whether the holder of an intent lives.

    Its process decides; for a run on another machine, Dagster; if neither knows, the lease.

    Raises:
        ProviderError: the log cannot be read.
    """
    alive = holders.is_alive(intent.holder, intent.id, run_is_live)
    return is_renewed(log, intent, wait) if alive is None else alive


def is_renewed(log: WatermarkLog, intent: Intent, wait: Callable[[float], None]) -> bool:
    """Return whether the lease changes within ``PATIENCE_SECONDS`` seconds of this machine's clock.

    Raises:
        ProviderError: the log cannot be read.
    """
    first = log.get_object(intent.dataflow, LEASES, _name(intent))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        wait(1.0)
        now = log.get_object(intent.dataflow, LEASES, _name(intent))
        if now != first:
            return now is not None
    return False


def lease_text(log: WatermarkLog, intent: Intent) -> str:
    """Return a text that changes with each renewal of an intent's lease."""
    lease = log.get_object(intent.dataflow, LEASES, _name(intent))
    return f"{intent.id} {lease.decode(errors='replace') if lease else ''}"


def describe_holder(log: WatermarkLog, dataflow: str, newest: Entry | None) -> dict[str, Any] | None:
    """Describe the holder of a dataflow's next number, as JSON for people; None if there is none.

    ``alive`` tells whether the process exists; null for one on another machine. ``renewed`` is its lease's
    last renewal, by that machine's clock. Nothing is decided by it.
    """
    intent = log.open_intent(dataflow, newest)
    if intent is None:
        return None
    holder, last = intent.holder, lease_text(log, intent).split(" ")[-1]
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
