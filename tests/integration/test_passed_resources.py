"""What a Dagster user has already: Spark of dagster-pyspark, a session, and an ``S3Resource`` load a dataflow."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dagster import AssetKey, Definitions, EnvVar, asset
from dagster_aws.s3 import S3Resource
from deltalake import DeltaTable

from platform_assets.build import build_definitions
from platform_assets.project_resources import SparkResource
from resources.connections.places import Place
from resources.spark.engine import SparkEngine
from tests.support.environment import clean_environment

QUIET: dict[str, Any] = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
EVENTS = """
source: {type: files, path: PLACE, format: ndjson, schema: id long}
watermark: {type: path}
target: {load: append, origin_columns: false}
"""
WITH_CONNECTION = EVENTS.replace("PLACE,", "PLACE, connection: minio,")


def project(folder: Path, settings: str, dataflow: str) -> Path:
    (folder / "dataflows").mkdir(parents=True)
    (folder / "platform.yaml").write_text(settings)
    (folder / "dataflows/events.yaml").write_text(dataflow)
    return folder


@pytest.mark.s3
def test_an_s3_resource_and_a_session_of_the_user_load_a_bucket_into_a_bucket(
    bucket: Place, engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = bucket.connection
    assert connection is not None
    settings = {
        "lake": {"path": f"{bucket}/lake", "connection": "minio"},
        "state": {"path": f"{bucket}/state", "connection": "minio"},
        "connections": {"minio": {"type": "dagster"}},
    }
    folder = project(
        tmp_path / "loads", json.dumps(settings), WITH_CONNECTION.replace("PLACE", f"{bucket}/landing")
    )
    monkeypatch.setenv("MINIO_SECRET", str(connection.secret_access_key))
    minio = S3Resource(
        endpoint_url=connection.endpoint,
        region_name=connection.region,
        aws_access_key_id=connection.access_key_id,
        aws_secret_access_key=EnvVar("MINIO_SECRET"),
    )
    own_session = engine.session()
    own_session.conf.set("spark.sql.shuffle.partitions", "3")
    own_session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    settings_of_assets: list[object] = []

    @asset(deps=[AssetKey(["bronze", "events"])])
    def report(strandline_spark: SparkResource) -> None:
        session = strandline_spark.session()
        rows = session.read.format("delta").load(bucket.child("lake/bronze/events").spark_url)
        keys = ("spark.sql.shuffle.partitions", "spark.sql.session.timeZone")
        settings_of_assets.extend([sorted(row["id"] for row in rows.collect()), *map(session.conf.get, keys)])

    bucket.store.put("landing/a.ndjson", b'{"id": 1}\n{"id": 2}\n')
    definitions = Definitions.merge(
        build_definitions(folder, connections={"minio": minio}, spark=lambda: own_session),
        Definitions(assets=[report]),
    )
    job = definitions.resolve_implicit_global_asset_job_def()
    assert job.execute_in_process(run_config=QUIET).success
    place = bucket.child("lake/bronze/events")
    table = DeltaTable(place.url, storage_options=place.storage_options).to_pyarrow_table()
    assert sorted(table["id"].to_pylist()) == [1, 2]
    assert settings_of_assets == [[1, 2], "3", "UTC"]
    assert own_session.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"


_CHANGING = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.files.ignoreMissingFiles": "true",
}
"""Settings with which Spark changes days before 1582 and years after 2262, and leaves out rows of lost files."""


def test_settings_of_a_passed_session_change_no_rows(spark_engine: SparkEngine, tmp_path: Path) -> None:
    session = spark_engine.session()
    for key, value in _CHANGING.items():
        session.conf.set(key, value)
    folder = project(
        tmp_path,
        "state: ./state\nlake: ./lake\n",
        EVENTS.replace("PLACE, format: ndjson, schema: id long", "./in, format: parquet"),
    )
    times = [datetime(year, 1, 1, tzinfo=UTC) for year in (1500, 2026, 9999)]
    rows = [{"id": number, "at": time, "day": time.date()} for number, time in enumerate(times)]
    (folder / "in").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), folder / "in/a.parquet")
    copy = "source: {type: table, table: bronze/events}\nwatermark: {type: column, columns: [id]}\n"
    (folder / "dataflows/copy.yaml").write_text(copy)
    definitions = build_definitions(folder, spark=lambda: session)

    def load(name: str) -> bool:
        return (
            definitions.resolve_job_def(f"load_{name}")
            .execute_in_process(run_config=QUIET, raise_on_error=False)
            .success
        )

    assert load("events")
    table = DeltaTable(str(folder / "lake/bronze/events"))
    assert table.to_pyarrow_table(columns=["id", "at", "day"]).sort_by("id").to_pylist() == rows
    (file,) = table.file_uris()
    Path(file).unlink()
    assert not load("copy")


@pytest.mark.s3
def test_a_wrong_secret_of_an_s3_resource_fails_the_run_and_stands_in_none_of_its_events(
    bucket: Place, tmp_path: Path
) -> None:
    connection = bucket.connection
    assert connection is not None
    folder = project(
        tmp_path,
        "connections: {minio: {type: dagster}}",
        WITH_CONNECTION.replace("PLACE", f"{bucket}/landing"),
    )
    minio = S3Resource(
        endpoint_url=connection.endpoint,
        region_name=connection.region,
        aws_access_key_id=connection.access_key_id,
        aws_secret_access_key="wrong-secret",
    )
    definitions = build_definitions(folder, connections={"minio": minio})
    load = definitions.resolve_job_def("load_events")
    result = load.execute_in_process(run_config=QUIET, raise_on_error=False)
    texts = "".join(map(str, result.all_events))
    assert not result.success
    assert "SignatureDoesNotMatch" in texts
    assert "wrong-secret" not in texts


_LOADS = """\
import sys
from dagster import AssetKey, AssetSelection, Definitions, asset
from dagster_pyspark import LazyPySparkResource, PySparkResource
from platform_assets import public as strandline

folder, complete = sys.argv[1:]
own = {"spark.master": "local[2]", "spark.app.name": "mine", "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "3",
       "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
if complete == "yes":
    spark = PySparkResource(spark_config={**strandline.spark_conf(folder), **own})
else:
    spark = LazyPySparkResource(spark_config=own)

@asset(deps=[AssetKey(["bronze", "events"])])
def report(strandline_spark: strandline.SparkResource) -> None:
    session = strandline_spark.session()
    print(session.sparkContext.appName, session.conf.get("spark.sql.shuffle.partitions"), session.conf.get("spark.sql.session.timeZone"))

defs = Definitions.merge(strandline.build_definitions(folder, spark=spark), Definitions(assets=[report]))
result = defs.resolve_implicit_global_asset_job_def().execute_in_process(
    raise_on_error=False, run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
)
for event in result.all_events:
    if event.is_step_failure:
        print(event.step_failure_data.error.cause or event.step_failure_data.error)
"""


def _loads(folder: Path, complete: str) -> str:
    command = [sys.executable, "-c", _LOADS, str(folder), complete]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, env=clean_environment(), timeout=280
    ).stdout


def _local(tmp_path: Path) -> Path:
    folder = project(tmp_path, "format: parquet", EVENTS.replace("PLACE", "./landing"))
    (folder / "landing").mkdir()
    (folder / "landing/a.ndjson").write_text('{"id": 1}\n{"id": 2}\n')
    return folder


@pytest.mark.full
def test_a_py_spark_resource_loads_with_its_own_settings(tmp_path: Path) -> None:
    folder = _local(tmp_path)
    assert _loads(folder, "yes").splitlines()[-1] == "mine 3 UTC"
    files = (folder / ".strandline/lake/bronze/events").glob("*.parquet")
    assert sorted(number for file in files for number in pq.read_table(file)["id"].to_pylist()) == [1, 2]


@pytest.mark.full
def test_a_spark_without_the_settings_of_the_project_is_refused_by_their_names(tmp_path: Path) -> None:
    folder = _local(tmp_path)
    message = _loads(folder, "no")
    assert "expected a Spark that was started with spark.sql.extensions=io.delta" in message
    assert "the jars of io.delta:delta-spark" in message
    assert f'`LazyPySparkResource(spark_config={{**strandline.spark_conf("{folder}"), ...}})`' in message
    assert not (folder / ".strandline/lake/bronze").exists()
