"""Commits of tables with what Delta, Iceberg and their catalogs offer (docs/reference/offsets.md)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from resources.spark.engine import SparkEngine
from resources.tables.registry import find_table
from tests.integration.conftest import MakeFeed
from tests.support.catalogs import known_to_database, known_to_server
from tests.support.commits import UPSTREAMS, Upstream, copying, rows_of
from tests.support.equality import delete_by_values
from tests.support.feed import Feed
from tests.support.iceberg import foreign_table

if TYPE_CHECKING:
    from resources.connections.iceberg_rest import RestCatalogServer
    from scripts.postgres import Postgres

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.full]

KEYED: dict[str, Any] = {"load": "merge_upsert", "merge_keys": ["id"]}


@pytest.fixture
def make(tmp_path: Path, engine: SparkEngine) -> Any:
    def made(kind: str = "delta", **keys: Any) -> tuple[Feed, Upstream]:
        feed = Feed(tmp_path / "project", engine, copying(**keys))
        return feed, UPSTREAMS[kind](feed.folder / "lake", engine)

    return made


def test_features_that_come_and_go_in_a_delta_table_change_no_row(make: Any, engine: SparkEngine) -> None:
    feed, upstream = make(target={**KEYED, "schema_mode": "merge"})
    spark = engine.session()
    upstream.folder.parent.mkdir(parents=True)

    def change(*statements: str) -> None:
        for statement in statements:
            spark.sql(statement.format(t=f"delta.`{upstream.folder}`")).collect()

    def rows(folder: Path, *columns: str) -> list[tuple[Any, ...]]:
        table = spark.read.format("delta").load(str(folder)).select("id", "v", "n", *columns)
        return sorted((tuple(row) for row in table.collect()), key=str)

    properties = (
        "delta.columnMapping.mode='name'",
        "delta.enableDeletionVectors='true'",
        "delta.enableTypeWidening='true'",
    )
    change(
        f"CREATE TABLE {{t}} (id BIGINT, v STRING, n INT) USING delta TBLPROPERTIES ({', '.join(properties)})",
        "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)",
    )
    feed.load()
    for statements in (
        ("DELETE FROM {t} WHERE id = 1", "UPDATE {t} SET v = 'bb' WHERE id = 2"),
        (
            "ALTER TABLE {t} SET TBLPROPERTIES (delta.enableChangeDataFeed = 'true')",
            "UPDATE {t} SET v = 'cc' WHERE id = 3",
            "ALTER TABLE {t} SET TBLPROPERTIES (delta.enableChangeDataFeed = 'false')",
            "UPDATE {t} SET v = 'ccc' WHERE id = 3",
            "INSERT INTO {t} VALUES (4, 'd', 4)",
        ),
        ("ALTER TABLE {t} ALTER COLUMN n TYPE BIGINT", "INSERT INTO {t} VALUES (5, 'e', 50000000000)"),
        (
            "ALTER TABLE {t} SET TBLPROPERTIES (delta.enableRowTracking = 'true')",
            "UPDATE {t} SET n = n + 1 WHERE id = 5",
            "OPTIMIZE {t}",
            "DELETE FROM {t} WHERE id = 2",
        ),
        ("ALTER TABLE {t} ADD COLUMN w STRING", "INSERT INTO {t} VALUES (6, 'f', 6, 'w')"),
    ):
        change(*statements)
        feed.load()
        assert rows(feed.table) == rows(upstream.folder), statements
    assert rows(feed.table, "w") == rows(upstream.folder, "w")


@pytest.mark.parametrize("feed_of_changes", ["", ", delta.enableChangeDataFeed='true'"])
def test_rows_from_before_a_column_mapping_keep_their_values_under_a_new_name(
    make: Any, engine: SparkEngine, feed_of_changes: str
) -> None:
    feed, upstream = make(target={**KEYED, "schema_mode": "merge"})
    upstream.append((1, "a"), (2, "b"))
    feed.load()
    mapped = f"delta.columnMapping.mode='name', delta.minReaderVersion='2', delta.minWriterVersion='5'{feed_of_changes}"
    upstream.append((3, "c"))
    for statement in (
        "UPDATE {t} SET v = 'bb' WHERE id = 2",
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({mapped})",
        "ALTER TABLE {t} RENAME COLUMN v TO w",
        "UPDATE {t} SET w = 'aa' WHERE id = 1",
    ):
        engine.session().sql(statement.format(t=f"delta.`{upstream.folder}`")).collect()
    feed.load()
    assert feed.rows("id", "w") == [(1, "aa"), (2, "bb"), (3, "c")]


def test_a_shallow_clone_is_read_with_the_files_of_its_source(make: Any, engine: SparkEngine) -> None:
    feed, upstream = make(target=KEYED)
    spark, source = engine.session(), Upstream(feed.folder / "other", engine)
    source.append((1, "a"), (2, "b"), (3, "c"))
    upstream.folder.parent.mkdir(parents=True)
    spark.sql(f"CREATE TABLE delta.`{upstream.folder}` SHALLOW CLONE delta.`{source.folder}`").collect()
    feed.load()
    spark.sql(f"UPDATE delta.`{upstream.folder}` SET v = 'x' WHERE id = 1").collect()
    spark.sql(f"DELETE FROM delta.`{upstream.folder}` WHERE id = 2").collect()
    feed.load()
    assert rows_of(feed) == [(1, "x"), (3, "c")]


def test_commits_of_an_iceberg_branch_are_read_when_it_becomes_the_table(
    make: Any, engine: SparkEngine
) -> None:
    feed, upstream = make("iceberg", target=KEYED)
    upstream.append((1, "a"), (2, "b"))
    feed.load()
    spark, name = engine.session(), foreign_table(engine.session(), upstream.folder)
    spark.sql(f"ALTER TABLE {name} CREATE BRANCH work").collect()
    spark.sql(f"INSERT INTO {name}.branch_work VALUES (3, 'c')").collect()
    spark.sql(f"DELETE FROM {name}.branch_work WHERE id = 1").collect()
    assert feed.load().status == "nothing"
    catalog, _, table = name.partition(".")
    spark.sql(f"CALL {catalog}.system.fast_forward('{table.replace('`', '')}', 'main', 'work')").collect()
    feed.load()
    assert rows_of(feed) == upstream.rows() == [(2, "b"), (3, "c")]


def test_equality_deletes_of_another_engine_delete_their_keys(make: Any) -> None:
    feed, upstream = make("iceberg", target=KEYED)
    upstream.append((1, "a"), (2, "b"))
    feed.load()
    delete_by_values(upstream.folder, "id", [1])
    feed.load()
    assert rows_of(feed) == [(2, "b")]
    upstream.append((1, "again"))
    feed.load()
    assert rows_of(feed) == [(1, "again"), (2, "b")]


def test_dataflows_that_share_a_table_delete_only_rows_of_their_own(make: Any, engine: SparkEngine) -> None:
    shared = {**KEYED, "shared": True, "table": "silver/both"}
    feed, upstream = make(target=shared)
    beside = Upstream(feed.folder / "lake", engine, "bronze/other")
    other = Feed(feed.folder, engine, copying(source={"table": beside.name}, target=shared), name="second")
    upstream.append((1, "a"), (2, "b"))
    beside.append((1, "A"), (3, "C"))
    feed.load()
    other.load()
    upstream.delete(1)
    beside.update(3, "CC")
    feed.load()
    other.load()
    assert feed.rows("id", "v", "_dataflow") == [(1, "A", "second"), (2, "b", "flow"), (3, "CC", "second")]


def follow(first: Feed) -> None:
    """Read the commits of a table of files into another one of the same catalog."""
    table = f"silver/copy_{uuid4().hex[:8]}"
    keys = copying(
        source={"table": first.dataflow.table}, target={**KEYED, "format": "iceberg", "table": table}
    )
    second = Feed(first.folder, first.engine, keys, first.settings, first.environment, name="second")
    first.put("1.ndjson", 1, 2, 3)
    first.load()
    second.load()
    first.put("2.ndjson", 4)
    first.load()
    first.command("delete", first.name, "--where", "id = 2", "--reason", "r", "--yes")
    second.load()
    for feed in (first, second):
        contents = find_table(feed.platform.lake.child(feed.dataflow.table)).contents
        assert [row["id"] for row in contents.distinct_rows(["id"])] == [1, 3, 4]


def test_the_position_stays_when_the_lake_moves(make_feed: MakeFeed) -> None:
    first = make_feed(target={"format": "iceberg"})
    keys = copying(source={"table": "bronze/flow"}, target={**KEYED, "format": "iceberg"})
    second = Feed(first.folder, first.engine, keys, name="second")
    first.put("1.ndjson", 1, 2)
    first.load()
    second.load()
    (first.folder / "lake").rename(first.folder / "moved")
    first, second = (
        Feed(feed.folder, feed.engine, feed.definition, {"lake": "./moved"}, name=feed.name)
        for feed in (first, second)
    )
    first.command("relocate", "--yes")
    assert second.load().status == "nothing"
    first.put("2.ndjson", 3)
    first.load()
    second.load()
    contents = find_table(second.platform.lake.child("silver/copy")).contents
    assert [row["id"] for row in contents.distinct_rows(["id"])] == [1, 2, 3]


@pytest.mark.postgres
def test_commits_of_tables_in_a_database_are_read(postgres: Postgres, make_feed: MakeFeed) -> None:
    follow(known_to_database(make_feed(target={"format": "iceberg"}), postgres))


def test_commits_of_tables_at_a_server_are_read(rest: RestCatalogServer, make_feed: MakeFeed) -> None:
    follow(known_to_server(make_feed(target={"format": "iceberg"}), rest))
