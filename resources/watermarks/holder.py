"""Find who holds an intent, and whether that process lives (docs/explanation/protocol.md, Two runs).

Safety never depends on the answer: two runs that finish one intent commit it once. It only decides between
waiting, giving way, and recovering at once.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from resources.watermarks.entry import Holder

_active: set[str] = set()
_guard = threading.Lock()

_SAME_START = 100
"""Clock ticks, about a second, by which two readings of one process's start may differ where the system keeps no ticks. No system gives a pid out again so soon."""

RunIsLive = Callable[[str], bool | None]
"""Asks Dagster whether a run is in flight; None if it does not know the run."""


def current_holder(run_id: str | None) -> Holder:
    """Return this process as a holder."""
    return Holder(host=_host(), pid=os.getpid(), started=_own_start(os.getpid()), run_id=run_id)


def mark_active(intent_id: str) -> None:
    """Note that this process works on an intent now."""
    with _guard:
        _active.add(intent_id)


def mark_inactive(intent_id: str) -> None:
    """Note that this process has stopped working on an intent, whatever the outcome."""
    with _guard:
        _active.discard(intent_id)


def is_alive(holder: Holder, intent_id: str, run_is_live: RunIsLive) -> bool | None:
    """Return whether the holder still works on the intent; None if this process cannot tell.

    A run that Dagster reports as in flight on another machine proves nothing: Dagster reports that for
    ever if the machine is gone.
    """
    if holder == current_holder(holder.run_id):
        with _guard:
            return intent_id in _active
    is_local_alive = process_is_alive(holder)
    if is_local_alive is None and holder.run_id and run_is_live(holder.run_id) is False:
        return False
    return is_local_alive


def process_is_alive(holder: Holder) -> bool | None:
    """Return whether the holder's process lives; None if it runs on another machine."""
    if holder.host != _host():
        return None
    started = _started(holder.pid)
    return started is not None and abs(started - holder.started) <= _SAME_START


def host_name(holder: Holder) -> str:
    """Return the holder's machine, for people."""
    return holder.host.partition("/")[0]


def _host() -> str:
    """Return host name, boot and process namespace: a pid is only comparable if all three agree."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
        space = Path("/proc/self/ns/pid").readlink().name
    except OSError:
        boot, space = "", ""
    return f"{platform.node()}/{boot}/{space}"


def _started(pid: int) -> int | None:
    """Return the start of a process in clock ticks since boot; None if it does not exist or is a zombie."""
    import psutil  # not before somebody holds an intent: `plan` must be quick

    try:
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return None
        # If the machine's clock is corrected, both times move alike.
        seconds: float = process.create_time() - psutil.boot_time()
        return round(seconds * os.sysconf("SC_CLK_TCK"))
    except psutil.NoSuchProcess:
        return None
    except psutil.Error:
        return 0


@lru_cache(maxsize=8)
def _own_start(pid: int) -> int:
    return _started(pid) or 0
