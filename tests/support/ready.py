"""Wait for a server that a test has started."""

from __future__ import annotations

import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from time import monotonic


class NotReady(Exception):
    """A server did not start; the message has the end of its log."""


def wait_until_ready(
    is_ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, seconds: float
) -> None:
    """Poll until a server is ready.

    Raises:
        NotReady: after this time, or if its process ends by itself.
    """
    deadline = monotonic() + seconds
    while not is_ready():
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            if monotonic() < deadline:
                continue
        raise NotReady(
            f"{log.name}: the server is not ready (exit code {process.returncode}):\n{log.read_text()[-3000:]}"
        )


def answers(url: str) -> bool:
    """Return whether an HTTP server answers at a URL, if only with an error."""
    try:
        urllib.request.urlopen(url, timeout=2).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True
