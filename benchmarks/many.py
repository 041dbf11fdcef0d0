"""Measure a thousand dataflows with nothing new: the processor time of Dagster's daemon and code server, and how its storage grows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from dagster import DagsterInstance, SensorDefinition, SkipReason, build_sensor_context
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import TickData, TickStatus

from benchmarks.landing import name, pretend_loaded, project
from benchmarks.measure import CHECKOUT, report
from platform_assets.dagster_home import dagster_home
from platform_assets.factory.alerts import alerts_sensor
from platform_assets.factory.jobs import dataflow_job
from platform_assets.factory.kinds.path.late import late_sensor
from platform_assets.factory.kinds.path.new_files_sensor import files_sensor
from platform_assets.factory.sensor_groups import MOST_ALONE, MOST_TOGETHER, grouped
from platform_assets.platform import build_platform
from platform_assets.project import load_project
from resources.spark.connect_server import free_port

COUNT = 1000
WARM_UP, SECONDS = 120.0, 300.0
"""The first ticks, in which all is imported and listed for the first time, do not count."""

_DAY = timedelta(days=1)


def run() -> None:
    """Look at the product's processes for some minutes, and simulate the ticks of a day."""
    cores = _cores()
    stored = _stored_by_a_day() * COUNT / MOST_TOGETHER
    report(
        "many",
        [{"process": what, "cores": used} for what, used in cores.items()],
        [
            f"{COUNT:,} dataflows with nothing new, sensors every 30 s: {sum(cores.values()):.2f} cores (aim: at most 0.5)",
            f"a look of the alerts: {_alerts():.2f} s of CPU each minute",
            f"Dagster's storage grows by {stored / 2**20:.0f} MiB a day (simulated ticks); ticks that found nothing are kept for 3 days",
        ],
    )


def _cores() -> dict[str, float]:
    """Start the product without an engine, which nobody needs here; return what its services use once they have settled."""
    with tempfile.TemporaryDirectory() as folder:
        here, port = project(Path(folder)), free_port()
        _many(here, COUNT)
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("DAGSTER", "STRANDLINE"))
        }
        environment["STRANDLINE_SPARK_REMOTE"] = "sc://127.0.0.1:1"
        arguments = [
            sys.executable,
            "-m",
            "platform_assets.cli",
            "--project",
            str(here),
            "dev",
            "--port",
            str(port),
        ]
        with (here / "dev.log").open("wb") as log:
            server = subprocess.Popen(
                arguments, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=CHECKOUT
            )
            try:
                _until_open(here / "dev.log", server)
                time.sleep(WARM_UP)
                before = _seconds(server.pid)
                time.sleep(SECONDS)
                after = _seconds(server.pid)
            finally:
                server.send_signal(signal.SIGTERM)
                server.wait(120)
    return {what: (after[what] - before[what]) / SECONDS for what in after}


def _stored_by_a_day() -> int:
    """Return the bytes that the ticks of a day add to Dagster's storage, for one group of dataflows with nothing new. The first ticks do not count."""
    with tempfile.TemporaryDirectory() as folder:
        here, clock = project(Path(folder)), [time.time()]
        _many(here, MOST_ALONE + 1)
        with DagsterInstance.from_config(str(dagster_home(here, {}))) as instance:
            groups = [_Group(instance, sensor) for sensor in _first_groups(here, lambda: clock[0])]
            for group in groups:
                group.tick(clock[0])
            begun, before = clock[0], _stored(here)
            while clock[0] < begun + _DAY.total_seconds():
                clock[0] += min(group.interval for group in groups)
                for group in groups:
                    if clock[0] >= group.looked + group.interval:
                        group.tick(clock[0])
            return _stored(here) - before


def _alerts() -> float:
    """Return the processor's seconds of a look of the alerts at all dataflows, of which Dagster knows nothing new."""
    with tempfile.TemporaryDirectory() as folder:
        here = project(Path(folder))
        _many(here, COUNT)
        (here / "platform.yaml").write_text("alerts: {webhook: {env: HOOK}}\n")
        loaded = load_project(here, environment={"HOOK": "http://127.0.0.1:1/"})
        sensor = alerts_sensor(loaded, build_platform(loaded))
        assert sensor is not None
        with DagsterInstance.from_config(str(dagster_home(here, {}))) as instance:
            for _ in range(2):  # the first one asks for each dataflow
                begun = time.process_time()
                sensor(build_sensor_context(instance=instance))
                used = time.process_time() - begun
        return used


def _first_groups(here: Path, clock: Callable[[], float]) -> list[SensorDefinition]:
    loaded = load_project(here)
    platform = build_platform(loaded)
    sensors = [
        make(flow, platform, dataflow_job(flow), clock)
        for flow in loaded.dataflows.values()
        for make in (files_sensor, late_sensor)
    ]
    return [group for group in grouped(sensors) if group.name.endswith("_1")]


class _Group:
    """A sensor whose ticks are stored as Dagster's daemon stores them."""

    def __init__(self, instance: DagsterInstance, sensor: SensorDefinition) -> None:
        self._instance, self._sensor, self._cursor = instance, sensor, ""
        self.interval, self.looked = float(sensor.minimum_interval_seconds or 30), 0.0

    def tick(self, now: float) -> None:
        """Look at the dataflows, which have nothing new."""
        name, self.looked = self._sensor.name, now
        data = TickData(name, name, InstigatorType.SENSOR, TickStatus.STARTED, now, selector_id=name)
        begun = self._instance.create_tick(data)
        result: Any = self._sensor(build_sensor_context(instance=self._instance, cursor=self._cursor or None))
        assert isinstance(result.skip_reason, SkipReason), result
        self._cursor = result.cursor
        for event in result.asset_events:
            self._instance.report_runless_asset_event(event)
        told = begun.with_log_key(["__repository__", name, str(begun.tick_id)])
        over = told.with_status(TickStatus.SKIPPED, end_timestamp=now).with_cursor(result.cursor)
        self._instance.update_tick(over.with_reason(result.skip_reason.skip_message))


def _until_open(log: Path, server: subprocess.Popen[bytes]) -> None:
    while "Dagster UI:" not in log.read_text():
        if server.poll() is not None:
            raise RuntimeError(f"strandline dev has ended: {log.read_text()[-1000:]}")
        time.sleep(1)


def _many(here: Path, count: int) -> None:
    """Give a project so many dataflows that have loaded something, and whose folder has nothing new, late or removed."""
    text = (here / "dataflows/arrivals.yaml").read_text()
    for number in range(1, count):
        (here / f"dataflows/flow_{number:04d}.yaml").write_text(text)
    pretend_loaded(here, name(0))


def _seconds(of: int) -> dict[str, float]:
    """Return the processor seconds of each service below a process, with those of its children."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    lines: dict[int, str] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            pid = int(stat.parent.name)
            parents[pid], used[pid] = int(fields[1]), sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
            lines[pid] = (stat.parent / "cmdline").read_text().replace("\0", " ")
        except (OSError, ValueError):
            continue
    found: dict[str, float] = {}
    for service in (pid for pid, parent in parents.items() if parent == of):
        what = next(
            (each for each in ("code-server", "_daemon", "webserver") if each in lines[service]), "other"
        )
        members, grown = {service}, True
        while grown:
            grown = False
            for pid, parent in parents.items():
                if parent in members and pid not in members:
                    members.add(pid)
                    grown = True
        found[what.lstrip("_")] = sum(used[pid] for pid in members)
    return found


def _stored(here: Path) -> int:
    """Return the bytes below Dagster's home."""
    return sum(file.stat().st_size for file in (here / ".strandline/dagster").rglob("*") if file.is_file())
