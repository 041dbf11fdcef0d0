"""A Spark cluster on this machine, for tests and measurements.

A standalone master and workers, each a process of its own, from pyspark's own wheel.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from resources.spark.connect_server import free_port
from resources.spark.processes import last_lines, start_process, stop_processes
from resources.spark_runtime import java_environment, spark_home

_DEPLOY = "org.apache.spark.deploy"
_HOST = "127.0.0.1"
_PATIENCE = 120.0
_SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

DRIVER = {"spark.driver.host": _HOST, "spark.driver.bindAddress": _HOST}
"""Settings of a driver on this machine: its name may not resolve."""


@dataclass
class Cluster:
    """A master with its workers.

    Attributes:
        folder: the folder of logs, and of the executors' files.
        cores: the cores of each worker.
        memory: the memory of each worker, in Spark's spelling.
    """

    folder: Path
    cores: int = 1
    memory: str = "1g"
    port: int = field(default_factory=free_port)
    page: int = field(default_factory=free_port)
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _master: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return the value of ``spark.master``."""
        return f"spark://{_HOST}:{self.port}"

    def start(self, workers: int) -> None:
        """Start the master and some workers, and wait until all are ready."""
        ports = ("--host", _HOST, "--port", str(self.port), "--webui-port", str(self.page))
        self._master = self._process("master", f"{_DEPLOY}.master.Master", *ports)
        self._until(lambda: self._state() is not None, "the master answers")
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Start another worker, and wait until the master lists it."""
        number = len(self.workers) + 1
        sizes = ("--cores", str(self.cores), "--memory", self.memory)
        where = ("--host", _HOST, "--webui-port", "0", "--work-dir", str(self.folder / f"work-{number}"))
        worker = self._process(f"worker-{number}", f"{_DEPLOY}.worker.Worker", *sizes, *where, self.url)
        self.workers.append(worker)
        self._until(
            lambda: self.alive == sum(worker.poll() is None for worker in self.workers),
            f"worker {number} is there",
        )
        return worker

    @property
    def alive(self) -> int:
        """Return the number of workers that the master lists."""
        state = self._state() or {}
        return sum(worker["state"] == "ALIVE" for worker in state.get("workers", ()))

    def stop(self) -> None:
        """End all processes, and remove the executors' files, such as a copy of each jar."""
        stop_processes([*self.workers, *([self._master] if self._master else [])])
        for work_folder in self.folder.glob("work-*"):
            shutil.rmtree(work_folder, ignore_errors=True)

    def _state(self) -> dict[str, Any] | None:
        try:
            answer = requests.get(f"http://{_HOST}:{self.page}/json/", timeout=10, proxies={"http": ""})
        except requests.RequestException:
            return None
        state: dict[str, Any] | None = answer.json() if answer.ok else None
        return state

    def _process(self, name: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            **java_environment(),
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": _HOST,
            "SPARK_DAEMON_JAVA_OPTS": _SMALL,
            "SPARK_DAEMON_MEMORY": "256m",
        }
        command = [str(spark_home() / "bin" / "spark-class"), main, *arguments]
        return start_process(command, self.folder / f"{name}.log", environment)

    def _until(self, condition: Any, condition_text: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                last_log_lines = "; ".join(last_lines(log) for log in sorted(self.folder.glob("*.log")))
                raise TimeoutError(
                    f"{condition_text}: not within {_PATIENCE:.0f} s; the logs end with {last_log_lines}"
                )
            time.sleep(0.1)


@contextmanager
def cluster(folder: Path, workers: int, *, cores: int = 1, memory: str = "1g") -> Iterator[Cluster]:
    """Run a cluster inside the block."""
    folder.mkdir(parents=True, exist_ok=True)
    running = Cluster(folder, cores, memory)
    try:
        running.start(workers)
        yield running
    finally:
        running.stop()
