"""The same dataflow with landing zone, state and lake on a real S3, through the command line and S3A."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from partitions.loads import Append, Load, Replace
from partitions.predicate import Among
from platform_assets.installation import cache_folder
from resources.connections.places import Place
from resources.spark.connect_server import connect_server
from resources.spark.engine import SparkEngine
from resources.spark.log_store import CLASS, JAR, SETTING
from resources.tables.contract.commit_log import CHANGE
from resources.tables.contract.commits import TableCommit, Tag
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.table import DeltaLakeTable
from resources.tables.iceberg.table import IcebergTable
from resources.tables.parquet.log import CommitLog
from resources.tables.parquet.maintenance import ParquetMaintenance
from resources.tables.parquet.placement import Placement
from resources.tables.parquet.table import ParquetTable
from tests.integration.test_iceberg_catalogs import exercise
from tests.support.catalogs import catalog_of, name_in_sql
from tests.support.debezium import event, lines
from tests.support.engine import QUICK
from tests.support.feed import call_of
from tests.support.folder_texts import FOLDER_TEXTS
from tests.support.http import serving
from tests.support.iceberg_rest import rest_catalog
from tests.support.proxy import CountingProxy, Record
from tests.support.seaweed import Seaweed
from tests.support.workbooks import xlsx

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from scripts.postgres import Postgres

pytestmark = [pytest.mark.s3, pytest.mark.timeout(900)]

ODD = "date=2024-01-02/2024-01-28T14:00:00 é%[x]+.ndjson"


@dataclass
class Cloud:
    """A project whose every place is in one bucket, behind a proxy that counts."""

    folder: Path
    place: Place
    remote: str
    proxy: CountingProxy

    def put(self, name: str, *ids: int) -> None:
        """Put a file of rows."""
        obstore.put(
            self.place.child("landing").store,
            name,
            "".join(json.dumps({"id": each}) + "\n" for each in ids).encode(),
        )

    def run(self, *arguments: str, **environment: str) -> tuple[int, Any]:
        """A command's exit code and JSON."""
        connection = self.place.connection
        assert connection is not None
        known = {
            "K": connection.access_key_id or "",
            "S": connection.secret_access_key or "",
            "STRANDLINE_SPARK_REMOTE": self.remote,
        }
        done = subprocess.run(
            call_of(self.folder, "--json", *arguments),
            capture_output=True,
            text=True,
            env=os.environ | known | environment,
            check=False,
            timeout=300,
        )
        return done.returncode, json.loads(done.stdout)

    def rows(self) -> list[tuple[int, str | None, str]]:
        """(id, date, _source_file) of the table."""
        place = self.place.child("lake/bronze/cloud")
        table = DeltaTable(place.url, storage_options=place.storage_options).to_pyarrow_table(
            columns=["id", "date", "_source_file"]
        )
        return sorted((row["id"], row["date"], row["_source_file"]) for row in table.to_pylist())


@pytest.fixture
def s3_server(spark_engine: SparkEngine) -> str:
    """The address of a warm engine that has S3A's jars."""
    assert spark_engine.remote is not None
    return spark_engine.remote


@pytest.fixture
def cloud(tmp_path: Path, seaweed: Seaweed, s3_server: str) -> Iterator[Cloud]:
    with seaweed.bucket() as bucket, serving(CountingProxy(seaweed.port)) as proxy:
        connection = seaweed.through(proxy.port)
        (tmp_path / "dataflows").mkdir()
        (tmp_path / "platform.yaml").write_text(
            f"state: {{path: '{bucket.url}/state', connection: land}}\nlake: {{path: '{bucket.url}/lake', connection: land}}\n"
            f"connections:\n  land: {{type: s3, endpoint: '{connection.endpoint}', region: us-east-1,"
            " access_key_id: {env: K}, secret_access_key: {env: S}}\n"
        )
        (tmp_path / "dataflows/cloud.yaml").write_text(
            f"source: {{type: files, path: '{bucket.url}/landing', connection: land, format: ndjson}}\n"
            "watermark: {type: path, layout: leaf}\ntarget: {load: append, partition_by: [date]}\n"
        )
        yield Cloud(tmp_path, replace(bucket, connection=connection), s3_server, proxy)


def test_files_of_a_bucket_are_loaded_once_through_a_state_and_a_table_in_it(cloud: Cloud) -> None:
    cloud.put("date=2024-01-01/1-a b.ndjson", 1, 2)
    cloud.put(ODD, 3)
    code, (first,) = cloud.run("run", "cloud")
    assert (code, first["status"], first["rows"], first["files"]) == (0, "committed", 3, 2)
    assert first["watermark_after"] == {"path": ODD}
    code, (second,) = cloud.run("run", "cloud")
    assert (code, second["status"], second["rows"]) == (0, "nothing", 0)
    cloud.put("date=2024-01-03/4.ndjson", 4)
    code, (third,) = cloud.run("run", "cloud")
    assert (code, third["status"], third["rows"]) == (0, "committed", 1)
    assert cloud.rows() == [
        (1, "2024-01-01", "date=2024-01-01/1-a b.ndjson"),
        (2, "2024-01-01", "date=2024-01-01/1-a b.ndjson"),
        (3, "2024-01-02", ODD),
        (4, "2024-01-03", "date=2024-01-03/4.ndjson"),
    ]


@pytest.mark.full
def test_values_of_folders_in_a_bucket_are_unescaped_as_hive_and_spark_escape_them(cloud: Cloud) -> None:
    flow = cloud.folder / "dataflows/cloud.yaml"
    flow.write_text(flow.read_text().replace(", partition_by: [date]", ""))
    for number, folder in enumerate(FOLDER_TEXTS):
        cloud.put(f"date={folder}/a.ndjson", number)
    code, (outcome,) = cloud.run("run", "cloud")
    assert (code, outcome["error"]) == (0, None)
    assert [row[:2] for row in cloud.rows()] == list(enumerate(FOLDER_TEXTS.values()))


@pytest.mark.full
def test_a_plan_costs_at_most_two_list_calls_and_reading_state_and_table_one_each(cloud: Cloud) -> None:
    for number in range(20):
        cloud.put(f"date=2024-01-01/{number:03d}.ndjson", number)
    assert cloud.run("run", "cloud")[0] == 0
    cloud.put("date=2024-01-02/000.ndjson", 99)
    cloud.proxy.record.lists.clear()
    code, (plan,) = cloud.run("plan", "cloud")
    assert (code, plan["slices"]) == (0, [{"files": ["date=2024-01-02/000.ndjson"]}])
    landing = [path for path in cloud.proxy.record.lists if "landing" in path]
    assert len(landing) <= 2
    others = [path for path in cloud.proxy.record.lists if path not in landing]
    assert ["entries" in path or "_delta_log" in path for path in others] == [True, True], others


def test_everything_of_the_state_is_put_conditionally(cloud: Cloud) -> None:
    cloud.put("date=2024-01-01/1.ndjson", 1)
    assert cloud.run("run", "cloud")[0] == 0
    puts = cloud.proxy.record.puts
    beside = ("/leases/", "/notes/")  # which hold no truth
    state = [
        (path, conditional)
        for path, conditional in puts
        if "/state/" in path and not any(one in path for one in beside)
    ]
    assert len(state) == 4  # file list, schema, intent, entry
    assert all(conditional for _, conditional in state)


def test_wrong_credentials_and_a_missing_bucket_fail_apart(cloud: Cloud) -> None:
    code, (answer,) = cloud.run("run", "cloud", S="wrong-secret-value")
    assert code == 1
    assert answer["error"]["code"] in ("source_denied", "provider")
    assert "wrong-secret-value" not in json.dumps(answer)
    flow = cloud.folder / "dataflows/cloud.yaml"
    flow.write_text(flow.read_text().replace(cloud.place.url, "s3://no-such-bucket"))
    code, (answer,) = cloud.run("run", "cloud")
    assert (code, answer["error"]["code"]) == (1, "source_missing")


@pytest.mark.full
def test_doctor_tells_a_server_that_overwrites_others_commits(cloud: Cloud, tmp_path: Path) -> None:
    def commits() -> dict[str, Any]:
        _, answer = cloud.run("doctor")
        return next(check for check in answer["checks"] if check["check"] == "commits to S3")

    assert commits()["ok"]
    without = SparkEngine(master="local[1]", conf=QUICK, cache=cache_folder())
    with connect_server(without, tmp_path / "connect.log", patience=600) as cloud.remote:
        result = commits()
    assert (result["ok"], f"--jars {JAR} --conf {SETTING}={CLASS}" in result["found"]) == (False, True)


@pytest.mark.parametrize(
    ("form", "name", "data"),
    [
        ("excel", "date=2024-01-02/1 é%[x]+.xlsx", xlsx([["id"], [1], [2]])),
        ("ndjson", "date=2024-01-02/1.ndjson.zst", pa.compress(b'{"id": 1}\n{"id": 2}\n', "zstd", asbytes=True)),
        ("ndjson", "date=2024-01-02/1 é%[x]+.ndjson.gz", gzip.compress(b'{"id": 1}\nbad\n{"id": 2}\n', mtime=0)),
        ("debezium", "date=2024-01-02/1 é%[x]+.json.gz", gzip.compress(lines([event("r", 1, {"id": 1}), event("c", 2, {"id": 2})]).encode(), mtime=0)),
    ],
    ids=["excel", "zstd", "a bad record", "events"],
)  # fmt: skip
@pytest.mark.full
def test_packed_files_of_a_bucket_are_read_unstaged(cloud: Cloud, form: str, name: str, data: bytes) -> None:
    flow = cloud.folder / "dataflows/cloud.yaml"
    aside = "max_bad_records: 1\n" if form == "ndjson" else ""
    flow.write_text(flow.read_text().replace("format: ndjson", f"format: {form}") + aside)
    obstore.put(cloud.place.child("landing").store, name, data)
    code, (first,) = cloud.run("run", "cloud")
    assert (code, first["rows"], first["error"]) == (0, 2, None)
    assert cloud.rows() == [(1, "2024-01-02", name), (2, "2024-01-02", name)]
    assert [meta for page in cloud.place.child("lake/_staging").store.list() for meta in page] == []


@dataclass
class OwnTable:
    """A table in a bucket behind a proxy, and a session that writes to it."""

    place: Place
    spark: SparkSession
    record: Record

    def write(self, app: str, number: int, *ids: int) -> None:
        """Append rows under a number of a dataflow."""
        table = DeltaLakeTable(self.place, ("unit",))
        rows = self.spark.createDataFrame(
            [(each, f"a b:c%/{each % 2}") for each in ids], "id long, unit string"
        )
        tag = Tag(app, number, f"owner {number} of {app}")
        table.write(rows.coalesce(1), Append(), tag, "{}", base=table.tip(app).version)

    @property
    def rows(self) -> list[tuple[int, str]]:
        """As Spark reads them."""
        read = self.spark.read.format("delta").load(self.place.spark_url)
        return sorted((row["id"], row["unit"]) for row in read.collect())

    @property
    def commits(self) -> list[tuple[bool, str]]:
        """Whether each commit was put conditionally, and its name, in the order of the requests."""
        log = [(path, conditional) for path, conditional in self.record.puts if "/_delta_log/0" in path]
        return [(conditional, path.rpartition("/")[2]) for path, conditional in log]

    @property
    def engines(self) -> set[str]:
        """What has made the commits."""
        log = DeltaLog(self.place)
        return {
            log._text(version).split(b'"engineInfo":"')[1].split(b'"')[0][:8].decode()
            for version in log.versions(None)
        }

    @property
    def stray_files(self) -> set[str]:
        """Data files that no version knows."""
        paths = {meta["path"] for page in self.place.store.list() for meta in page}
        return {path.rpartition("/")[2] for path in paths if path.endswith(".parquet")} - DeltaLog(
            self.place
        ).files()


@pytest.fixture
def own_table(seaweed: Seaweed, s3_server: str) -> Iterator[OwnTable]:
    with seaweed.bucket() as bucket, serving(CountingProxy(seaweed.port)) as proxy:
        place = replace(bucket.child("lake/t"), connection=seaweed.through(proxy.port))
        engine = SparkEngine(remote=s3_server, places=(place,))
        yield OwnTable(place, engine.session(), proxy.record)


def _expected(*ids: int) -> list[tuple[int, str]]:
    return [(each, f"a b:c%/{each % 2}") for each in sorted(ids)]


def test_each_commit_is_a_conditional_put_of_files_that_were_never_renamed(own_table: OwnTable) -> None:
    own_table.write("app", 1, 1, 2)
    own_table.write("app", 2, 3, 4)
    own_table.write("app", 2, 3, 4)
    assert own_table.rows == _expected(1, 2, 3, 4)
    assert own_table.commits == [(True, f"{version:020d}.json") for version in range(2)]
    assert (own_table.engines, own_table.stray_files) == ({"delta-rs"}, set())
    copies = [
        path for method, path in own_table.record.requests if method == "PUT" and "copy" in path.lower()
    ]
    assert copies == []


@pytest.mark.parametrize("version", [0, 1])
def test_a_commit_whose_answer_is_lost_lands_once(own_table: OwnTable, version: int) -> None:
    for number in range(1, version + 1):
        own_table.write("app", number, number)
    own_table.record.lose_at, own_table.record.lose = f"_delta_log/{version:020d}.json", 1
    own_table.write("app", version + 1, 7)
    assert own_table.record.lose == 0
    assert own_table.rows == _expected(*range(1, version + 1), 7)
    assert (len(DeltaLog(own_table.place).versions(None)), own_table.stray_files) == (version + 1, set())


def test_of_two_drivers_that_commit_at_once_each_lands_once(own_table: OwnTable) -> None:
    own_table.write("app 0", 1, 0)

    def driver(which: int) -> None:
        for number in (2, 3, 4):
            # Two of the drivers have each app id, as a run and the recovery of that run have.
            own_table.write(f"app {which % 2}", number, 10 * (which % 2) + number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(driver, range(4)))
    assert own_table.rows == _expected(0, 2, 3, 4, 12, 13, 14)
    assert len(DeltaLog(own_table.place).versions(None)) == 7
    assert own_table.stray_files == set()


@dataclass
class ParquetLoads:
    """A Parquet table in a bucket behind a proxy, and a session that writes to it."""

    place: Place
    spark: SparkSession
    record: Record

    def write(self, number: int, load: Load, *ids: int, app: str = "app") -> None:
        """Load rows under a number."""
        table = ParquetTable(self.place, ("unit",))
        rows = self.spark.createDataFrame(_expected(*ids), "id long, unit string")
        tag = Tag(app, number, f"owner {number} of {app}")
        table.write(rows.coalesce(1), load, tag, "{}", base=table.tip(app).version)

    def follow_up(self) -> None:
        """Have files moved."""
        ParquetTable(self.place).after_append(TableCommit(None), "flow")

    def rows(self, version: int) -> list[tuple[int, str]]:
        """Of a version, by the product's own reader."""
        read = ParquetTable(self.place).contents.read(self.spark, version)
        return sorted((row["id"], row["unit"]) for row in read.collect())

    @property
    def plain_rows(self) -> list[tuple[int, str]]:
        """As a reader sees them that knows nothing of lists."""
        read = self.spark.read.parquet(self.place.spark_url)
        return sorted((row["id"], row["unit"]) for row in read.collect())


@pytest.fixture
def parquet(seaweed: Seaweed, s3_server: str) -> Iterator[ParquetLoads]:
    with seaweed.bucket() as bucket, serving(CountingProxy(seaweed.port)) as proxy:
        place = replace(bucket.child("lake/bronze/t"), connection=seaweed.through(proxy.port))
        engine = SparkEngine(remote=s3_server, places=(place,))
        yield ParquetLoads(place, engine.session(), proxy.record)


@pytest.mark.full
def test_files_of_a_parquet_table_are_copied_and_versions_stay(parquet: ParquetLoads) -> None:
    versions = [_expected(1, 2), _expected(1, 2, 3, 4), _expected(2, 4, 5)]
    odd = Among("unit", (_expected(1)[0][1],))
    loads: tuple[Load, ...] = (Append(), Append(), Replace(odd))
    for number, (load, ids) in enumerate(zip(loads, ((1, 2), (3, 4), (5,)), strict=True), 1):
        parquet.write(number, load, *ids)
        assert parquet.rows(number) == versions[number - 1]
        if number != 1:  # the second write finishes what the first has left
            parquet.follow_up()
    assert parquet.plain_rows == versions[-1]
    assert [parquet.rows(number) for number in (1, 2, 3)] == versions
    table = ParquetTable(parquet.place)
    assert [row["id"] for row in table.contents.distinct_rows(["id"])] == [2, 4, 5]
    assert table.contents.distinct_texts("unit") == {unit for _, unit in versions[-1]}
    head = table.head(None, "app")
    assert (head.missing_files, head.foreign_files, head.highest_tag) == ((), (), 3)
    puts = [conditional for path, conditional in parquet.record.puts if "/_strandline/0" in path]
    assert puts == [True] * 3
    later = datetime.now(UTC) + timedelta(days=8)
    maintenance = ParquetMaintenance(CommitLog(parquet.place), Placement.of(parquet.place), later)
    care = [maintenance.vacuum(lambda: parquet.spark).deleted for _ in range(2)]
    assert (care, parquet.plain_rows) == ([2, 0], versions[-1])


def test_a_list_whose_answer_is_lost_lands_once(parquet: ParquetLoads) -> None:
    parquet.write(1, Append(), 1)
    parquet.record.lose_at, parquet.record.lose = f"_strandline/{2:020d}.json", 1
    parquet.write(2, Append(), 2)
    assert parquet.record.lose == 0
    parquet.write(2, Append(), 2)
    parquet.follow_up()
    assert (parquet.rows(2), parquet.plain_rows) == (_expected(1, 2), _expected(1, 2))


def test_of_two_drivers_that_put_lists_at_once_each_lands_once(parquet: ParquetLoads) -> None:
    parquet.write(1, Append(), 0, app="app 0")

    def driver(which: int) -> None:
        for number in (2, 3):
            parquet.write(number, Append(), 10 * (which % 2) + number, app=f"app {which % 2}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(driver, range(4)))
    parquet.follow_up()
    assert parquet.rows(5) == parquet.plain_rows == _expected(0, 2, 3, 12, 13)


@pytest.mark.postgres
@pytest.mark.full
def test_a_database_knows_iceberg_in_a_bucket(seaweed: Seaweed, s3_server: str, postgres: Postgres) -> None:
    with seaweed.bucket() as bucket:
        place = replace(bucket.child("lake/bronze/t"), catalog=catalog_of(postgres))
        exercise(SparkEngine(remote=s3_server, places=(place,)).session(), place)


@pytest.mark.full
def test_a_server_knows_iceberg_in_a_bucket(seaweed: Seaweed, s3_server: str, tmp_path: Path) -> None:
    with seaweed.bucket() as bucket:
        spark = SparkEngine(remote=s3_server, places=(bucket,)).session()
        with rest_catalog(tmp_path, bucket, spark) as catalog:
            exercise(spark, replace(bucket.child("lake/bronze/t"), catalog=catalog))


@pytest.mark.full
@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_changes_of_a_table_in_a_bucket_are_read_through_a_log_in_it(
    seaweed: Seaweed, s3_server: str, tmp_path: Path, format_: str
) -> None:
    with seaweed.bucket() as bucket, ExitStack() as servers:
        place = bucket.child("lake/bronze/t")
        spark = SparkEngine(remote=s3_server, places=(bucket,)).session()
        table: DeltaLakeTable | IcebergTable = DeltaLakeTable(place)
        name, location = f"delta.`{place.spark_url}`", ""
        properties = "'delta.enableDeletionVectors' = 'true'"
        if format_ == "iceberg":
            catalog = servers.enter_context(rest_catalog(tmp_path, bucket, spark))
            place = replace(place, catalog=catalog)
            table, name = IcebergTable(place), name_in_sql(spark, place)
            location = f"LOCATION '{place.spark_url}'"
            properties = "'format-version' = '2', 'write.delete.mode' = 'merge-on-read'"
        spark.sql(
            f"CREATE TABLE {name} (id bigint, unit string) USING {format_} {location} TBLPROPERTIES ({properties})"
        )
        spark.sql(f"INSERT INTO {name} SELECT id, 'a b%' FROM range(0, 3, 1, 1)")
        spark.sql(f"DELETE FROM {name} WHERE id = 1")
        commits = [commit for commit in table.commits.since(None).commits if commit.files]
        table.commits.check_files(commits)
        changes = table.commits.net_changes(spark, commits, lambda: bucket.child("lake/_staging/x"))
        assert sorted((row[CHANGE], row["id"], row["unit"]) for row in changes.collect()) == [
            ("delete", 1, "a b%"),
            *[("insert", id_, "a b%") for id_ in range(3)],
        ]
