"""Make a decision and die at a step: ``python -m tests.support.decision_crash FOLDER ARGUMENT…``.

The arguments are those of the command line. The process kills itself right after it has put the first object into that folder beside the
log, whatever the store.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

from platform_assets.cli.main import strandline
from resources import platform
from resources.watermarks.blobs import Blobs, open_blobs
from tests.support.environment import clean_environment
from tests.support.feed import CHECKOUT, Feed


class _Dying:
    """Blobs of a process that dies once something was put."""

    def __init__(self, blobs: Blobs, folder: str) -> None:
        self._blobs = blobs
        self._folder = f"/{folder}/"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        put = self._blobs.put_if_absent(key, data)
        if self._folder in f"/{key}":
            os.kill(os.getpid(), signal.SIGKILL)
        return put


def crash_deciding(feed: Feed, folder: str, *arguments: str) -> None:
    """Call the command line in a process that kills itself there."""
    environment = (
        clean_environment() | feed.environment | {"STRANDLINE_SPARK_REMOTE": str(feed.engine.remote)}
    )
    command = [
        sys.executable,
        "-m",
        "tests.support.decision_crash",
        folder,
        "--project",
        str(feed.folder),
        *arguments,
    ]
    done = subprocess.run(
        command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, start_new_session=True, timeout=240, check=False
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stdout[-2000:] + done.stderr[-2000:]


def main(folder: str, arguments: list[str]) -> None:
    """Call the command line until something was put."""
    opened: Any = lambda *store: _Dying(open_blobs(*store), folder)  # noqa: E731
    vars(platform)["open_blobs"] = opened
    strandline.main(arguments, prog_name="strandline")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
