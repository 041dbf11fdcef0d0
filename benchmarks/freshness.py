"""Measure the time from a new file to its readable rows, through the sensor with the warm engine, step by step."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from benchmarks.landing import name, project, with_rows
from benchmarks.measure import CHECKOUT, report
from resources.connect_server import free_port

RUNS = 4
PATIENCE = 300.0
_RUNS = """{ runsOrError(limit: 1) { ... on Runs { results { status creationTime startTime endTime
    eventConnection { events { __typename ... on MessageEvent { timestamp message } } } } } } }"""


def run() -> None:
    """Start the product, drop files, read the table."""
    with tempfile.TemporaryDirectory() as folder:
        here, port = project(Path(folder)), free_port()
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("DAGSTER", "STRANDLINE"))
        }
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
                rows = [_drop(here, number, f"http://127.0.0.1:{port}/graphql") for number in range(RUNS)]
            finally:
                server.send_signal(signal.SIGTERM)
                server.wait(120)
    report(
        "freshness",
        rows,
        [
            "the first drop also warms the engine; the sensor ticks every 30 s, so the wait for its tick is 0 to 30 s"
        ],
    )


def _drop(here: Path, number: int, url: str) -> dict[str, Any]:
    path = here / "landing" / name(number)
    with_rows(path, 1000, number)
    dropped = time.time()
    table = here / ".strandline/lake/bronze/arrivals"
    _until(lambda: DeltaTable.is_deltatable(str(table)) and DeltaTable(str(table)).version() >= number)
    readable = time.time()
    _until(lambda: _last_run(url).get("status") == "SUCCESS")
    found = _last_run(url)
    step = next(
        float(event["timestamp"]) / 1000
        for event in found["eventConnection"]["events"]
        if event.get("__typename") == "ExecutionStepStartEvent"
    )
    return {
        "drop": number + 1,
        "until a tick requests a run": found["creationTime"] - dropped,
        "queue and start of the run's process": step - found["creationTime"],
        "load": readable - step,
        "total": readable - dropped,
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
