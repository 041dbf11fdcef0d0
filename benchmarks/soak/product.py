"""Runs Strandline as a user does: ``strandline dev``, or a loop of ``strandline run --all``.

Single commands run beside either.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from dagster import DagsterInstance, DagsterRunStatus, RunsFilter

from benchmarks.measure import CHECKOUT
from benchmarks.soak.processes import Process, family, process
from partitions.errors import StrandlineError
from platform_assets.dagster_home import project_home
from platform_assets.platform import build_platform
from platform_assets.project import load_project
from platform_assets.project.project import SPARK_REMOTE
from resources.dagster.run_holder import holder_of
from resources.spark.connect_server import ConnectServer, free_port
from tests.support.feed import Answer, call_of

_PATIENCE = 300.0
_LONGEST = 1200.0
"""Seconds that a command may take: a command that loads may wait for an engine that restarts, and for a store that is down."""

_ENGINE = "SparkConnectServer"
_ADDRESS = re.compile(r"sc://[0-9.]+:\d+")
_RUNS = """query($filter: RunsFilter) { runsOrError(filter: $filter, limit: 100000) {
    ... on Runs { results { runId status } } } }"""
_PARTITIONS = """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
    partitionStats { numMaterialized numFailed numMaterializing numPartitions } } } }"""


class Stopped(Exception):
    """The soak cannot continue; the text says why."""


@dataclass
class Commands:
    """The command line of one project.

    Attributes:
        folder: the project folder.
        secrets: the variables that its files name.
        remote: the address of the warm engine, once it is known.
        going: the running commands, so that the soak can kill one.
    """

    folder: Path
    secrets: Mapping[str, str]
    remote: str = ""
    going: dict[int, tuple[Process, str]] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of all processes, without this shell's variables of another project."""
        variables = {
            key: value for key, value in os.environ.items() if not key.startswith(("DAGSTER", "STRANDLINE"))
        }
        remote = {SPARK_REMOTE: self.remote} if self.remote else {}
        return variables | dict(self.secrets) | remote

    def arguments(self, *words: str) -> list[str]:
        """Return the arguments of a call of ``strandline``."""
        return call_of(self.folder, *words)

    def call(self, *words: str) -> Answer:
        """Call ``strandline --json``; the caller checks its exit code.

        Raises:
            Stopped: if it takes too long.
        """
        child = subprocess.Popen(
            self.arguments("--json", *words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
            cwd=CHECKOUT,
            text=True,
        )
        with self._registered(child, " ".join(words[:2])):
            try:
                out, err = child.communicate(timeout=_LONGEST)
            except subprocess.TimeoutExpired as error:
                child.kill()
                raise Stopped(f"strandline {' '.join(words)} did not end in {_LONGEST:.0f} s") from error
        return Answer(child.returncode, out, err)

    @contextmanager
    def _registered(self, child: subprocess.Popen[str], name: str) -> Iterator[None]:
        child_process = process(child.pid)
        with self._guard:
            if child_process:
                self.going[child.pid] = (child_process, name)
        try:
            yield
        finally:
            with self._guard:
                self.going.pop(child.pid, None)


class Product(Protocol):
    """The product, which the soak disturbs."""

    def start(self) -> None:
        """Start, and wait until it works."""

    def stop(self) -> list[str]:
        """End it; return the problems at its end."""

    def running(self) -> list[tuple[Process, str]]:
        """Return the processes of its runs, with names."""

    def kill_engine(self) -> bool:
        """Kill the Connect server; return whether there was one."""

    def runs(self) -> tuple[int, int]:
        """Return the number of runs, and of those that failed or were killed."""

    def check(self) -> None:
        """Raise Stopped if it has ended by itself."""

    def unshown(self, flow: str) -> str:
        """Return the partitions that Dagster does not show as materialised, in words; "" if none."""


@dataclass
class Dev:
    """``strandline dev``: sensors and schedules request runs, and it keeps the engine running."""

    commands: Commands
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """Return the file of its output."""
        return self.commands.folder / "dev.log"

    def start(self) -> None:
        """Start it, and wait until its page responds."""
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self.commands.arguments("dev", "--port", str(self.port)),
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.commands.environment,
                cwd=CHECKOUT,
                start_new_session=True,
            )
        self._await(lambda: bool(self._locations()), "strandline dev shows the project")
        if address := _ADDRESS.search(self.log.read_text()):
            self.commands.remote = address.group()

    def stop(self) -> list[str]:
        """End it as a service manager does; return the processes that outlived it."""
        if self._process is None:
            return []
        started = family(self._process.pid)
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
        survivors = [child for child in started if child.lives]
        problems = [
            f"strandline dev has ended and left process {child.pid}: {child.command[:120]}"
            for child in survivors
        ]
        for survivor in survivors:
            survivor.kill()
        self._process = None
        return problems

    def running(self) -> list[tuple[Process, str]]:
        """Return the runs that have recorded their process."""
        with DagsterInstance.from_config(str(project_home(self.commands.folder))) as dagster:
            return [
                (Process(holder.pid, holder.started), run.job_name)
                for run in dagster.get_runs(RunsFilter(statuses=[DagsterRunStatus.STARTED]))
                if (holder := holder_of(run)) is not None
            ]

    def kill_engine(self) -> bool:
        """Kill the server that it started; return whether there was one."""
        assert self._process is not None
        engines = [child for child in family(self._process.pid) if _ENGINE in child.command]
        return any(engine.kill() for engine in engines)  # there is at most one

    def runs(self) -> tuple[int, int]:
        """Return the counts from Dagster's record."""
        results = self._results({})
        return len(results), sum(run["status"] == "FAILURE" for run in results)

    def check(self) -> None:
        """Raise Stopped if it has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            raise Stopped(
                f"strandline dev ended with {self._process.returncode}; its log ends with\n{self.log.read_text()[-3000:]}"
            )

    def unshown(self, flow: str) -> str:
        """Return how many partitions are not materialised, after running runs have ended."""
        deadline = time.monotonic() + _PATIENCE
        while (stats := self._partitions(flow))["numMaterializing"] and time.monotonic() < deadline:
            time.sleep(0.5)
        materialised, failed, all_ = stats["numMaterialized"], stats["numFailed"], stats["numPartitions"]
        return (
            ""
            if (materialised, failed) == (all_, 0)
            else f"{materialised} of {all_} are materialised, {failed} failed"
        )

    def _partitions(self, flow: str) -> dict[str, int]:
        answer = self._ask(_PARTITIONS, {"key": {"path": ["bronze", flow]}})
        return dict(answer["assetNodeOrError"]["partitionStats"])

    def _results(self, run_filter: dict[str, Any]) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = self._ask(_RUNS, {"filter": run_filter})["runsOrError"]["results"]
        return results

    def _ask(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            answer: dict[str, Any] = json.load(response)
        return dict(answer["data"])

    def _locations(self) -> list[Any]:
        query = "{ repositoriesOrError { ... on RepositoryConnection { nodes { name } } } }"
        try:
            return list(self._ask(query, {})["repositoriesOrError"].get("nodes") or [])
        except OSError:
            return []

    def _await(self, condition: Callable[[], bool], condition_text: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not condition():
            self.check()
            if time.monotonic() > deadline:
                raise Stopped(
                    f"{condition_text}: not within {_PATIENCE:.0f} s; the log ends with\n{self.log.read_text()[-3000:]}"
                )
            time.sleep(0.5)


@dataclass
class Loop:
    """``strandline run --all``, again and again, with a supervised engine."""

    commands: Commands
    port: int = field(default_factory=free_port)
    count: int = 0
    failed: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)
    _unused: threading.Event = field(default_factory=threading.Event)
    _ready: threading.Event = field(default_factory=threading.Event)
    _error: str = ""
    _engine: ConnectServer | None = None

    def __post_init__(self) -> None:
        """Create the two threads."""
        self._serving = threading.Thread(target=self._keep_engine, name="engine")
        self._loading = threading.Thread(target=self._load, name="loop")

    def start(self) -> None:
        """Start the engine and the loop."""
        self.commands.remote = f"sc://127.0.0.1:{self.port}"
        self._serving.start()
        while not self._ready.wait(0.5):
            self.check()
        self._loading.start()

    def stop(self) -> list[str]:
        """End both; a running command ends before its engine."""
        self._ended.set()
        _join(self._loading)
        self._unused.set()
        _join(self._serving)
        return []

    def running(self) -> list[tuple[Process, str]]:
        """Return no runs: the loop's command is among the commands."""
        return []

    def kill_engine(self) -> bool:
        """Kill the engine, which restarts at once; return whether it was alive."""
        server = self._engine.process if self._engine else None
        if server is None or server.poll() is not None:
            return False
        server.kill()
        return True

    def runs(self) -> tuple[int, int]:
        """Return the counts of dataflows that the commands reported; a killed command counts as one."""
        return self.count, self.failed

    def check(self) -> None:
        """Raise Stopped if the engine or a command failed for good."""
        if self._error:
            raise Stopped(self._error)

    def unshown(self, flow: str) -> str:
        """Return nothing: the loop does not use Dagster's storage."""
        del flow
        return ""

    def _load(self) -> None:
        while not self._ended.wait(1):
            try:
                answer = self.commands.call("run", "--all")
            except Stopped as error:
                self._error = str(error)
                return
            try:
                statuses = [outcome["status"] for outcome in answer.json]
            except (ValueError, TypeError, KeyError):
                statuses = ["failed"]
            self.count += len(statuses)
            self.failed += sum(status in ("failed", "blocked") for status in statuses)

    def _keep_engine(self) -> None:
        project = load_project(self.commands.folder, environment=dict(self.commands.secrets))
        platform = build_platform(project)
        engine = platform.engines.of(project.dataflows.values())
        self._engine = ConnectServer(engine, self.commands.folder / "connect.log", self.port)
        try:
            while not self._unused.wait(0.2):
                if self._engine.process is None or self._engine.process.poll() is not None:
                    self._engine.start()
                    self._ready.set()
        except StrandlineError as error:
            self._error = error.message
        finally:
            self._engine.stop()


def _join(thread: threading.Thread) -> None:
    if thread.is_alive():
        thread.join(_LONGEST)
