"""Iceberg tables that a database knows, in folders and in buckets (docs/iceberg.md, Catalogs)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from partitions.load import Append, Load, Upsert
from resources.jdbc import JdbcConnection
from resources.places import Place
from resources.spark import SparkEngine
from resources.tables import find_table, open_table
from resources.tables.iceberg.table import IcebergTable
from resources.tables.table import Tag
from tests.integration.conftest import MakeFeed
from tests.support.crash_runner import WRITING, crash

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from scripts.postgres import Postgres

pytestmark = pytest.mark.postgres

APP = "app"


@pytest.fixture
def catalog(postgres: Postgres) -> JdbcConnection:
    return catalog_of(postgres)


def catalog_of(postgres: Postgres) -> JdbcConnection:
    """A database that knows tables."""
    return JdbcConnection.parse(
        f"jdbc:{postgres.url().replace(f'postgres:{postgres.password}@', '')}", "postgres", postgres.password
    )


def _load(
    spark: SparkSession, place: Place, number: int, *rows: tuple[int, str], load: Load | None = None
) -> None:
    table = open_table("iceberg", place)
    frame = spark.createDataFrame(list(rows), "id long, unit string")
    tag = Tag(APP, number, f"owner {number}")
    table.write(frame, load or Append(), tag, str(number), base=table.tip(APP).version)


def _rows(spark: SparkSession, place: Place) -> list[Any]:
    table = find_table(place)
    return sorted(tuple(row) for row in table.read(spark, table.newest_version()).collect())


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
    assert [row["id"] for row in table.distinct_rows(["id"])] == [1, 2, 3, 5]
    assert (table.count_rows(), table.tip(APP).tag) == (4, 5)


def test_a_table_in_a_folder_is_known_to_a_database(
    catalog: JdbcConnection, engine: SparkEngine, tmp_path: Path
) -> None:
    exercise(engine.session(), Place(str(tmp_path / "lake" / "bronze" / "t"), catalog=catalog))


def test_a_killed_run_into_a_table_that_a_database_knows_is_finished_by_the_next(
    postgres: Postgres, make_feed: MakeFeed
) -> None:
    feed = make_feed(target={"format": "iceberg"})
    connection = {"type": "jdbc", "url": {"env": "URL"}, "user": "postgres", "password": {"env": "PASSWORD"}}
    feed.settings = {
        "iceberg": {"catalog": "jdbc", "connection": "known"},
        "connections": {"known": connection},
    }
    url = f"jdbc:{postgres.url().replace(f'postgres:{postgres.password}@', '')}"
    feed.environment = {"URL": url, "PASSWORD": postgres.password}
    feed.__post_init__()
    feed.put("1.ndjson", 1)
    feed.load()
    feed.put("2.ndjson", 2, 3)
    crash(feed, WRITING)
    assert feed.load().status == "recovered"
    found = find_table(feed.platform.lake.child("bronze/flow"))
    assert [row["id"] for row in found.distinct_rows(["id"])] == [1, 2, 3]
    assert found.count_rows() == 3
