"""A Spark that reads and writes in other stores than this process: nothing of it may be taken for rows that were loaded (docs/how-to/cluster.md)."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql.connect.client import SparkConnectClient

from partitions.errors import ConfigurationError, TargetError
from partitions.loads import Append
from resources.connections.places import Place, S3Connection
from resources.spark import background, bucket_stores
from resources.spark.background import keep_session_alive
from resources.spark.engine import SparkEngine
from resources.tables.contract.commits import Tag
from resources.tables.registry import open_table

APP = "app"


@pytest.mark.parametrize(
    ("kind", "partition_by"), [("delta", ()), ("delta", ("unit",)), ("parquet", ()), ("parquet", ("unit",))]
)
@pytest.mark.each_case
def test_rows_that_spark_has_written_elsewhere_are_no_commit_without_rows(
    engine: SparkEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    partition_by: tuple[str, ...],
) -> None:
    spark, folder = engine.session(), tmp_path / "t"

    def write(number: int, *rows: Any) -> None:
        table = open_table(kind, Place(str(folder)), partition_by)
        given = spark.createDataFrame(list(rows), "id long, unit string")
        table.write(given, Append(), Tag(APP, number, f"owner {number}"), "{}", base=table.tip(APP).version)

    write(1, (1, "a"))
    with monkeypatch.context() as patch:
        # As if the folder was one of Spark's own machine.
        patch.setattr(Place, "spark_url", property(lambda place: f"{place.url}-on-another-machine"))
        with pytest.raises(
            TargetError, match="expected the files that Spark has just written, found none"
        ) as raised:
            write(2, (2, "a"))
    assert raised.value.code == "files_missing"
    assert open_table(kind, Place(str(folder))).tip(APP).highest_tag == 1
    write(2, (2, "a"))
    write(3)
    assert (
        open_table(kind, Place(str(folder))).contents.count_rows(),
        open_table(kind, Place(str(folder))).tip(APP).highest_tag,
    ) == (2, 3)


def _in(endpoint: str, bucket: str, key: str = "k") -> Place:
    return Place(
        f"s3://{bucket}/lake", S3Connection(endpoint=endpoint, access_key_id=key, secret_access_key="s")
    )


def test_a_bucket_known_in_another_store_stops(engine: SparkEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = f"b-{uuid4().hex[:8]}"
    engine.with_places([_in("http://one:9000", bucket)]).session()
    engine.with_places([_in("http://one:9000/", bucket, "another key")]).session()
    for knows in (bucket_stores._opened, {}):  # by this process, and by the server alone
        monkeypatch.setattr(bucket_stores, "_opened", knows)
        with pytest.raises(
            ConfigurationError,
            match=f"bucket {bucket} of http://two:9000: this Spark process has already opened a bucket of this name in",
        ):
            engine.with_places([_in("http://two:9000", bucket)]).session()


def test_a_dataflow_reaches_a_bucket_in_one_way(engine: SparkEngine) -> None:
    bucket = f"b-{uuid4().hex[:8]}"
    two = [_in("http://one:9000", bucket), _in("http://two:9000", bucket)]
    with pytest.raises(ConfigurationError, match=f"bucket {bucket}: expected one connection"):
        engine.with_places(two).session()


def test_a_session_is_asked_while_rows_are_read(engine: SparkEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    session, asked = engine.session(), Event()
    ask = SparkConnectClient.config

    def heard(client: SparkConnectClient, *given: Any) -> Any:
        asked.set()
        return ask(client, *given)

    monkeypatch.setattr(SparkConnectClient, "config", heard)
    monkeypatch.setattr(background, "AWAKE_SECONDS", 0.01)
    with keep_session_alive(lambda: session):
        assert asked.wait(20)
