"""Processes in sessions of their own, which end together with all that they have started."""

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


def start_process(
    arguments: Sequence[str],
    log: Path,
    environment: Mapping[str, str],
    folder: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process in a new session: Ctrl-C reaches only its parent, which then stops it in order.

    Args:
        arguments: the command's arguments.
        log: file to which its output is appended.
        environment: the process's environment.
        folder: working folder.
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


def stop_processes(processes: Sequence[subprocess.Popen[bytes]], patience: float = 20.0) -> None:
    """Stop processes and all that they have started: SIGTERM first, then SIGKILL.

    If a process is gone, others of its session may still run, such as a code server whose parent was
    faster. Those are stopped, too.

    Args:
        processes: started by :func:`start_process`.
        patience: seconds until SIGKILL.
    """
    for sent in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            _send(process, sent)
        deadline = time.monotonic() + patience
        while any(_is_alive(process) for process in processes):
            if time.monotonic() > deadline:
                break
            time.sleep(_LOOK)
        else:
            return


def describe_exit(code: int) -> str:
    """Return an exit code in words."""
    if code >= 0:
        return f"ended with code {code}"
    with suppress(ValueError):
        name = signal.Signals(-code).name
        return f"was ended by {name}{' (often because memory ran out)' if code == -signal.SIGKILL else ''}"
    return f"was ended by signal {-code}"


def last_lines(log: Path, start: int = 0) -> str:
    """Return the last lines of a log from a position on, joined into one."""
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(start, log.stat().st_size - _LAST_BYTES))
        return " | ".join(file.read().decode(errors="replace").strip().splitlines()[-_LAST_LINES:])
    return ""


def _send(process: subprocess.Popen[bytes], sent: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, sent)


def _is_alive(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the process or any other of its session lives; zombies do not count."""
    if process.poll() is None:
        return True
    return any(_is_of(process.pid, candidate) for candidate in psutil.process_iter())


def _is_of(group: int, process: psutil.Process) -> bool:
    """Return whether a process belongs to a group, and lives."""
    try:
        belongs = os.getpgid(process.pid) == group
        return belongs and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except (ProcessLookupError, PermissionError, psutil.Error):  # it has ended, or belongs to another user
        return False
