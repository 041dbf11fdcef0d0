"""A Spark Connect server of our own: keeps an engine warm beside the UI and in tests.

pyspark's wheel has no start script for it, but spark-submit starts its class.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resources.spark import SparkEngine, SparkUnavailable
from resources.spark_process import telling

_STARTED = b"Spark Connect server started at"
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def connect_server(
    engine: SparkEngine, log: Path, *, port: int = 0, patience: float = 120.0
) -> Iterator[str]:
    """Run a server as long as the block runs; it listens on this machine only.

    Args:
        engine: whose settings the server's Spark gets.
        log: file for what the server prints.
        port: to listen on; 0 picks a free one.
        patience: seconds until it must be ready.

    Yields:
        its address, ``sc://127.0.0.1:port``.

    Raises:
        SparkUnavailable: where it does not get ready; its last lines are in the message.
    """
    port = port or free_port()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        server = subprocess.Popen(
            _command(engine, port),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=_environment(engine),
        )
    try:
        _await(server, log, patience)
        yield f"sc://127.0.0.1:{port}"
    finally:
        stop(server)


def stop(process: subprocess.Popen[bytes], patience: float = 20.0) -> None:
    """End a process that leads its own session: politely first, then by force."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, sent)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _command(engine: SparkEngine, port: int) -> list[str]:
    settings = engine.settings() | {
        "spark.log.level": "INFO",  # the line that says that it is ready is of this level
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    confs = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    return [str(_spark_home() / "bin" / "spark-submit"), "--class", _CLASS, *confs, "spark-internal"]


def _environment(engine: SparkEngine) -> dict[str, str]:
    return dict(os.environ) | {"SPARK_HOME": str(_spark_home())} | engine.environment()


def _spark_home() -> Path:
    from importlib.util import find_spec

    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise SparkUnavailable(
            "pyspark is not installed: expected it in this environment; install requirements.lock"
        )
    return Path(found.origin).parent


def _await(server: subprocess.Popen[bytes], log: Path, patience: float) -> None:
    deadline = time.monotonic() + patience
    while _STARTED not in (text := log.read_bytes()):
        if server.poll() is not None or time.monotonic() > deadline:
            ended = (
                f"ended with code {server.returncode}"
                if server.poll() is not None
                else f"was not ready after {patience:.0f} s"
            )
            raise SparkUnavailable(
                f"Spark Connect server {ended}; it said: {telling(text.decode(errors='replace'))}. All of it is in {log}",
                choices=("strandline doctor",),
            )
        time.sleep(0.1)
