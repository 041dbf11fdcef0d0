"""The settings of deploy/: code server, webserver and daemon on a real PostgreSQL and a real S3, and a file that arrives."""

from __future__ import annotations

import json
import shutil
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import obstore
import psycopg
import pytest
from deltalake import DeltaTable

from platform_assets.installation import cache_folder
from resources.connections.places import Place
from resources.spark.connect_server import connect_server, free_port
from resources.spark.engine import SparkEngine
from resources.spark.processes import start_process, stop_processes
from scripts.postgres import Postgres
from tests.support.engine import QUICK
from tests.support.installed import Installed, shell_blocks
from tests.support.seaweed import Seaweed

pytestmark = [pytest.mark.full, pytest.mark.s3, pytest.mark.postgres, pytest.mark.timeout(900)]

PATIENCE = 240.0
PLATFORM = """
state: "postgresql://"
lake: {path: {env: LAKE}, connection: land}
connections:
  land:
    type: s3
    endpoint: {env: AWS_ENDPOINT_URL}
    region: {env: AWS_DEFAULT_REGION}
    access_key_id: {env: AWS_ACCESS_KEY_ID}
    secret_access_key: {env: AWS_SECRET_ACCESS_KEY}
"""
DATAFLOW = """
source: {type: files, path: {env: LANDING}, connection: land, format: ndjson, schema: id long}
watermark: {type: path}
target: {load: append}
"""
RUNS = "{ runsOrError { ... on Runs { results { runId status jobName } } } }"


@dataclass(frozen=True)
class Deployed:
    """What runs.

    Attributes:
        place: the bucket with landing zone, lake and logs.
        database: the address of the database with Dagster's tables and the watermark log.
        url: of the webserver.
        folder: with the logs of all processes.
    """

    place: Place
    database: str
    url: str
    folder: Path

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Ask the database."""
        with psycopg.connect(self.database) as connection:
            return connection.execute(query.encode()).fetchall()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Poll until it holds; where it does not, show what the processes said."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            said = "\n".join(log.read_text()[-2000:] for log in sorted(self.folder.glob("*.log")))
            assert time.monotonic() < deadline, (
                f"{what}: not within {PATIENCE:.0f} s; the logs end with\n{said}"
            )
            time.sleep(0.5)


@contextmanager
def process(log: Path, installed: Installed, command: str) -> Iterator[None]:
    """A shell command as long as the block runs."""
    started = start_process(["sh", "-c", command], log, installed.environment, installed.folder)
    try:
        yield
    finally:
        stop_processes([started])


@pytest.fixture
def deployed(tmp_path: Path, seaweed: Seaweed, postgres: Postgres) -> Iterator[Deployed]:
    """Everything that deploy/README.md starts."""
    postgres.ask("CREATE DATABASE deployed")
    with ExitStack() as stack:
        place = stack.enter_context(seaweed.bucket())
        obstore.put(place.child("landing").store, "1.ndjson", b'{"id": 1}\n{"id": 2}\n')
        spark = SparkEngine(master="local[2]", conf=QUICK, cache=cache_folder(), places=(place,))
        remote = stack.enter_context(connect_server(spark, tmp_path / "connect.log", patience=600))
        installed = Installed(tmp_path)
        installed.json("init", ".", "--kind", "path", "--name", "arrivals", "--deploy")
        installed.environment |= _environment(installed.folder, place, postgres, remote)
        _doctor(installed)
        found = Deployed(place, postgres.url("deployed"), f"http://127.0.0.1:{free_port()}", tmp_path)
        for name, command in _commands(found.url.rpartition(":")[2]).items():
            stack.enter_context(process(tmp_path / f"{name}.log", installed, command))
        yield found


def _environment(folder: Path, place: Place, postgres: Postgres, remote: str) -> dict[str, str]:
    """Write the project, and return the variables that deploy/README.md lists, and its own."""
    (folder / "platform.yaml").write_text(PLATFORM)
    (folder / "dataflows/arrivals.yaml").write_text(DATAFLOW)
    home = folder / "dagster"
    home.mkdir()
    shutil.copy(folder / "deploy/dagster.yaml", home)
    connection = place.connection
    assert connection is not None
    return {
        "DAGSTER_HOME": str(home),
        "PGHOST": "127.0.0.1",
        "PGPORT": str(postgres.port),
        "PGUSER": "postgres",
        "PGPASSWORD": postgres.password,
        "PGDATABASE": "deployed",
        "STRANDLINE_DAGSTER_LOGS": place.url.removeprefix("s3://"),
        "STRANDLINE_CODE_HOST": "127.0.0.1",
        "STRANDLINE_CODE_PORT": str(free_port()),
        "STRANDLINE_SPARK_REMOTE": remote,
        "AWS_ENDPOINT_URL": connection.endpoint or "",
        "AWS_DEFAULT_REGION": connection.region or "",
        "AWS_ACCESS_KEY_ID": connection.access_key_id or "",
        "AWS_SECRET_ACCESS_KEY": connection.secret_access_key or "",
        "LAKE": place.child("lake").url,
        "LANDING": place.child("landing").url,
    }


def _doctor(installed: Installed) -> None:
    """Run what a platform engineer runs first."""
    assert installed.environment["PGPASSWORD"] not in installed.call("strandline", "doctor")


def _commands(port: str) -> dict[str, str]:
    """Return the commands that deploy/README.md shows, with another port of the webserver."""
    (block,) = [block for block in shell_blocks("deploy/README.md") if "code-server" in block]
    code, daemon, webserver = block.replace("-h 0.0.0.0 -p 3000", f"-h 127.0.0.1 -p {port}").splitlines()
    return {"code": code, "daemon": daemon, "webserver": webserver}


def graphql(url: str, query: str) -> Any:
    """The answer's data; None where nobody answers yet."""
    body = json.dumps({"query": query}).encode()
    request = urllib.request.Request(f"{url}/graphql", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)["data"]
    except OSError:
        return None


def test_a_file_is_loaded_with_state_in_postgresql_and_data_on_s3(deployed: Deployed) -> None:
    deployed.until(lambda: graphql(deployed.url, RUNS) is not None, "the webserver answers")
    deployed.until(lambda: deployed.ask("SELECT status FROM runs") == [("SUCCESS",)], "a run succeeds")
    ((run_id, job),) = deployed.ask("SELECT run_id, pipeline_name FROM runs")
    assert graphql(deployed.url, RUNS)["runsOrError"]["results"] == [
        {"runId": run_id, "status": "SUCCESS", "jobName": job}
    ]
    assert job == "load_arrivals"
    entries = deployed.ask(
        "SELECT dataflow, number, entry->>'watermark', entry->>'run_id' FROM strandline.watermark_entries"
    )
    assert entries == [("arrivals", 1, '{"path": "1.ndjson"}', run_id)]
    table = deployed.place.child("lake/bronze/arrivals")
    found = DeltaTable(table.url, storage_options=table.storage_options).to_pyarrow_table(columns=["id"])
    assert sorted(found.column("id").to_pylist()) == [1, 2]
    logs = [meta["path"] for page in obstore.list(deployed.place.child("dagster").store) for meta in page]
    assert [
        path for path in logs if path.startswith(f"storage/{run_id}/compute_logs/") and path.endswith(".err")
    ]
