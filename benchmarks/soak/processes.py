"""Finds Linux processes and their children, and which of them are alive."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """One process; a later process with the same id has another start.

    Attributes:
        started: clock ticks since boot.
    """

    pid: int
    started: int

    @property
    def lives(self) -> bool:
        """Return whether it is alive; a zombie is not."""
        status = _stat(self.pid)
        return status is not None and status[1] == self.started

    @property
    def command(self) -> str:
        """Return its command line; "" if it has ended."""
        try:
            return (
                Path(f"/proc/{self.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
        except OSError:
            return ""

    def kill(self) -> bool:
        """Kill it; return whether it was alive."""
        if not self.lives:
            return False
        os.kill(self.pid, signal.SIGKILL)
        return True


def process(pid: int) -> Process | None:
    """Return the process with an id, or None."""
    status = _stat(pid)
    return Process(pid, status[1]) if status else None


def family(pid: int) -> list[Process]:
    """Return a process with its children, and theirs, except those whose parent has ended."""
    children: dict[int, list[Process]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        if status := _stat(int(folder.name)):
            children.setdefault(status[0], []).append(Process(int(folder.name), status[1]))
    first = process(pid)
    members = [first] if first else []
    for member in members:
        members += children.get(member.pid, [])
    return members


def _stat(pid: int) -> tuple[int, int] | None:
    """Return parent and start, or None."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else (int(fields[1]), int(fields[19]))
