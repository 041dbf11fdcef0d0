"""One Spark Connect server for all steps of a run that are processes of their own.

The first step that needs Spark starts it, and it ends with the run's process.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from resources.spark.connect_server import ConnectServer
from resources.spark.engine import SparkEngine
from resources.spark.errors import SparkUnavailable


@dataclass(frozen=True)
class RunServer:
    """The server of one run.

    Attributes:
        run_id: the run.
        run_process: the process that starts the steps.
    """

    run_id: str
    run_process: int

    def url(self, engine: SparkEngine) -> str:
        """Return the server's address; start it if no step has done so, or if it has died.

        Args:
            engine: has the jars of all dataflows of the run.

        Raises:
            SparkUnavailable: if it does not start.
        """
        folder = self.folder
        _make_private(folder)
        with _locked(folder / "lock"):
            if (running := _running_server(folder)) is not None:
                return running
            server = ConnectServer(engine, folder / "connect-server.log", owner=self.run_process)
            server.start()
            assert server.process is not None
            pid = server.process.pid
            started = psutil.Process(pid).create_time()
            (folder / "server.json").write_text(
                json.dumps({"url": server.url, "pid": pid, "started": started})
            )
            return server.url

    @property
    def folder(self) -> Path:
        """Return the folder with the server's address and log; it goes with the server."""
        return Path(tempfile.gettempdir()) / f"strandline-run-{self.run_id}"


def _make_private(folder: Path) -> None:
    """Create a folder that no other user may enter.

    Raises:
        SparkUnavailable: if another user has made it.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise SparkUnavailable(
            f"expected the folder {folder} to belong to this user, found one of another user. Set TMPDIR to a folder of"
            " your own",
            choices=("strandline doctor",),
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a file's lock while the block runs, so that of several steps one starts the server."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _running_server(folder: Path) -> str | None:
    """Return the address of the server if it lives."""
    with suppress(FileNotFoundError, ValueError, KeyError, psutil.Error):
        noted = json.loads((folder / "server.json").read_text())
        process = psutil.Process(noted["pid"])
        if process.create_time() == noted["started"] and process.status() != psutil.STATUS_ZOMBIE:
            return str(noted["url"])
    return None
