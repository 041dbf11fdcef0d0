"""Measures a hundred daily partitions: as one run, as one run each, and with bare Spark.

The time counts from when Spark has started.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import yaml
from deltalake import write_deltalake

from benchmarks.measure import alternate, median, ratio, report, script

DAYS, ROWS, RUNS = 100, 5_000, 3
START = datetime(2024, 1, 1, tzinfo=UTC)
FLOW = {
    "source": {"type": "table", "table": "raw/events", "window_column": "at"},
    "watermark": {
        "type": "window",
        "definition": [
            {"name": "day", "type": "datetime", "range": {"from": "2024-01-01", "to": "2024-04-10"}}
        ],
        "window": "daily",
    },
    "target": {"load": "merge_overwrite", "replace_by_watermark": True},
}


def run() -> None:
    """Measure in turn, each in a fresh process and its own table, which already holds the days."""
    with tempfile.TemporaryDirectory() as folder:
        project = _project(Path(folder) / "project")
        figures = alternate(
            RUNS,
            range=lambda: float(
                script("ranges_ours", project, tempfile.mkdtemp(dir=folder), "range")["seconds"]
            ),
            bare=lambda: float(script("ranges_bare", project, tempfile.mkdtemp(dir=folder))["seconds"]),
        )
        figures |= alternate(
            1,
            each=lambda: float(
                script("ranges_ours", project, tempfile.mkdtemp(dir=folder), "each")["seconds"]
            ),
        )
    rows = [
        {"side": side, "seconds": median(values), "min": min(values), "max": max(values)}
        for side, values in figures.items()
    ]
    notes = [
        f"one range run / bare Spark: {ratio(figures, 'range', 'bare'):.2f} (aim: at most 1.30)",
        f"one run each / one range run: {median(figures['each']) / median(figures['range']):.1f}",
    ]
    report("ranges", rows, notes)


def _project(folder: Path) -> Path:
    (folder / "dataflows").mkdir(parents=True)
    (folder / "platform.yaml").write_text(yaml.safe_dump({"state": "./state", "lake": "./lake"}))
    (folder / "dataflows" / "events.yaml").write_text(yaml.safe_dump(FLOW))
    step = timedelta(days=1) / ROWS
    for day in range(DAYS):
        begin = START + timedelta(days=day)
        rows = {
            "id": range(day * ROWS, (day + 1) * ROWS),
            "at": [begin + step * number for number in range(ROWS)],
        }
        day_rows = pa.table(
            {"id": pa.array(rows["id"], pa.int64()), "at": pa.array(rows["at"], pa.timestamp("us", "UTC"))}
        )
        write_deltalake(str(folder / "lake/raw/events"), day_rows, mode="append")
    return folder
