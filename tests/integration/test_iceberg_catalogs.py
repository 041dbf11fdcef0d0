"""Iceberg tables that a database or a server knows, in folders and in buckets (docs/reference/iceberg.md, Catalogs)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from partitions.errors import TargetError
from partitions.loads import Append, Load, Upsert
from resources.connections.iceberg_rest import RestCatalogServer
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.listing.removal import is_empty
from resources.spark.engine import SparkEngine
from resources.tables.contract.commits import Tag
from resources.tables.contract.relocation import TableMoved
from resources.tables.iceberg import jdbc_catalog
from resources.tables.iceberg.table import IcebergTable
from resources.tables.moving import move_folder
from resources.tables.registry import PACKAGES, find_table, open_table
from tests.integration.conftest import MakeFeed
from tests.support.catalogs import catalog_of, known_to_database, known_to_server
from tests.support.gates import until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from scripts.postgres import Postgres
    from tests.support.feed import Feed

APP = "app"


@pytest.fixture
def catalog(postgres: Postgres) -> JdbcConnection:
    return catalog_of(postgres)


def _load(
    spark: SparkSession, place: Place, number: int, *rows: tuple[int, str], load: Load | None = None
) -> None:
    table = open_table("iceberg", place)
    frame = spark.createDataFrame(list(rows), "id long, unit string")
    tag = Tag(APP, number, f"owner {number}")
    table.write(frame, load or Append(), tag, str(number), base=table.tip(APP).version)


def _rows(spark: SparkSession, place: Place) -> list[Any]:
    table = find_table(place)
    return sorted(tuple(row) for row in table.contents.read(spark, table.contents.newest_version()).collect())


def exercise(spark: SparkSession, place: Place) -> None:
    """Make a table, load into it by each way of a commit, fence a number, move the tag, and read it without Spark."""
    assert not open_table("iceberg", place).exists()
    _load(spark, place, 1, (1, "a"))
    _load(spark, place, 2, (2, "b"))
    _load(spark, place, 3, (2, "c"), (3, "c"), load=Upsert(("id",), ()))
    table = IcebergTable(place)
    table.give_up(spark, Tag(APP, 4, "fence", gives_up=True), "3", None)
    _load(spark, place, 4, (9, "zombie"))
    commit = table.head(None, APP).find_tagged_commit(3)
    assert commit is not None
    table.after_append(commit.commit, "flow")
    _load(spark, place, 5, (5, "e"))
    metadata = table._catalog.newest()
    assert metadata is not None
    assert metadata.refs["strandline_flow"]["snapshot-id"] == int(str(commit.version).partition("-")[2])
    assert _rows(spark, place) == [(1, "a"), (2, "c"), (3, "c"), (5, "e")]
    assert [row["id"] for row in table.contents.distinct_rows(["id"])] == [1, 2, 3, 5]
    assert (table.contents.count_rows(), table.tip(APP).highest_tag) == (4, 5)
    for _ in range(2):  # as a table aside is; again does no harm
        IcebergTable(place).remove(lambda: spark)
        assert not IcebergTable(place).exists()
    _load(spark, place, 1, (7, "made again"))
    assert _rows(spark, place) == [(7, "made again")]


@pytest.mark.postgres
def test_a_table_in_a_folder_is_known_to_a_database(
    catalog: JdbcConnection, engine: SparkEngine, tmp_path: Path
) -> None:
    exercise(engine.session(), Place(str(tmp_path / "lake" / "bronze" / "t"), catalog=catalog))


@pytest.mark.postgres
def test_idle_connections_are_ended_and_opened_again(
    postgres: Postgres, engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(str(tmp_path / "lake" / "bronze" / "t"), catalog=catalog_of(postgres))

    def backends() -> set[int]:
        query = "SELECT pid FROM pg_stat_activity WHERE application_name = %s"
        return {row[0] for row in postgres.ask(query, jdbc_catalog._APPLICATION)}

    others = backends()
    first = engine.session()
    _load(first, place, 1, (1, "a"))
    left = backends() - others
    assert left
    monkeypatch.setattr(jdbc_catalog, "IDLE_SECONDS", 0)
    _load(engine.session(), place, 2, (2, "b"), load=Upsert(("id",), ()))
    until(lambda: not left & backends())
    _load(first, place, 3, (2, "c"), load=Upsert(("id",), ()))
    assert _rows(first, place) == [(1, "a"), (2, "c")]


def _replay_aside(feed: Feed) -> None:
    """Promote one replay and drop another: rows are swapped, and the catalog forgets both tables."""
    for day in (1, 2, 3):
        feed.put(f"2026-01-0{day}/{day}.ndjson", day)
    feed.load()
    feed.put("2026-01-02/2.ndjson", 22)
    for command in ("promote", "drop"):
        days = ("--start", "2026-01-02", "--end", "2026-01-03")
        feed.command("replay", feed.name, *days, "--into", "aside/day")
        aside = feed.platform.lake.child("aside/day")
        assert [row["id"] for row in find_table(aside).contents.distinct_rows(["id"])] == [22]
        feed.command(command, feed.name, "aside/day", "--reason", "r", "--yes")
        assert not open_table("iceberg", aside).exists()
        found = find_table(feed.platform.lake.child(feed.dataflow.table))
        assert [row["id"] for row in found.contents.distinct_rows(["id"])] == [1, 3, 22]
        assert found.contents.count_rows() == 3


@pytest.mark.full
@pytest.mark.postgres
def test_a_replay_of_a_table_in_a_database_is_promoted(postgres: Postgres, make_feed: MakeFeed) -> None:
    _replay_aside(known_to_database(make_feed(target={"format": "iceberg"}), postgres))


@pytest.mark.full
def test_a_replay_of_a_table_at_a_server_is_promoted(rest: RestCatalogServer, make_feed: MakeFeed) -> None:
    _replay_aside(known_to_server(make_feed(target={"format": "iceberg"}), rest))


@pytest.mark.full
def test_a_table_in_a_folder_is_known_to_a_server(
    rest: RestCatalogServer, engine: SparkEngine, tmp_path: Path
) -> None:
    exercise(engine.session(), Place(str(tmp_path / "lake" / "known" / "t"), catalog=rest))


def test_a_table_of_another_lake_that_a_server_knows_by_the_same_name_is_refused(
    rest: RestCatalogServer, engine: SparkEngine, tmp_path: Path
) -> None:
    mine, other = (Place(str(tmp_path / lake / "layer" / "t"), catalog=rest) for lake in ("mine", "other"))
    _load(engine.session(), mine, 1, (1, "a"))
    with pytest.raises(TargetError, match="has another table of this name"):
        open_table("iceberg", other).exists()
    assert _rows(engine.session(), mine) == [(1, "a")]


def test_a_server_that_does_not_answer_is_named_without_its_secrets(tmp_path: Path) -> None:
    server = RestCatalogServer("http://127.0.0.1:1", credential="me:hush-hush")
    with pytest.raises(TargetError, match=r"catalog http://127\.0\.0\.1:1") as failed:
        open_table("iceberg", Place(str(tmp_path / "bronze" / "t"), catalog=server)).exists()
    assert "hush" not in failed.value.message


@pytest.mark.full
@pytest.mark.postgres
def test_a_table_that_was_copied_in_a_bucket_is_relocated(
    postgres: Postgres, bucket: Place, spark_engine: SparkEngine
) -> None:
    lake = replace(bucket, catalog=catalog_of(postgres))
    old, new = (lake.child(f"{name}/bronze/t") for name in ("old", "new"))
    spark = spark_engine.with_places([lake], PACKAGES["iceberg"]).session()
    _load(spark, old, 1, (1, "a"))
    _load(spark, old, 2, (2, "b"))
    saved = bucket.child("saved")
    for page in list(bucket.store.list("old")):
        for meta in page:
            if not meta["path"].rpartition("/")[2].isalnum():  # objects of that name stand for folders
                bucket.store.copy(meta["path"], f"saved{meta['path'].removeprefix('old')}")
    move_folder(bucket, "saved", "new")
    assert is_empty(saved)
    table = IcebergTable(new)
    with pytest.raises(TableMoved):
        table.tip(APP)
    relocation = table.relocate()
    assert relocation is not None
    assert (relocation.rows, relocation.files, relocation.versions) == (2, 2, 2)
    assert table.relocate() is None
    _load(spark, new, 3, (3, "c"))
    _load(spark, old, 3, (4, "d"))
    assert _rows(spark, new) == [(1, "a"), (2, "b"), (3, "c")]
    assert _rows(spark, old) == [(1, "a"), (2, "b"), (4, "d")]
