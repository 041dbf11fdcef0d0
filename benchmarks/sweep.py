"""Measures the late-file sweep over 10,000, 100,000 and 1,000,000 keys.

The figures are calls, CPU and memory of a step, and the size of the record of files. A stand-in in this
process lists as S3
does; the sweep runs, and is measured, in a process of its own.
"""

from __future__ import annotations

import json
import sys
import tempfile
from hashlib import md5
from pathlib import Path
from typing import Any

import yaml

from benchmarks.landing import name
from benchmarks.measure import report, script
from partitions.fingerprint import fingerprint
from platform_assets.platform import build_platform
from platform_assets.project import load_project
from resources.watermarks.entry import new_id, next_entry
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.lists import INGESTED_FILES, StoredList

SIZES = (10_000, 100_000, 1_000_000)
FLOW = "arrivals"


def run() -> None:
    """Measure one whole round at each size, with one late file in the middle."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from tests.support.http import serving
    from tests.support.keyed import KeyedS3

    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, serving(KeyedS3()) as server:
        for size in SIZES:
            late = name(size // 2).replace("-x", "-late")
            server.hold([late, *(name(number) for number in range(size))])
            project_folder = _project(Path(folder) / str(size), server.port)
            _ingested(project_folder, size)
            rows.append(_row(project_folder, size, late))
    large = rows[-1]
    report(
        "sweep",
        rows,
        [
            _compared(rows[0], rows[-1]),
            f"the record takes {large['record KiB'] * 1024 / SIZES[-1]:.1f} bytes a file; the newest entry {large['entry bytes']} bytes",
        ],
    )


def _compared(small: dict[str, Any], large: dict[str, Any]) -> str:
    cpu, memory = (large[figure] / small[figure] for figure in ("cpu ms a step", "peak MiB"))
    return f"at {SIZES[-1]:,} keys a step costs {cpu:.2f}x the CPU, and its process {memory:.2f}x the memory, of {SIZES[0]:,}"


def _project(folder: Path, port: int) -> Path:
    (folder / "dataflows").mkdir(parents=True)
    land = {"type": "s3", "endpoint": f"http://127.0.0.1:{port}", "region": "us-east-1"}
    keys = {"access_key_id": {"env": "BENCH_KEY"}, "secret_access_key": {"env": "BENCH_SECRET"}}
    (folder / "platform.yaml").write_text(yaml.safe_dump({"connections": {"land": land | keys}}))
    source = {
        "type": "files",
        "path": "s3://keyed",
        "connection": "land",
        "format": "ndjson",
        "schema": "id long",
    }
    flow = {"source": source, "watermark": {"type": "path"}, "target": {"load": "append"}}
    (folder / f"dataflows/{FLOW}.yaml").write_text(yaml.safe_dump(flow))
    return folder


def _ingested(project_folder: Path, size: int) -> None:
    """Append entries of 50,000 files each that count every file as loaded."""
    project = load_project(project_folder)
    flow, log = project.dataflows[FLOW], build_platform(project).log
    last = None
    for start in range(0, size, 50_000):
        end = min(start + 50_000, size)
        rows = [
            [name(number), 100_000, md5(str(number).encode()).hexdigest(), 1_700_000_000_000 + number, None]
            for number in range(start, end)
        ]
        changes = {
            "watermark": json.dumps({"path": name(end - 1)}),
            "why": "run",
            "fingerprint": fingerprint(flow),
        }
        first = {} if last else {"kind": "path", "app_id": new_id()}
        listed = log.put_list(FLOW, f"{start:010d}-x", StoredList(INGESTED_FILES, rows))
        entry = next_entry(last, **{**first, **changes, "files": end - start, "file_list": listed})
        last = log.append(FLOW, entry, expected=entry.previous)
        IngestedFiles(log, FLOW, last).merge(1)


def _row(project_folder: Path, size: int, late: str) -> dict[str, Any]:
    result = script("sweep_round", project_folder, environment={"BENCH_KEY": "key", "BENCH_SECRET": "secret"})
    assert result["late"] == [late], result["late"]
    assert result["listed"] == size + 1
    record = sum(
        path.stat().st_size for path in (project_folder / ".strandline/state" / FLOW / "ingested").iterdir()
    )
    entry = max(
        (project_folder / ".strandline/state" / FLOW / "entries").iterdir(),
        key=lambda path: path.stat().st_size,
    )
    return {
        "keys": size,
        "steps": result["steps"],
        "calls a step": result["calls"],
        "cpu ms a step": result["cpu"] * 1000,
        "ms a step": result["wall"] * 1000,
        "cpu s a round": result["total"],
        "peak MiB": result["memory"],
        "record KiB": record / 1024,
        "entry bytes": entry.stat().st_size,
    }
