"""Measure what a second worker of a Spark cluster brings: the same load of 4,000,000 rows through a Python function on one worker of one core, and on two.

Master and workers are processes of this machine, with a core each, so it needs two cores that nothing else uses. The driver is a Connect server, which
stays the same; rounds that warm the workers up come first and do not count.
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
from resources.connect_server import connect_server
from resources.platform import Platform
from resources.spark import SparkEngine
from scripts.cluster import DRIVER, cluster

ROWS, FILES, RUNS, WARM_UP = 4_000_000, 8, 3, 1
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
        load = _Load(root / "project")
        with connect_server(engine, root / "connect.log") as url:
            remote = SparkEngine(remote=url)
            figures = {"one worker": load.measured(remote)}
            workers.add_worker()
            figures["two workers"] = load.measured(remote)
    rows = [
        {"workers": side, "seconds": median(values), "min": min(values), "max": max(values)}
        for side, values in figures.items()
    ]
    gain = median(figures["one worker"]) / median(figures["two workers"])
    report("cluster", rows, [f"one worker / two workers: {gain:.2f}"])


class _Load:
    """A dataflow of files, each time into a table of its own."""

    def __init__(self, folder: Path) -> None:
        (folder / "dataflows").mkdir(parents=True)
        (folder / "landing").mkdir()
        (folder / "rules.py").write_text(_RULES)
        each = ROWS // FILES
        for number in range(FILES):
            ids = pa.array(range(number * each, (number + 1) * each), pa.int64())
            pq.write_table(pa.table({"id": ids}), folder / "landing" / f"{number}.parquet")
        self._folder, self._names = folder, count(1)

    def measured(self, engine: SparkEngine) -> list[float]:
        """The seconds of each round that counts."""
        return [self._run(engine) for _ in range(WARM_UP + RUNS)][WARM_UP:]

    def _run(self, engine: SparkEngine) -> float:
        name = f"flow_{next(self._names)}"
        flow = {
            "source": {"type": "files", "path": "./landing", "format": "parquet"},
            "watermark": {"type": "path"},
            "transform": "rules:digested",
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
        assert outcome.rows == ROWS, outcome
        return seconds
