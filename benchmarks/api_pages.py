"""Measures 200 pages of an API, each after 50 ms: a load on a warm Spark, and the client alone.

Each Spark first loads as many immediate pages three times, so that the JVM compiles nothing while it is
measured. It takes
four minutes on a quiet machine: nine processes, six of which start Spark.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from benchmarks.measure import CHECKOUT, alternate, median, ratio, report, script

PAGES, ROWS, PAUSE, RUNS = 200, 500, 0.05, 3
WARM = ("warm_1", "warm_2", "warm_3")
"""Dataflows that warm Spark up, and do not count."""


def run() -> None:
    """Measure in turn, each in a fresh process and into its own table."""
    with tempfile.TemporaryDirectory() as folder, _server(PAUSE) as url, _server(0) as at_once:

        def loaded(unknown_fields: str) -> float:
            result = script(
                "api_ours", _project(Path(tempfile.mkdtemp(dir=folder)), url, at_once, unknown_fields)
            )
            assert result["rows"] == PAGES * ROWS, result
            memory.append(float(result["memory"]))
            return float(result["seconds"])

        memory: list[float] = []
        figures = alternate(
            RUNS,
            ignore=lambda: loaded("ignore"),
            check=lambda: loaded("check"),
            client=lambda: float(script("api_bare", url)["seconds"]),
        )
    rows = [
        {"side": side, "seconds": median(values), "min": min(values), "max": max(values)}
        for side, values in figures.items()
    ]
    notes = [
        f"loaded, fields unchecked / client alone: {ratio(figures, 'ignore', 'client'):.2f} (aim: at most 1.15)",
        f"loaded, fields checked / client alone: {ratio(figures, 'check', 'client'):.2f}",
        f"peak of memory of the loading process: {max(memory):.0f} MiB",
    ]
    report("api_pages", rows, notes)


@contextmanager
def _server(pause: float) -> Iterator[str]:
    command = [
        sys.executable,
        str(CHECKOUT / "benchmarks/scripts/api_server.py"),
        str(PAGES),
        str(ROWS),
        str(pause),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        process.communicate()


def _project(folder: Path, url: str, at_once: str, unknown_fields: str) -> Path:
    connections = {
        name: {"type": "api", "base_url": address} for name, address in (("shop", url), ("at_once", at_once))
    }
    settings = {"state": "./state", "lake": "./lake", "connections": connections}
    (folder / "dataflows").mkdir()
    (folder / "platform.yaml").write_text(yaml.safe_dump(settings))
    for name in ("orders", *WARM):
        flow = {
            "source": {
                "type": "api",
                "connection": "shop" if name == "orders" else "at_once",
                "path": "/orders",
                "records": "data.items",
                "paging": {"type": "cursor", "param": "cursor", "next": "data.next"},
                "schema": "id long, updated_at timestamp, customer string, amount double, address struct<city:string,zip:string>,"
                " lines array<struct<sku:string,count:long>>",
                "watermark_param_mapping": {"updated_at": "since"},
                "watermark_to_param": "until",
            },
            "watermark": {"type": "column", "columns": ["updated_at"]},
            "unknown_fields": unknown_fields,
        }
        (folder / "dataflows" / f"{name}.yaml").write_text(yaml.safe_dump(flow))
    return folder
