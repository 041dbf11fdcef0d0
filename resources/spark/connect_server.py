"""A Spark Connect server of our own, which keeps an engine warm beside the UI and in tests.

pyspark's wheel has no start script for it, but spark-submit starts its class.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from resources.spark.engine import SparkEngine
from resources.spark.errors import SparkUnavailable
from resources.spark.process import telling_lines
from resources.spark.processes import describe_exit, start_process, stop_processes
from resources.spark_runtime import spark_home

_STARTED = b"Spark Connect server started at"
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


@dataclass
class ConnectServer:
    """A server on this machine. It can be restarted under the same address after it has ended.

    Attributes:
        engine: provides the settings of the server's Spark.
        log: file for the server's output.
        port: to listen on; 0 picks a free one.
        patience: seconds until it must be ready.
        stopped: polled during the start; if it returns True, KeyboardInterrupt is raised.
        owner: the number of a process; the server ends with it, and the log's folder goes. None: it ends by
        :meth:`stop` alone.
    """

    engine: SparkEngine
    log: Path
    port: int = 0
    patience: float = 120.0
    stopped: Callable[[], bool] = lambda: False
    owner: int | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Choose a free port if none is set."""
        self.port = self.port or free_port()

    @property
    def url(self) -> str:
        """Return the server's address, ``sc://127.0.0.1:port``."""
        return f"sc://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server, and return when it is ready.

        Raises:
            SparkUnavailable: if it does not get ready; its last lines are in the message.
            KeyboardInterrupt: if ``stopped`` returns True meanwhile.
        """
        self.stop()  # whatever is left of the last one
        before = self.log.stat().st_size if self.log.exists() else 0
        command = _command(self.engine, self.port)
        with _secret_settings(self.engine, self.log.parent) as options:
            command = [*_owned(self.owner, self.log.parent), command[0], *options, *command[1:]]
            self.process = start_process(command, self.log, _environment(self.engine))
            self._await(before)

    def _await(self, before: int) -> None:
        """Return when the server is ready; ``before`` is where its output begins in the log."""
        assert self.process is not None
        deadline = time.monotonic() + self.patience
        while _STARTED not in _read(self.log, before):
            if self.stopped():
                raise KeyboardInterrupt
            late = time.monotonic() > deadline
            if self.process.poll() is not None or late:
                code = self.process.poll()
                ended = f"was not ready after {self.patience:.0f} s" if code is None else describe_exit(code)
                raise SparkUnavailable(
                    f"Spark Connect server {ended}; its output: {telling_lines(_read(self.log, before).decode(errors='replace'))}. The whole log is {self.log}",
                    choices=("strandline doctor",),
                )
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop the server, if it runs, with all processes that it has started."""
        if self.process is not None:
            stop_processes([self.process])


def _owned(owner: int | None, folder: Path) -> list[str]:
    """Return the words before a command that ends with another process, and then removes a folder."""
    if owner is None:
        return []
    script = Path(__file__).with_name("owned_process.py")
    # Of its neighbours the script takes nothing: -P leaves their folder out of the path.
    return [
        sys.executable,
        "-P",
        str(script),
        str(owner),
        repr(psutil.Process(owner).create_time()),
        str(folder),
    ]


@contextmanager
def connect_server(
    engine: SparkEngine, log: Path, *, port: int = 0, patience: float = 120.0
) -> Iterator[str]:
    """Run a server while the block runs; it listens on this machine only.

    Args:
        engine: as in :class:`ConnectServer`, like all other arguments.
        log: file for the server's output.
        port: to listen on.
        patience: seconds until it must be ready.

    Yields:
        its address.

    Raises:
        SparkUnavailable: if it does not get ready.
    """
    server = ConnectServer(engine, log, port, patience)
    try:
        server.start()
        yield server.url
    finally:
        server.stop()


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _command(engine: SparkEngine, port: int) -> list[str]:
    settings = engine.settings() | {
        "spark.log.level": "INFO",  # the line that says that it is ready is of this level
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    visible = {key: value for key, value in settings.items() if key not in engine.secret_keys}
    confs = [part for key, value in visible.items() for part in ("--conf", f"{key}={value}")]
    return [str(_home() / "bin" / "spark-submit"), "--class", _CLASS, *confs, "spark-internal"]


@contextmanager
def _secret_settings(engine: SparkEngine, folder: Path) -> Iterator[list[str]]:
    """Yield the options by which the server reads its secrets: from a file that exists until it is ready.

    Every user of a machine can read the command lines of its processes.
    """
    secrets = {key: value for key, value in engine.conf.items() if key in engine.secret_keys}
    if not secrets:
        yield []
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".spark-", suffix=".conf") as file:  # mode 0600
        file.writelines(f"{key}={_escaped(value)}\n" for key, value in secrets.items())
        file.flush()
        yield ["--properties-file", file.name, "--load-spark-defaults"]


def _escaped(value: str) -> str:
    """Return a value as Java's properties files write it: all but letters and digits as UTF-16 escapes."""
    units = value.encode("utf-16-be")
    codes = [int.from_bytes(units[index : index + 2]) for index in range(0, len(units), 2)]
    return "".join(chr(code) if chr(code).isalnum() and code < 128 else f"\\u{code:04x}" for code in codes)


def _environment(engine: SparkEngine) -> dict[str, str]:
    return dict(os.environ) | {"SPARK_HOME": str(_home())} | engine.environment()


def _home() -> Path:
    try:
        return spark_home()
    except FileNotFoundError as error:
        raise SparkUnavailable(str(error)) from error


def _read(log: Path, start: int) -> bytes:
    with log.open("rb") as file:
        file.seek(start)
        return file.read()
