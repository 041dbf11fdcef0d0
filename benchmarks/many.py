"""Measure a thousand dataflows with nothing new: the processor time of Dagster's daemon and code server, and how its storage grows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.landing import name, pretend_loaded, project
from benchmarks.measure import CHECKOUT, report
from resources.connect_server import free_port

COUNT = 1000
WARM_UP, SECONDS = 120.0, 300.0
"""The first ticks, in which all is imported and listed for the first time, do not count."""

_DAY = 86_400


def run() -> None:
    """Start the product without an engine, which nobody needs here, and look at its processes."""
    with tempfile.TemporaryDirectory() as folder:
        here, port = project(Path(folder)), free_port()
        _many(here)
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
                before, stored = _seconds(server.pid), _stored(here)
                time.sleep(SECONDS)
                after, grown = _seconds(server.pid), _stored(here) - stored
            finally:
                server.send_signal(signal.SIGTERM)
                server.wait(120)
    cores = {what: (after[what] - before[what]) / SECONDS for what in after}
    rows = [{"process": what, "cores": used} for what, used in cores.items()]
    report(
        "many",
        rows,
        [
            f"{COUNT:,} dataflows with nothing new, sensors every 30 s: {sum(cores.values()):.2f} cores (aim: at most 0.5)",
            f"Dagster's storage grows by {grown / SECONDS * _DAY / 2**20:.0f} MiB a day; ticks that found nothing are kept for 3 days",
        ],
    )


def _until_open(log: Path, server: subprocess.Popen[bytes]) -> None:
    while "Dagster UI:" not in log.read_text():
        if server.poll() is not None:
            raise RuntimeError(f"strandline dev has ended: {log.read_text()[-1000:]}")
        time.sleep(1)


def _many(here: Path) -> None:
    """Give a project so many dataflows that have loaded something, and whose folder has nothing new, late or removed."""
    text = (here / "dataflows/arrivals.yaml").read_text()
    for number in range(1, COUNT):
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
