"""The column of commits of an Iceberg table, whatever other writers have done to its properties and columns (docs/reference/iceberg.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from resources.connections.places import Place
from resources.spark.engine import SparkEngine
from resources.tables.iceberg.table import IcebergTable
from tests.integration.conftest import MakeFeed
from tests.support.feed import Feed
from tests.support.iceberg import foreign_table, iceberg_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def spark(spark_engine: SparkEngine) -> SparkSession:
    """A session of another writer."""
    return spark_engine.session()


def loaded(make_feed: MakeFeed, **target: Any) -> Feed:
    """A dataflow that has loaded a file."""
    feed = make_feed(target={"format": "iceberg", **target})
    feed.put("1.ndjson", 1)
    feed.load()
    return feed


@pytest.mark.parametrize(
    "load", [{"load": "append"}, {"load": "merge_upsert", "merge_keys": ["id"]}], ids=["append", "upsert"]
)
def test_a_table_whose_property_another_writer_has_removed_is_loaded_into_as_before(
    make_feed: MakeFeed, spark: SparkSession, load: dict[str, Any]
) -> None:
    feed = loaded(make_feed, **load)
    name = foreign_table(spark, feed.table)
    spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('strandline.commit-column')").collect()
    feed.put("2.ndjson", 2)
    feed.load()
    assert sorted(row["id"] for row in iceberg_rows(feed.table, ["id"])) == [1, 2]
    assert "_commit" not in IcebergTable(Place(str(feed.table))).contents.columns()


@pytest.mark.remedy("commit_column_missing", "state reset --replace")
def test_a_dropped_commit_column_is_told_and_loaded_again(make_feed: MakeFeed, spark: SparkSession) -> None:
    feed = loaded(make_feed)
    spark.sql(f"ALTER TABLE {foreign_table(spark, feed.table)} DROP COLUMN _commit").collect()
    feed.put("2.ndjson", 2)
    error = feed.fail()
    assert (error.code, feed.open_intent) == ("commit_column_missing", None)
    feed.decide("reset", "--replace")
    feed.load()
    assert sorted(row["id"] for row in iceberg_rows(feed.table, ["id"])) == [1, 2]


@pytest.mark.parametrize("has_rows", [True, False])
def test_another_writers_table_is_refused_before_an_intent(
    make_feed: MakeFeed, spark: SparkSession, has_rows: bool
) -> None:
    feed = make_feed(target={"format": "iceberg", "origin_columns": False})
    feed.put("1.ndjson", 1)
    name = foreign_table(spark, feed.table)
    spark.sql(f"CREATE TABLE {name} (id bigint) USING iceberg").collect()
    if has_rows:
        spark.sql(f"INSERT INTO {name} VALUES (9)").collect()
        refused = feed.cli("state", "set", feed.name, '{"path": "0.ndjson"}', "--reason", "x", "--yes")
        assert (refused.code, refused.error["code"], feed.newest) == (4, "commit_column_missing", None)
    error = feed.fail()
    assert (error.code, feed.open_intent, feed.newest) == ("commit_column_missing", None, None)
    feed.decide("reset", "--replace")
    feed.load()
    assert iceberg_rows(feed.table, ["id"]) == [{"id": 1}]


def test_another_writers_column_of_this_name_is_read(make_feed: MakeFeed, spark: SparkSession) -> None:
    feed = make_feed(
        source={"type": "table", "table": "silver/theirs"},
        watermark={"type": "column", "columns": ["id"]},
        target={"load": "append", "origin_columns": False},
        sql="SELECT id, _commit AS revision FROM input",
    )
    name = foreign_table(spark, feed.folder / "lake" / "silver" / "theirs")
    spark.sql(f"CREATE TABLE {name} USING iceberg AS SELECT 1L AS id, 'a1b2' AS _commit").collect()
    feed.load()
    assert feed.rows("id", "revision") == [(1, "a1b2")]
