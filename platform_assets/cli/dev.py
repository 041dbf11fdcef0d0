"""``strandline dev``: the Dagster UI with a warm Spark Connect server beside it; all processes that it starts end with it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from partitions.errors import StrandlineError
from platform_assets.cli.context import Context, shared
from platform_assets.cli.signals import signalled
from platform_assets.dagster_home import HOME, dagster_home
from platform_assets.installation import PACKAGE, working_folder
from platform_assets.platform import build_platform
from platform_assets.project import Project
from platform_assets.project.project import SPARK_REMOTE
from resources.platform.platform import Platform
from resources.spark.connect_server import ConnectServer
from resources.spark.processes import end, how_it_ended, last_lines, start

_DEATHS, _SPAN = 4, 600.0
"""An engine that has died so often in so many seconds is not started again."""

_LOOK = 0.5
_PATIENCE = 300.0
"""Seconds until a process must be ready: a thousand dataflows take the code server a minute on a busy machine."""

_POLITE = 5.0
"""Seconds that the processes have to end by themselves; the next run finishes an unfinished slice."""

_SHOWN = 20


@click.command("dev")
@click.option("--port", default=3000, show_default=True, type=click.IntRange(1, 65535), help="Of the UI.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The UI listens there; it has no login.")
@shared
def command(context: Context, port: int, host: str) -> int:
    """Open the Dagster UI on this machine, with a warm engine. Ctrl-C ends both."""
    project = context.project
    platform = build_platform(project)
    _check_free(host, port)
    home = dagster_home(project.folder)
    _introduce(project, home)
    with signalled() as ended, ExitStack() as stack:
        dev = Dev(home, ended.is_set)
        stack.callback(dev.end)
        stack.callback(_say, "ending …")
        with suppress(KeyboardInterrupt):
            remote = project.spark_settings.remote
            if remote:
                _say(f"Spark Connect server {remote} is named by the settings; none is started")
            else:
                dev.start_engine(_engine(platform, context))
            dev.start_dagster(project.folder, host, port)
            while not ended.wait(_LOOK):
                dev.look()
    return 0


@dataclass
class Dev:
    """Starts the processes and watches them.

    Attributes:
        home: of Dagster; the logs of all processes are below it.
        stopped: returns whether the user has ended the command.
        clock: seconds.
    """

    home: Path
    stopped: Callable[[], bool]
    clock: Callable[[], float] = time.monotonic
    _engine: ConnectServer | None = None
    _deaths: list[float] = field(default_factory=list)
    _services: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def start_engine(self, engine: Any) -> None:
        """Start a Spark Connect server, and say where it is."""
        _say("starting a Spark Connect server (about 10 s) …")
        self._engine = ConnectServer(engine, self._new_log("connect-server"), stopped=self.stopped)
        self._engine.start()
        _say(f"Spark Connect server: {self._engine.url} ({self._of_engine()})")

    def start_dagster(self, project: Path, host: str, port: int) -> None:
        """Start the code server, the daemon and the UI, in that order.

        Raises:
            StrandlineError: if one of them ends before it is ready.
        """
        from dagster import DagsterInstance

        environment = dict(os.environ) | {HOME: str(self.home), "STRANDLINE_PROJECT": str(project.resolve())}
        if self._engine is not None:
            environment[SPARK_REMOTE] = self._engine.url
        with DagsterInstance.from_config(
            str(self.home)
        ):  # makes its tables before several processes do so at once
            pass
        self._folder = tempfile.TemporaryDirectory(prefix="strandline-dev-")
        code, workspace = Path(self._folder.name) / "code", Path(self._folder.name) / "workspace.yaml"
        server = {"host": "localhost", "socket": str(code), "location_name": "strandline"}
        workspace.write_text(json.dumps({"load_from": [{"grpc_server": server}]}))
        folder = working_folder(project.resolve())
        module = ("-m", f"{PACKAGE}.definitions", "-a", "defs", "-d", str(folder))
        self._start(
            "code server", ("dagster", "code-server", "start", *module, "-s", str(code)), environment, folder
        )
        self._await(lambda: _listens(socket.AF_UNIX, str(code)))
        self._start("daemon", ("dagster._daemon", "run", "-w", str(workspace)), environment, folder)
        web = ("dagster_webserver", "-w", str(workspace), "-h", host, "-p", str(port))
        self._start("webserver", web, environment, folder)
        self._await(lambda: _listens(_family(host), (host, port)))
        _say(f"Dagster UI: http://{host}:{port}\nCtrl-C ends all of them")

    def look(self) -> None:
        """Start a dead engine again, under the same address.

        Raises:
            StrandlineError: if it dies again and again, or a process of Dagster has ended.
        """
        self._check_services()
        engine = self._engine
        code = engine.process.poll() if engine is not None and engine.process is not None else None
        if engine is None or code is None:
            return
        died = f"the Spark Connect server {how_it_ended(code)}"
        now = self.clock()
        self._deaths = [death for death in self._deaths if now - death < _SPAN] + [now]
        if len(self._deaths) >= _DEATHS:
            raise _given_up(died, len(self._deaths), engine.log)
        _say(f"{died}: starting another under the same address, {engine.url} …")
        try:
            engine.start()
        except StrandlineError as error:  # counts as a death at the next look
            engine.stop()
            _say(error.message)
            return
        _say(
            f"Spark Connect server: {engine.url} ({self._of_engine()}); the next runs finish what was begun on the old one"
        )

    def end(self) -> None:
        """End everything that was started, at once."""
        engine = self._engine.process if self._engine is not None else None
        end([*self._services.values(), *([engine] if engine is not None else [])], _POLITE)
        if self._folder is not None:
            self._folder.cleanup()

    def _start(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> None:
        log = self._new_log(name)
        process = start([sys.executable, "-m", *arguments], log, environment, folder)
        self._services[name] = process
        _say(f"Dagster's {name}: process {process.pid}, log: {log}")

    def _await(self, ready: Callable[[], bool]) -> None:
        deadline = self.clock() + _PATIENCE
        while not ready():
            if self.stopped():
                raise KeyboardInterrupt
            self._check_services()
            if self.clock() > deadline:
                name = list(self._services)[-1]
                raise StrandlineError(
                    f"Dagster's {name} was not ready after {_PATIENCE:.0f} s; the last lines of {self._log(name)}: {last_lines(self._log(name))}",
                    code="dev",
                )
            time.sleep(0.1)

    def _check_services(self) -> None:
        for name, process in self._services.items():
            if (code := process.poll()) is not None:
                raise StrandlineError(
                    f"Dagster's {name} {how_it_ended(code)}, so all is ended; the last lines of {self._log(name)}: {last_lines(self._log(name))}",
                    code="dev",
                    choices=("strandline dev",),
                )

    def _of_engine(self) -> str:
        process = self._engine.process if self._engine is not None else None
        return f"process {process.pid if process else '-'}, log: {self._log('connect-server')}"

    def _new_log(self, name: str) -> Path:
        log = self._log(name)
        log.unlink(missing_ok=True)
        return log

    def _log(self, name: str) -> Path:
        return self.home / "dev" / f"{name.replace(' ', '-')}.log"


def _engine(platform: Platform, context: Context) -> Any:
    """Return one engine for all dataflows, with the jars and credentials of every place of the project."""
    return platform.engine_of(context.project.dataflows.values())


def _introduce(project: Project, home: Path) -> None:
    """Say what is opened, and which dataflows are broken."""
    _say(f"project: {project.folder}; Dagster's runs: {home}")
    _say(f"dataflows: {_few(list(project.dataflows)) or 'none'}")
    if project.broken:
        _say(f"broken: {_few(list(project.broken))} (strandline validate shows all errors)")
    for name, errors in list(project.broken.items())[:_SHOWN]:
        _say(f"  {name}: {errors[0]}")


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _given_up(died: str, times: int, log: Path) -> StrandlineError:
    return StrandlineError(
        f"{died}; it has died {times} times within {_SPAN / 60:.0f} minutes, so all is ended. Expected an engine that stays: give it memory"
        f" (`spark: {{conf: {{spark.driver.memory: 4g}}}}` in platform.yaml), or smaller slices (`checkpoint`). The last lines of {log}: {last_lines(log)}",
        code="spark",
        choices=("strandline doctor",),
    )


def _check_free(host: str, port: int) -> None:
    """Raise if another process has the port; Dagster's own error is a stack trace in a log."""
    with socket.socket(_family(host)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise StrandlineError(
                f"expected {host}:{port} to be free for the UI, found: {error.strerror or error}. Is `strandline dev` running already?",
                code="dev",
                choices=(f"strandline dev --port {port % 65535 + 1}",),
            ) from error


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _listens(family: socket.AddressFamily, address: Any) -> bool:
    with socket.socket(family) as probe:
        return probe.connect_ex(address) == 0


def _say(line: str) -> None:
    with suppress(OSError):  # the terminal may be gone, and the processes must be ended all the same
        click.echo(line)
