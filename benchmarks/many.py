"""Measures a thousand dataflows without new data: CPU time of Dagster, and growth of its storage."""

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
from platform_assets.factory.sensor_groups import GROUP_SIZE, MAX_SINGLE, group_sensors
from platform_assets.platform import build_platform
from platform_assets.project import load_project
from resources.dagster.names import DagsterNames
from resources.spark.connect_server import free_port

COUNT = 1000
WARM_UP, SECONDS = 120.0, 300.0
"""The first ticks, in which all is imported and listed for the first time, do not count."""

_DAY = timedelta(days=1)


def run() -> None:
    """Watch the product's processes for some minutes, and simulate the ticks of a day."""
    cores = _cores()
    stored = _stored_by_a_day() * COUNT / GROUP_SIZE
    report(
        "many",
        [{"process": name, "cores": used} for name, used in cores.items()],
        [
            f"{COUNT:,} dataflows with nothing new, sensors every 30 s: {sum(cores.values()):.2f} cores (aim: at most 0.5)",
            f"a look of the alerts: {_alerts():.2f} s of CPU each minute",
            f"Dagster's storage grows by {stored / 2**20:.0f} MiB a day (simulated ticks); ticks that found nothing are kept for 3 days",
        ],
    )


def _cores() -> dict[str, float]:
    """Start the product without an engine; return the CPU use of its services once they have settled."""
    with tempfile.TemporaryDirectory() as folder:
        project_folder, port = project(Path(folder)), free_port()
        _many(project_folder, COUNT)
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("DAGSTER", "STRANDLINE"))
        }
        environment["STRANDLINE_SPARK_REMOTE"] = "sc://127.0.0.1:1"
        arguments = [
            sys.executable,
            "-m",
            "platform_assets.cli",
            "--project",
            str(project_folder),
            "dev",
            "--port",
            str(port),
        ]
        with (project_folder / "dev.log").open("wb") as log:
            server = subprocess.Popen(
                arguments, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=CHECKOUT
            )
            try:
                _until_open(project_folder / "dev.log", server)
                time.sleep(WARM_UP)
                before = _seconds(server.pid)
                time.sleep(SECONDS)
                after = _seconds(server.pid)
            finally:
                server.send_signal(signal.SIGTERM)
                server.wait(120)
    return {name: (after[name] - before[name]) / SECONDS for name in after}


def _stored_by_a_day() -> int:
    """Return the bytes that a day's ticks add to Dagster's storage, for one group of dataflows.

    No dataflow has new data. The first ticks do not count.
    """
    with tempfile.TemporaryDirectory() as folder:
        project_folder, clock = project(Path(folder)), [time.time()]
        _many(project_folder, MAX_SINGLE + 1)
        with DagsterInstance.from_config(str(dagster_home(project_folder, {}))) as instance:
            groups = [_Group(instance, sensor) for sensor in _first_groups(project_folder, lambda: clock[0])]
            for group in groups:
                group.tick(clock[0])
            start, before = clock[0], _stored(project_folder)
            while clock[0] < start + _DAY.total_seconds():
                clock[0] += min(group.interval for group in groups)
                for group in groups:
                    if clock[0] >= group.looked + group.interval:
                        group.tick(clock[0])
            return _stored(project_folder) - before


def _alerts() -> float:
    """Return the CPU seconds of a scan for alerts over all dataflows, with nothing new in Dagster."""
    with tempfile.TemporaryDirectory() as folder:
        project_folder = project(Path(folder))
        _many(project_folder, COUNT)
        (project_folder / "platform.yaml").write_text("alerts: {webhook: {env: HOOK}}\n")
        loaded = load_project(project_folder, environment={"HOOK": "http://127.0.0.1:1/"})
        sensor = alerts_sensor(loaded, build_platform(loaded), DagsterNames())
        assert sensor is not None
        with DagsterInstance.from_config(str(dagster_home(project_folder, {}))) as instance:
            for _ in range(2):  # the first one asks for each dataflow
                cpu_before = time.process_time()
                sensor(build_sensor_context(instance=instance))
                used = time.process_time() - cpu_before
        return used


def _first_groups(project_folder: Path, clock: Callable[[], float]) -> list[SensorDefinition]:
    loaded = load_project(project_folder)
    platform, names = build_platform(loaded), DagsterNames.of(loaded.dataflows.values())
    sensors = [
        make(flow, platform, names[flow.name], dataflow_job(flow, names[flow.name]), clock)
        for flow in loaded.dataflows.values()
        for make in (files_sensor, late_sensor)
    ]
    return [group for group in group_sensors(sensors, names) if group.name.endswith("_1")]


class _Group:
    """A sensor whose ticks are stored as by Dagster's daemon."""

    def __init__(self, instance: DagsterInstance, sensor: SensorDefinition) -> None:
        self._instance, self._sensor, self._cursor = instance, sensor, ""
        self.interval, self.looked = float(sensor.minimum_interval_seconds or 30), 0.0

    def tick(self, now: float) -> None:
        """Evaluate the dataflows, which have no new data."""
        name, self.looked = self._sensor.name, now
        data = TickData(name, name, InstigatorType.SENSOR, TickStatus.STARTED, now, selector_id=name)
        tick = self._instance.create_tick(data)
        result: Any = self._sensor(build_sensor_context(instance=self._instance, cursor=self._cursor or None))
        assert isinstance(result.skip_reason, SkipReason), result
        self._cursor = result.cursor
        for event in result.asset_events:
            self._instance.report_runless_asset_event(event)
        started_tick = tick.with_log_key(["__repository__", name, str(tick.tick_id)])
        over = started_tick.with_status(TickStatus.SKIPPED, end_timestamp=now).with_cursor(result.cursor)
        self._instance.update_tick(over.with_reason(result.skip_reason.skip_message))


def _until_open(log: Path, server: subprocess.Popen[bytes]) -> None:
    while "Dagster UI:" not in log.read_text():
        if server.poll() is not None:
            raise RuntimeError(f"strandline dev has ended: {log.read_text()[-1000:]}")
        time.sleep(1)


def _many(project_folder: Path, count: int) -> None:
    """Give a project many dataflows that have loaded something and have no new, late or removed files."""
    text = (project_folder / "dataflows/arrivals.yaml").read_text()
    for number in range(1, count):
        (project_folder / f"dataflows/flow_{number:04d}.yaml").write_text(text)
    pretend_loaded(project_folder, name(0))


def _seconds(of: int) -> dict[str, float]:
    """Return the CPU seconds of each service below a process, with those of its children."""
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
    seconds: dict[str, float] = {}
    for service in (pid for pid, parent in parents.items() if parent == of):
        service_name = next(
            (word for word in ("code-server", "_daemon", "webserver") if word in lines[service]), "other"
        )
        members, grown = {service}, True
        while grown:
            grown = False
            for pid, parent in parents.items():
                if parent in members and pid not in members:
                    members.add(pid)
                    grown = True
        seconds[service_name.lstrip("_")] = sum(used[pid] for pid in members)
    return seconds


def _stored(project_folder: Path) -> int:
    """Return the bytes below Dagster's home."""
    return sum(
        file.stat().st_size for file in (project_folder / ".strandline/dagster").rglob("*") if file.is_file()
    )
