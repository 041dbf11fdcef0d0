"""Who holds an intent, and whether it lives (docs/protocol.md, Two runs).

Safety never depends on the answer: two runs that finish one intent commit it once. It only decides between waiting,
giving way, and recovering at once.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable
from pathlib import Path

from resources.watermarks.entry import Holder

_active: set[str] = set()
_guard = threading.Lock()

RunIsLive = Callable[[str], bool | None]
"""Asks Dagster whether a run continues; None if it does not know the run."""


def this_process(run_id: str | None) -> Holder:
    """The holder that this process is."""
    return Holder(host=_host(), pid=os.getpid(), started=_start_ticks(os.getpid()) or 0, run_id=run_id)


def mark_active(intent_id: str) -> None:
    """Note that this process works on an intent now."""
    with _guard:
        _active.add(intent_id)


def mark_inactive(intent_id: str) -> None:
    """Note that it no longer does, whatever became of it."""
    with _guard:
        _active.discard(intent_id)


def is_alive(holder: Holder, intent_id: str, run_is_live: RunIsLive) -> bool | None:
    """Whether the holder still works on the intent; None if nothing here can tell.

    That Dagster takes a run on another machine to be in flight tells nothing: of a machine that is gone it does so for ever.
    """
    if holder == this_process(holder.run_id):
        with _guard:
            return intent_id in _active
    here = process_is_alive(holder)
    if here is None and holder.run_id and run_is_live(holder.run_id) is False:
        return False
    return here


def process_is_alive(holder: Holder) -> bool | None:
    """Whether the holder's process lives; None if it is one of another machine."""
    return _start_ticks(holder.pid) == holder.started if holder.host == _host() else None


def host_name(holder: Holder) -> str:
    """The holder's machine, for people."""
    return holder.host.partition("/")[0]


def _host() -> str:
    """Host name, boot and process namespace: a pid means something only if all three agree."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
        space = Path("/proc/self/ns/pid").readlink().name
    except OSError:
        boot, space = "", ""
    return f"{platform.node()}/{boot}/{space}"


def _start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None if it does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return None
    except OSError:
        return 0
    return None if fields[0] in ("Z", "X") else int(fields[19])
