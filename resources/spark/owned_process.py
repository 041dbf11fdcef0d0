"""Run a command in this process group until it ends, or until another process, its owner, is gone.

It is a script of its own: ``python -P owned_process.py OWNER STARTED FOLDER COMMAND …``. Whatever kills the
owner, the command does not outlive it. The folder is removed at the end.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

import psutil

_LOOK = 0.5
_PATIENCE = 5.0


def _lives(pid: int, started: float) -> bool:
    """Return whether a process lives; its number may have passed to another one, which started later."""
    try:
        process = psutil.Process(pid)
        return bool(process.create_time() == started and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def main(owner: str, started: str, folder: str, *command: str) -> int:
    """Run the command; return its exit code."""
    child = subprocess.Popen(command)
    while _lives(int(owner), float(started)):
        try:
            code = child.wait(_LOOK)
        except subprocess.TimeoutExpired:
            continue
        return code if code >= 0 else 128 - code
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(_LOOK / 5)
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
