"""Measures the time from a new file to its readable rows, step by step, with the warm engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from benchmarks.landing import name, project, with_rows
from benchmarks.measure import CHECKOUT, median, report
from resources.spark.connect_server import free_port

RUNS = 9
PATIENCE = 300.0
_RUNS = """{ runsOrError(limit: 1) { ... on Runs { results { status creationTime startTime endTime
    eventConnection { events { __typename ... on MessageEvent { timestamp message } } } } } } }"""


def run() -> None:
    """Drop files and read the table, with sensors every 5 s and with ``strandline watch``."""
    rows = [*_through_the_sensor(), *_through_watch()]
    medians = {
        side: median([row["total"] for row in rows if row["through"] == side][1:])
        for side in ("sensor", "watch")
    }
    report(
        "freshness",
        rows,
        [
            f"file to row through a sensor every 5 s: median {medians['sensor']:.1f} s (aim: at most 12)",
            f"file to row through `strandline watch`: median {medians['watch']:.1f} s (aim: at most 2)",
            "the first drop of each also warms the engine, and does not count",
        ],
    )


def _through_the_sensor() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        project_folder, port = project(Path(folder)), free_port()
        (project_folder / "platform.yaml").write_text("sensors: {interval: PT5S}\n")
        with _running(project_folder, "dev", "--port", str(port)):
            return [
                _drop(project_folder, number, f"http://127.0.0.1:{port}/graphql") for number in range(RUNS)
            ]


def _through_watch() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        project_folder = project(Path(folder))
        with _running(project_folder, "watch"):
            _until((project_folder / ".strandline/watch.lock").exists)
            return [
                {"drop": number + 1, "through": "watch", "total": _dropped(project_folder, number)[1]}
                for number in range(RUNS)
            ]


@contextmanager
def _running(project_folder: Path, *words: str) -> Iterator[None]:
    """Run a command of the project inside the block."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("DAGSTER", "STRANDLINE"))
    }
    arguments = [sys.executable, "-m", "platform_assets.cli", "--project", str(project_folder), *words]
    with (project_folder / "said.log").open("wb") as log:
        process = subprocess.Popen(
            arguments, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=CHECKOUT
        )
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(120)


def _dropped(project_folder: Path, number: int) -> tuple[float, float]:
    """Drop a file by rename; return the time, and the seconds until its rows are readable."""
    path, draft = project_folder / "landing" / name(number), project_folder / "draft"
    with_rows(draft, 1000, number)
    path.parent.mkdir(parents=True, exist_ok=True)
    dropped = time.time()
    draft.rename(path)
    table = project_folder / ".strandline/lake/bronze/arrivals"
    _until(lambda: DeltaTable.is_deltatable(str(table)) and DeltaTable(str(table)).version() >= number)
    return dropped, time.time() - dropped


def _drop(project_folder: Path, number: int, url: str) -> dict[str, Any]:
    dropped, total = _dropped(project_folder, number)
    _until(lambda: _last_run(url).get("status") == "SUCCESS")
    run = _last_run(url)
    step = next(
        float(event["timestamp"]) / 1000
        for event in run["eventConnection"]["events"]
        if event.get("__typename") == "ExecutionStepStartEvent"
    )
    return {
        "drop": number + 1,
        "through": "sensor",
        "until a tick requests a run": run["creationTime"] - dropped,
        "queue and start of the run's process": step - run["creationTime"],
        "load": dropped + total - step,
        "total": total,
    }


def _last_run(url: str) -> dict[str, Any]:
    request = urllib.request.Request(
        url, json.dumps({"query": _RUNS}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        results = json.load(response)["data"]["runsOrError"]["results"]
    return dict(results[0]) if results else {}


def _until(condition: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {PATIENCE:.0f} s")
        time.sleep(0.05)
