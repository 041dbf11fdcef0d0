"""Processes that lead a session of their own, and that end with all that they have started."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

_LOOK = 0.05
_LAST_LINES, _LAST_BYTES = 3, 64 * 1024


def start(
    arguments: Sequence[str],
    log: Path,
    environment: Mapping[str, str],
    folder: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own: Ctrl-C reaches its parent alone, which then ends it in order.

    Args:
        arguments: of the command.
        log: file that gets what it prints, behind what is there.
        environment: of the process.
        folder: that it runs in.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            arguments,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment,
        )


def end(processes: Sequence[subprocess.Popen[bytes]], patience: float = 20.0) -> None:
    """End processes and all that they have started: politely first, then by force.

    A process may be gone while others of its session are not, such as a code server whose parent was faster: those are ended, too.

    Args:
        processes: that :func:`start` has started.
        patience: seconds until force is used.
    """
    for sent in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            _send(process, sent)
        deadline = time.monotonic() + patience
        while any(_lives(process) for process in processes):
            if time.monotonic() > deadline:
                break
            time.sleep(_LOOK)
        else:
            return


def how_it_ended(code: int) -> str:
    """An exit code for people."""
    if code >= 0:
        return f"ended with code {code}"
    with suppress(ValueError):
        name = signal.Signals(-code).name
        return f"was ended by {name}{' (a lack of memory does that)' if code == -signal.SIGKILL else ''}"
    return f"was ended by signal {-code}"


def last_lines(log: Path, start: int = 0) -> str:
    """The last lines of a log, in one, from a position on."""
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(start, log.stat().st_size - _LAST_BYTES))
        return " | ".join(file.read().decode(errors="replace").strip().splitlines()[-_LAST_LINES:])
    return ""


def _send(process: subprocess.Popen[bytes], sent: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, sent)


def _lives(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process or anything of its session lives; what is dead and not yet reaped does not."""
    if process.poll() is None:
        return True
    return any(_is_of(process.pid, other) for other in psutil.process_iter())


def _is_of(group: int, process: psutil.Process) -> bool:
    """Return whether a process belongs to a group, and lives."""
    try:
        belongs = os.getpgid(process.pid) == group
        return belongs and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except (ProcessLookupError, PermissionError, psutil.Error):  # it is gone, or somebody else's
        return False
