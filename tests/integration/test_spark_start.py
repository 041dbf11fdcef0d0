"""Embedded Spark on its way up and down: what a user sees of it, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import fastavro
import pytest

from resources.spark_runtime import AVRO_PACKAGE
from tests.support.environment import clean_environment
from tests.support.feed import CHECKOUT, call_of

pytestmark = pytest.mark.full

FLOW = "source: {type: files, path: ../landing, format: ndjson}\nwatermark: {type: path}\n"
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Starts ``strandline run --json`` on one file, with these settings of Spark, and on other dataflows that are named."""
    (tmp_path / "project/dataflows").mkdir(parents=True)
    (tmp_path / "project/dataflows/flow.yaml").write_text(FLOW)
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing/1706450400-a.ndjson").write_text('{"id": 1}\n')
    environment = clean_environment()

    def started(spark: str, *names: str) -> subprocess.Popen[str]:
        (tmp_path / "project/platform.yaml").write_text(f"spark: {spark}\n")
        command = call_of(tmp_path / "project", "run", *(names or ["flow"]), "--json")
        return subprocess.Popen(
            command, cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    return started


def test_a_run_prints_one_json_document_and_nothing_of_java(start: Start) -> None:
    with start("{master: 'local[1]'}") as run:
        out, err = run.communicate(timeout=200)
    assert json.loads(out)[0]["status"] == "committed"
    assert [line.strip() for line in err.splitlines()] == [
        "1 file to start with, in 1 slice",
        "starting Spark …",
        "slice 1: 1 row of 1 file",
        "no file is above the watermark",
    ]


@pytest.mark.parametrize(
    ("spark", "told"),
    [
        (
            "{master: 'local[1]', conf: {spark.driver.memory: 200m}}",
            "System memory 201326592 must be at least",
        ),
        ("{master: nonsense}", "Master must either be yarn or start with spark, k8s, or local"),
    ],
)
def test_where_spark_does_not_start_the_error_says_why(start: Start, spark: str, told: str) -> None:
    with start(spark) as run:
        out, _ = run.communicate(timeout=200)
    (answer,) = json.loads(out)
    assert (run.returncode, answer["status"], answer["error"]["code"]) == (1, "failed", "spark")
    assert told in answer["error"]["message"]
    assert "WARN" not in answer["error"]["message"]


def test_where_java_dies_in_a_run_the_error_says_so(start: Start) -> None:
    with start("{master: 'local[1]'}") as run:
        assert run.stderr is not None
        while "starting Spark" not in run.stderr.readline():
            assert run.poll() is None
        java = child(run.pid)
        time.sleep(3)  # up, and at work
        os.kill(java, signal.SIGKILL)
        out, _ = run.communicate(timeout=200)
    (answer,) = json.loads(out)
    assert run.returncode == 1
    message = answer["error"]["message"]
    assert "Spark's Java process ended with code -9" in message or "Java gateway process exited" in message


def test_a_run_starts_spark_with_the_jars_of_its_later_dataflows(start: Start, tmp_path: Path) -> None:
    later = FLOW.replace("ndjson", "avro").replace("../landing", "../avro")
    (tmp_path / "project/dataflows/later.yaml").write_text(later)
    (tmp_path / "avro").mkdir()
    with (tmp_path / "avro/1706450400-a.avro").open("wb") as file:
        schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}
        fastavro.writer(file, fastavro.parse_schema(schema), [{"id": 1}, {"id": 2}])
    with start("{master: 'local[1]'}", "flow", "later") as run:
        out, err = run.communicate(timeout=200)
    assert [(answer["status"], answer["rows"]) for answer in json.loads(out)] == [
        ("committed", 1),
        ("committed", 2),
    ]
    assert err.count("starting Spark") == 1


def test_a_spark_that_runs_without_a_jar_is_refused_by_the_jars_name(tmp_path: Path) -> None:
    code = """
from partitions.errors import ConfigurationError
from resources.spark.engine import SparkEngine
from resources.spark_runtime import AVRO_PACKAGE, POSTGRESQL_PACKAGE

SparkEngine("local[1]", drivers=(POSTGRESQL_PACKAGE,)).session()
SparkEngine("local[1]").session()
for _ in range(2):  # the refused engine leaves nothing behind that the next one takes for a jar
    try:
        SparkEngine("local[1]", drivers=(AVRO_PACKAGE,)).session()
    except ConfigurationError as error:
        print(error.message)
"""
    environment = clean_environment()
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=True, timeout=200
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert all(
        line.startswith(f"Spark already runs in this process without {AVRO_PACKAGE}:") for line in lines
    )


JARS_ON_S3 = """
import sys
from pathlib import Path
from resources.spark.log_store import CLASS, JAR, SETTING
from resources.connections.places import Place
from resources.spark.engine import SparkEngine
session = SparkEngine(master="local[1]", places=(Place("s3://bucket"),), cache=Path(sys.argv[1])).session()
named = session.sparkContext.getConf().get("spark.jars").split(",")
print(session.conf.get(SETTING) == CLASS)
print([sum(part in jar for jar in named) for part in (JAR.name, "delta-spark", "hadoop-aws")])
"""


def test_executors_get_the_log_store_beside_the_jars_that_are_fetched_or_remembered(tmp_path: Path) -> None:
    environment = clean_environment()
    command = [sys.executable, "-c", JARS_ON_S3, str(tmp_path)]
    for _ in range(2):  # the second start finds what the first one has noted
        done = subprocess.run(
            command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False, timeout=140
        )
        assert done.stdout.splitlines() == ["True", "[1, 1, 1]"], done.stderr


def child(parent: int, patience: float = 60) -> int:
    """The Java process of a process, once it is there."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, _, rest = status.read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            if name == "java" and int(rest.split()[1]) == parent:
                return int(status.parent.name)
        time.sleep(0.05)
    raise AssertionError(f"process {parent} has no Java")
