"""Makes a decision and dies at a step.

The process kills itself right after it has put an object into a folder beside the log, whatever the store.
"""

from __future__ import annotations

import os
import signal
from itertools import count
from typing import Any

from platform_assets.cli.main import strandline
from resources.platform import stores
from resources.watermarks.blobs import Blobs, open_blobs
from tests.support.environment import clean_environment
from tests.support.feed import Feed
from tests.support.forks import forked


class _Dying:
    """Blobs of a process that dies once so many objects were put into a folder."""

    def __init__(self, blobs: Blobs, folder: str, puts: int) -> None:
        self._blobs, self._folder, self._puts = blobs, f"/{folder}/", puts
        self._put = count(1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        is_new = self._blobs.put_if_absent(key, data)
        if self._folder in f"/{key}" and next(self._put) == self._puts:
            os.kill(os.getpid(), signal.SIGKILL)
        return is_new


def crash_deciding(feed: Feed, folder: str, *arguments: str, puts: int = 1) -> None:
    """Call the command line in a process that kills itself at a put, by default the first."""
    environment = (
        clean_environment() | feed.environment | {"STRANDLINE_SPARK_REMOTE": str(feed.engine.remote)}
    )
    ended = forked(__name__, [folder, str(puts), "--project", str(feed.folder), *arguments], environment)
    assert ended.code == -signal.SIGKILL, ended.output


def main(folder: str, puts: str, *arguments: str) -> None:
    """Call the command line until an object was put."""
    opened: Any = lambda *store: _Dying(open_blobs(*store), folder, int(puts))  # noqa: E731
    vars(stores)["open_blobs"] = opened
    strandline.main(list(arguments), prog_name="strandline")
