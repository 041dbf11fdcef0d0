"""``strandline dev``: the Dagster UI and a warm Spark Connect server, which end with the command."""

from __future__ import annotations

import json
import os
import shlex
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
from partitions.spelling import first_few
from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.metrics_gathering import metrics_options, serve_metrics
from platform_assets.cli.reloading import LocationReload
from platform_assets.cli.signals import catch_end_signals
from platform_assets.dagster_home import HOME, PAUSED, use_dagster_home
from platform_assets.installation import PACKAGE, working_folder
from platform_assets.platform import build_platform
from platform_assets.project import Project
from platform_assets.project.environments import ENV
from platform_assets.project.project import SPARK_REMOTE
from resources.platform.platform import Platform
from resources.spark.connect_server import ConnectServer
from resources.spark.processes import describe_exit, last_lines, start_process, stop_processes

_DEATHS, _SPAN = 4, 600.0
"""After this many deaths in this many seconds the engine is not restarted."""

_CHECK_SECONDS = 0.5
_READY_SECONDS = 300.0
"""The time in which a process must be ready: on a busy machine a thousand dataflows take the code server a minute."""

_END_SECONDS = 5.0
"""The time in which processes may end by themselves; the next run finishes an unfinished slice."""

_SHOWN = 20

LOCATION = "strandline"
"""The name of the code location in the UI."""


@click.command("dev")
@click.option(
    "--port", default=3000, show_default=True, type=click.IntRange(1, 65535), help="Port of the UI."
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address that the UI listens on; it has no login."
)
@click.option("--paused", is_flag=True, help="Leave sensors and schedules off until you turn them on.")
@metrics_options
@shared_options
def command(
    context: Context, port: int, host: str, paused: bool, metrics_port: int | None, metrics_host: str
) -> int:
    """Open the Dagster UI on this machine, with a warm engine. Ctrl-C stops both."""
    project = context.project
    platform = build_platform(project)
    _check_free(host, port)
    with catch_end_signals() as ended, ExitStack() as stack:
        home = stack.enter_context(use_dagster_home(project.folder, project.env))
        _print_project(project, home)
        _say(
            "sensors and schedules stay off until you turn them on in the UI"
            if paused
            else "sensors and schedules start with the UI, and load what is new (--paused leaves them off)"
        )
        stack.enter_context(serve_metrics(project, (), metrics_host, metrics_port, _say))
        dev = DevProcesses(home, ended.is_set)
        stack.callback(dev.end)
        stack.callback(_say, "stopping …")
        with suppress(KeyboardInterrupt):
            remote = project.spark_settings.remote
            if remote:
                _say(f"using the Spark Connect server {remote} of the settings")
            else:
                dev.start_engine(_engine(platform, context))
            dev.start_dagster(project.folder, host, port, env=project.env, paused=paused)
            location = LocationReload(project, host, port, LOCATION, _say)
            while not ended.wait(_CHECK_SECONDS):
                dev.restart_engine()
                location.look()
    return 0


@dataclass
class DevProcesses:
    """Starts the processes of ``strandline dev`` and watches them.

    Attributes:
        home: Dagster's folder; it holds the logs of all processes.
        stopped: returns whether the user has ended the command.
        clock: returns seconds.
    """

    home: Path
    stopped: Callable[[], bool]
    clock: Callable[[], float] = time.monotonic
    _engine: ConnectServer | None = None
    _deaths: list[float] = field(default_factory=list)
    _services: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def start_engine(self, engine: Any) -> None:
        """Start a Spark Connect server, and print its address."""
        _say("starting a Spark Connect server (about 10 s) …")
        self._engine = ConnectServer(engine, self._new_log("connect-server"), stopped=self.stopped)
        self._engine.start()
        _say(f"Spark Connect server: {self._engine.url} ({self._engine_in_words()})")

    def start_dagster(
        self, project: Path, host: str, port: int, *, env: str | None = None, paused: bool = False
    ) -> None:
        """Start the code server, the daemon and the UI, in that order.

        Args:
            project: the project's folder.
            host: the address of the UI.
            port: its port.
            env: the project's environment, which all processes work on.
            paused: whether sensors stay off.

        Raises:
            StrandlineError: if one of them ends before it is ready.
        """
        from dagster import DagsterInstance

        from platform_assets.dagster_internals import DAEMON_MODULE

        environment = dict(os.environ) | {HOME: str(self.home), "STRANDLINE_PROJECT": str(project.resolve())}
        environment[ENV] = env or ""
        if paused:
            environment[PAUSED] = "1"
        if self._engine is not None:
            environment[SPARK_REMOTE] = self._engine.url
        with DagsterInstance.from_config(
            str(self.home)
        ):  # creates Dagster's tables before several processes try to
            pass
        self._folder = tempfile.TemporaryDirectory(prefix="strandline-dev-")
        code, workspace = Path(self._folder.name) / "code", Path(self._folder.name) / "workspace.yaml"
        server = {"host": "localhost", "socket": str(code), "location_name": LOCATION}
        workspace.write_text(json.dumps({"load_from": [{"grpc_server": server}]}))
        folder = working_folder(project.resolve())
        module = ("-m", f"{PACKAGE}.definitions", "-a", "defs", "-d", str(folder))
        self._start(
            "code server", ("dagster", "code-server", "start", *module, "-s", str(code)), environment, folder
        )
        self._await(lambda: _listens(socket.AF_UNIX, str(code)))
        self._start("daemon", (DAEMON_MODULE, "run", "-w", str(workspace)), environment, folder)
        web = ("dagster_webserver", "-w", str(workspace), "-h", host, "-p", str(port))
        self._start("webserver", web, environment, folder)
        self._await(lambda: _listens(_family(host), (host, port)))
        _say(f"Dagster UI: http://{host}:{port}")
        self._say_exports(env)
        _say("Ctrl-C stops all of them")

    def _say_exports(self, env: str | None) -> None:
        """Print what a second terminal exports, so that its runs use this Spark and show in the UI."""
        remote = self._engine.url if self._engine is not None else os.environ.get(SPARK_REMOTE)
        exports = {SPARK_REMOTE: remote, HOME: str(self.home.resolve()), ENV: env}
        uses = "use this Spark and show in the UI" if remote else "show in the UI"
        _say(f"runs in a second terminal {uses} after:")
        for name, value in exports.items():
            if value:
                _say(f"  export {name}={shlex.quote(value)}")

    def restart_engine(self) -> None:
        """Restart a dead engine under the same address.

        Raises:
            StrandlineError: if it has died too often, or a process of Dagster has ended.
        """
        self._check_services()
        engine = self._engine
        code = engine.process.poll() if engine is not None and engine.process is not None else None
        if engine is None or code is None:
            return
        death = f"the Spark Connect server {describe_exit(code)}"
        now = self.clock()
        self._deaths = [time_ for time_ in self._deaths if now - time_ < _SPAN] + [now]
        if len(self._deaths) >= _DEATHS:
            raise _too_many_deaths(death, len(self._deaths), engine.log)
        _say(f"{death}; starting another under the same address, {engine.url} …")
        try:
            engine.start()
        except StrandlineError as error:  # counts as a death at the next check
            engine.stop()
            _say(error.message)
            return
        _say(
            f"Spark Connect server: {engine.url} ({self._engine_in_words()}); the next runs finish the work of the old one"
        )

    def end(self) -> None:
        """End all processes at once."""
        engine = self._engine.process if self._engine is not None else None
        stop_processes([*self._services.values(), *([engine] if engine is not None else [])], _END_SECONDS)
        if self._folder is not None:
            self._folder.cleanup()

    def _start(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> None:
        log = self._new_log(name)
        process = start_process([sys.executable, "-m", *arguments], log, environment, folder)
        self._services[name] = process
        _say(f"Dagster's {name}: process {process.pid}, log: {log}")

    def _await(self, ready: Callable[[], bool]) -> None:
        deadline = self.clock() + _READY_SECONDS
        while not ready():
            if self.stopped():
                raise KeyboardInterrupt
            self._check_services()
            if self.clock() > deadline:
                name = list(self._services)[-1]
                raise StrandlineError(
                    f"Dagster's {name} was not ready after {_READY_SECONDS:.0f} s. The last lines of {self._log(name)}: "
                    f"{last_lines(self._log(name))}",
                    code="dev",
                )
            time.sleep(0.1)

    def _check_services(self) -> None:
        for name, process in self._services.items():
            if (code := process.poll()) is not None:
                raise StrandlineError(
                    f"Dagster's {name} {describe_exit(code)}, so `strandline dev` stopped everything. The last lines of "
                    f"{self._log(name)}: {last_lines(self._log(name))}",
                    code="dev",
                    choices=("strandline dev",),
                )

    def _engine_in_words(self) -> str:
        process = self._engine.process if self._engine is not None else None
        return f"process {process.pid if process else '-'}, log: {self._log('connect-server')}"

    def _new_log(self, name: str) -> Path:
        log = self._log(name)
        log.unlink(missing_ok=True)
        return log

    def _log(self, name: str) -> Path:
        return self.home / "dev" / f"{name.replace(' ', '-')}.log"


def _engine(platform: Platform, context: Context) -> Any:
    """Return one engine for all dataflows, with the jars and credentials of all places."""
    return platform.engines.of(context.project.dataflows.values())


def _print_project(project: Project, home: Path) -> None:
    """Print the project's folder, and its dataflows with the broken ones."""
    environment = f"; environment: {project.env}" if project.env else ""
    _say(f"project: {project.folder}{environment}; Dagster's runs: {home}")
    _say(f"dataflows: {first_few(list(project.dataflows), _SHOWN) or 'none'}")
    if project.broken:
        _say(f"broken: {first_few(list(project.broken), _SHOWN)} (strandline validate shows all errors)")
    for name, errors in list(project.broken.items())[:_SHOWN]:
        _say(f"  {name}: {errors[0]}")


def _too_many_deaths(death: str, deaths: int, log: Path) -> StrandlineError:
    return StrandlineError(
        f"{death}; it has died {deaths} times within {_SPAN / 60:.0f} minutes, so `strandline dev` stopped "
        "everything. Give it more memory (`spark: {conf: {spark.driver.memory: 4g}}` in platform.yaml), or "
        f"smaller slices (`checkpoint`). The last lines of {log}: {last_lines(log)}",
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
    with suppress(OSError):  # even without a terminal, the processes must be ended
        click.echo(line)
