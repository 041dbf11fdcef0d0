"""Measures what a second worker of a Spark cluster brings: the same load on one worker and on two.

Master and workers are processes of this machine, so it needs two cores that nothing else uses. 1,500,000
rows go through an expression of Spark's, for which a worker
uses its one core, and 4,000,000 through a Python function, for which it uses two: one for Spark and one
for Python. The driver is a Connect server, which stays
the same; rounds that warm the workers up come first and do not count.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import median, report
from platform_assets.installation import cache_folder
from platform_assets.project import load_project
from resources.platform.platform import Platform
from resources.spark.connect_server import connect_server
from resources.spark.engine import SparkEngine
from scripts.cluster import DRIVER, cluster

FILES, RUNS, WARM_UP = 8, 3, 1
_RULES = """
import hashlib

import pyarrow as pa

def digests(batches):
    for batch in batches:
        ids = batch.column("id")
        texts = [hashlib.sha256(str(number).encode()).hexdigest() for number in ids.to_pylist()]
        yield pa.record_batch([ids, pa.array(texts)], ["id", "digest"])

def digested(rows, batch):
    return rows.select("id").mapInArrow(digests, "id long, digest string")
"""


WORK: dict[str, tuple[int, dict[str, str]]] = {
    "in Spark": (
        1_500_000,
        {"sql": "SELECT id, sha2(repeat(CAST(id AS string), 200), 512) AS digest FROM input"},
    ),
    "in Python": (4_000_000, {"transform": "rules:digested"}),
}
"""What is done to how many rows."""


def run() -> None:
    """Measure one worker, then two."""
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder) / "cluster", 1) as workers:
        root = Path(folder)
        conf = {
            **DRIVER,
            "spark.executor.memory": "640m",
            "spark.executor.cores": "1",
            "spark.driver.memory": "1g",
            "spark.pyspark.python": sys.executable,
        }
        engine = SparkEngine(master=workers.url, conf=conf, cache=cache_folder())
        loads = {name: _Load(root / name, *work) for name, work in WORK.items()}
        with connect_server(engine, root / "connect.log") as url:
            remote = SparkEngine(remote=url)
            single = {name: load.measured(remote) for name, load in loads.items()}
            workers.add_worker()
            two = {name: load.measured(remote) for name, load in loads.items()}
    rows = [
        {
            "work": name,
            "workers": count,
            "seconds": median(side[name]),
            "min": min(side[name]),
            "max": max(side[name]),
        }
        for name in loads
        for count, side in ((1, single), (2, two))
    ]
    notes = [
        f"{name}, one worker / two workers: {median(single[name]) / median(two[name]):.2f}" for name in loads
    ]
    report("cluster", rows, notes)


class _Load:
    """A dataflow of files that is loaded into a new table each time."""

    def __init__(self, folder: Path, rows: int, work: dict[str, str]) -> None:
        (folder / "dataflows").mkdir(parents=True)
        (folder / "landing").mkdir()
        (folder / "rules.py").write_text(_RULES)
        rows_per_file = rows // FILES
        for number in range(FILES):
            ids = pa.array(range(number * rows_per_file, (number + 1) * rows_per_file), pa.int64())
            pq.write_table(pa.table({"id": ids}), folder / "landing" / f"{number}.parquet")
        self._folder, self._names = folder, count(1)
        self._rows, self._work = rows, work

    def measured(self, engine: SparkEngine) -> list[float]:
        """Return the seconds of each round that counts."""
        return [self._run(engine) for _ in range(WARM_UP + RUNS)][WARM_UP:]

    def _run(self, engine: SparkEngine) -> float:
        name = f"flow_{next(self._names)}"
        flow = {
            "source": {"type": "files", "path": "./landing", "format": "parquet"},
            "watermark": {"type": "path"},
            **self._work,
            "target": {"load": "append"},
        }
        (self._folder / f"dataflows/{name}.yaml").write_text(json.dumps(flow))
        project = load_project(self._folder)
        platform = Platform(
            project.state,
            project.lake,
            engine,
            project.source_place,
            folder=self._folder,
            lineage=project.lineage,
        )
        started = time.monotonic()
        outcome = platform.loop(project.dataflows[name], datetime.now(UTC)).run()
        seconds = time.monotonic() - started
        assert outcome.error is None, outcome.error
        assert outcome.rows == self._rows, outcome
        return seconds
