"""A real Spark cluster, a master and two workers: loads are whole whatever dies, and a Connect server on it writes to S3 (docs/how-to/cluster.md)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from deltalake import DeltaTable

from platform_assets.installation import ROOT as CHECKOUT
from platform_assets.installation import cache_folder
from resources.connections.places import Place
from resources.spark.connect_server import connect_server
from resources.spark.engine import SparkEngine
from scripts.cluster import DRIVER, Cluster, cluster
from scripts.postgres import Postgres
from tests.support.engine import QUICK
from tests.support.environment import clean_environment

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

ROWS, FILES = 2_000_000, 8
SMALL_EXECUTORS = {
    "spark.executor.memory": "640m",
    "spark.executor.cores": "1",
    "spark.pyspark.python": sys.executable,
}
RULES = '''
"""Rules of the project. A task ends its executor, a later one the worker, each once."""
import os
import signal
from pathlib import Path

import pyarrow as pa
from ends import at_first

def doubled(batches):
    for batch in batches:
        daemon = os.getppid()
        executor = parent(daemon)
        if at_first("executor"):
            os.kill(executor, signal.SIGKILL)
        elif at_first("worker"):
            os.kill(parent(executor), signal.SIGKILL)
        ids = batch.column("id")
        yield pa.record_batch([ids, pa.compute.multiply(ids, 2)], ["id", "twice"])

def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def twice(rows, batch):
    return rows.select("id").mapInArrow(doubled, "id long, twice long")
'''
ENDS = """
from pathlib import Path

def at_first(what):
    try:
        Path(FOLDER, what).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
"""


@pytest.fixture
def two_workers(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path / "cluster", 2) as running:
        yield running


def strandline(project: Path, environment: Mapping[str, str], *arguments: str) -> Any:
    """What a command answers, in a process of its own."""
    command = [sys.executable, "-m", "platform_assets.cli", "--project", str(project), "--json", *arguments]
    done = subprocess.run(
        command,
        cwd=CHECKOUT,
        env=clean_environment() | dict(environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def define(project: Path, settings: dict[str, Any], **dataflow: Any) -> None:
    (project / "dataflows").mkdir(parents=True, exist_ok=True)
    (project / "platform.yaml").write_text(yaml.safe_dump(settings))
    (project / "dataflows" / "flow.yaml").write_text(yaml.safe_dump(dataflow))


def test_functions_in_spark_load_once_although_executors_die(tmp_path: Path, two_workers: Cluster) -> None:
    project = tmp_path / "project"
    conf = {**DRIVER, **SMALL_EXECUTORS, "spark.sql.files.maxPartitionBytes": "1m"}
    define(
        project,
        {"spark": {"master": two_workers.url, "conf": conf}},
        source={"type": "files", "path": "./landing", "format": "parquet"},
        watermark={"type": "path"},
        transform="rules:twice",
        target={"load": "append"},
    )
    (project / "rules.py").write_text(RULES)
    (project / "ends.py").write_text(f"FOLDER = {str(tmp_path)!r}\n{ENDS}")
    (project / "landing").mkdir()
    each = ROWS // FILES
    for number in range(FILES):
        ids = pa.array(range(number * each, (number + 1) * each), pa.int64())
        pq.write_table(pa.table({"id": ids}), project / "landing" / f"{number}.parquet")
    (outcome,) = strandline(project, {}, "run", "flow")
    assert (outcome["status"], outcome["rows"]) == ("committed", ROWS)
    assert (tmp_path / "executor").exists()
    two_workers.workers[0].poll(), two_workers.workers[1].poll()
    assert sum(worker.poll() is None for worker in two_workers.workers) == 1
    table = DeltaTable(str(project / ".strandline/lake/bronze/flow")).to_pyarrow_table(
        columns=["id", "twice"]
    )
    assert table.sort_by("id").column("id").to_pylist() == list(range(ROWS))
    assert sum(table.column("twice").to_pylist()) == ROWS * (ROWS - 1)
    (again,) = strandline(project, {}, "run", "flow")
    assert again["status"] == "nothing"


@pytest.mark.s3
@pytest.mark.postgres
def test_a_connect_server_merges_on_s3_with_state_in_postgresql(
    tmp_path: Path, two_workers: Cluster, bucket: Place, postgres: Postgres
) -> None:
    postgres.ask("CREATE DATABASE clustered")
    connection = bucket.connection
    assert connection is not None
    project = tmp_path / "project"
    land = {
        "type": "s3",
        "endpoint": connection.endpoint,
        "region": connection.region,
        "access_key_id": {"env": "KEY"},
        "secret_access_key": {"env": "SECRET"},
    }
    define(
        project,
        {
            "state": {"env": "STATE"},
            "lake": {"path": bucket.child("lake").url, "connection": "land"},
            "connections": {"land": land},
        },
        source={
            "type": "files",
            "path": bucket.child("landing").url,
            "connection": "land",
            "format": "ndjson",
            "schema": "id long, text string",
        },
        watermark={"type": "path"},
        transform="words:upper",
        target={"load": "merge_upsert", "merge_keys": ["id"]},
    )
    (project / "letters.py").write_text("def high(text):\n    return text.upper()\n")
    (project / "words.py").write_text(
        "from letters import high\nfrom pyspark.sql import functions as F\n\n"
        "def upper(rows, batch):\n    return rows.withColumn('text', F.udf(high, 'string')('text'))\n"
    )
    landing = bucket.child("landing").store
    engine = SparkEngine(
        master=two_workers.url,
        conf={**QUICK, **DRIVER, **SMALL_EXECUTORS},
        cache=cache_folder(),
        places=(bucket,),
    )
    with connect_server(engine, tmp_path / "connect.log", patience=300) as remote:
        environment = {
            "STATE": postgres.url("clustered"),
            "KEY": connection.access_key_id or "",
            "SECRET": connection.secret_access_key or "",
            "STRANDLINE_SPARK_REMOTE": remote,
        }
        obstore.put(landing, "1.ndjson", b'{"id": 1, "text": "one"}\n{"id": 2, "text": "two"}\n')
        strandline(project, environment, "run", "flow")
        obstore.put(landing, "2.ndjson", b'{"id": 2, "text": "zwei"}\n{"id": 3, "text": "drei"}\n')
        strandline(project, environment, "run", "flow")
    table = DeltaTable(bucket.child("lake/bronze/flow").url, storage_options=bucket.storage_options)
    rows = table.to_pyarrow_table(columns=["id", "text"]).sort_by("id").to_pylist()
    assert [(row["id"], row["text"]) for row in rows] == [(1, "ONE"), (2, "ZWEI"), (3, "DREI")]
