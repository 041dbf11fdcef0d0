"""A source that was set back stops with choices: another table under the name, or rows that end below the watermark (docs/reference/columns.md)."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from partitions.errors import NeedsDecision
from resources.kinds.column.opening import column_look
from resources.spark.engine import SparkEngine
from scripts import postgres as pg
from tests.support.columns import (
    BY_TIME,
    REPLACED,
    Columns,
    PostgresRows,
    at,
    on_lake,
    on_postgres,
    read_as_other_user,
)
from tests.support.databases import OnMariaDB
from tests.support.followed import follow
from tests.support.iceberg import foreign_table
from tests.support.mariadb import MariaDB
from tests.support.window_feed import LakeTable

BY_ID = {"type": "column", "columns": ["id"]}


@pytest.fixture
def table(postgres: pg.Postgres) -> PostgresRows:
    table = PostgresRows(postgres, indexed="id")
    table.put(*[(number, at(number), number) for number in range(1, 6)])
    return table


@pytest.fixture
def flow(tmp_path: Path, engine: SparkEngine, table: PostgresRows) -> Columns:
    flow = on_postgres(tmp_path, engine, table, watermark=BY_ID)
    flow.run()
    return flow


@pytest.mark.remedy("source_replaced", "state accept")
@pytest.mark.postgres
def test_a_table_made_again_stops_before_a_read_until_accepted(flow: Columns, table: PostgresRows) -> None:
    table.ask("DROP TABLE {s}.rows")
    table.ask("CREATE TABLE {s}.rows (id bigint PRIMARY KEY, at timestamptz, value bigint)")
    table.put(*[(number, at(number), 0) for number in range(1, 8)])
    error = flow.fail()
    assert (error.code, error.exit_code) == ("source_replaced", 4)
    assert "dropped and created again" in error.message
    assert "id = 5" in error.message
    with pytest.raises(NeedsDecision):
        column_look(flow.feed.platform, flow.feed.dataflow).has_new_rows(flow.feed.newest, datetime.now(UTC))
    flow.feed.decide("accept")
    assert flow.run().rows == 2
    assert flow.run().status == "nothing"


@pytest.mark.remedy("source_replaced", "state reset --replace")
@pytest.mark.postgres
def test_a_reset_reads_a_table_made_again_from_its_beginning(flow: Columns, table: PostgresRows) -> None:
    table.ask("DROP TABLE {s}.rows")
    table.ask("CREATE TABLE {s}.rows (id bigint PRIMARY KEY, at timestamptz, value bigint)")
    table.put((1, at(1), 0))
    assert flow.fail().code == "source_replaced"
    flow.feed.decide("reset", "--replace")
    flow.run()
    assert flow.ids == [1]


@pytest.mark.remedy("source_behind", "state accept", "state rewind --replace")
@pytest.mark.postgres
@pytest.mark.parametrize("change", ["DELETE FROM {s}.rows WHERE id > 2", "TRUNCATE {s}.rows"])
def test_rows_that_end_lower_stop_until_decided(flow: Columns, table: PostgresRows, change: str) -> None:
    table.ask(change)
    error = flow.fail()
    assert (error.code, error.exit_code) == ("source_behind", 4)
    assert ("rows up to id = 2" if "DELETE" in change else "no row") in error.message
    flow.feed.decide("accept")
    assert flow.run().status == "nothing"
    table.put((6, at(6), 6))
    assert flow.run().rows == 1
    table.ask("DELETE FROM {s}.rows WHERE id = 6")
    assert flow.fail().code == "source_behind"
    flow.feed.decide("rewind", "--to", "1", "--replace")
    table.put((6, at(6), 0))
    flow.run()
    assert (6, 0) in flow.feed.rows("id", "value")
    assert flow.ids == [1, 2, 3, 4, 5, 6]


@pytest.mark.postgres
@pytest.mark.parametrize(
    "change",
    [
        "VACUUM FULL {s}.rows",
        "ALTER TABLE {s}.rows ADD COLUMN more int",
        "REINDEX TABLE {s}.rows",
        "DELETE FROM {s}.rows WHERE id < 5",
    ],
)
def test_a_lost_table_is_no_set_back(flow: Columns, table: PostgresRows, change: str) -> None:
    table.ask(change)
    flow.feed.define(target={"load": "append", "schema_mode": "merge"})
    assert flow.run().status == "nothing"


@pytest.mark.postgres
def test_a_look_back_may_lose_rows_if_told(tmp_path: Path, engine: SparkEngine, table: PostgresRows) -> None:
    flow = on_postgres(tmp_path, engine, table, watermark=BY_ID | {"backward": {"by": 3}}, target=REPLACED)
    flow.run()
    table.ask("DELETE FROM {s}.rows WHERE id > 3")
    flow.run()
    assert flow.ids == [1, 2, 3]
    table.ask("DELETE FROM {s}.rows WHERE id > 1")
    assert flow.fail().code == "source_behind"
    flow.feed.define(watermark={"on_set_back": "ignore"})
    flow.run()
    assert flow.ids == [1, 2]


@pytest.mark.postgres
def test_a_user_without_privileges_can_be_told(
    tmp_path: Path, engine: SparkEngine, table: PostgresRows
) -> None:
    flow = on_postgres(tmp_path, engine, table, watermark=BY_ID)
    read_as_other_user(flow, table)
    flow.run()
    assert flow.feed.newest is not None
    assert '"server": "' in (flow.feed.newest.source or "")


@pytest.mark.full
def test_a_mariadb_table_made_again_stops(tmp_path: Path, engine: SparkEngine, mariadb: MariaDB) -> None:
    table = OnMariaDB(server=mariadb)
    flow = table.flow(tmp_path, engine, watermark=BY_ID)
    table.ask(f"INSERT INTO {table.name} (id) VALUES (1), (2)")
    flow.run()
    made = (
        f"SELECT CREATE_TIME FROM information_schema.TABLES WHERE '{table.name}' LIKE CONCAT('%', TABLE_NAME)"
    )
    before = table.ask(made)
    while table.ask(made) == before:  # it counts seconds
        table.ask(f"CREATE TABLE {table.name}_new LIKE {table.name}")
        table.ask(f"DROP TABLE {table.name}")
        table.ask(f"RENAME TABLE {table.name}_new TO {table.name}")
        table.ask(f"INSERT INTO {table.name} (id) VALUES (1), (2), (3)")
    assert flow.fail().code == "source_replaced"
    flow.feed.decide("accept")
    assert flow.run().rows == 1


def lake(tmp_path: Path, engine: SparkEngine, **definition: Any) -> tuple[Columns, LakeTable]:
    flow, table = on_lake(tmp_path, engine, watermark=BY_TIME, **definition)
    table.add(*[{"id": number, "at": at(number), "value": 0} for number in (1, 2)])
    table.add({"id": 3, "at": at(3), "value": 0})
    flow.run()
    return flow, table


@pytest.mark.full
@pytest.mark.remedy("source_behind", "state accept", "state rewind --replace", "state reset --replace")
@pytest.mark.remedy("source_replaced", "state accept", "state rewind --replace", "state reset --replace")
@pytest.mark.parametrize("act", ["restored", "made again"])
def test_each_choice_about_a_source_that_was_set_back_leads_on(
    tmp_path: Path, engine: SparkEngine, act: str
) -> None:
    flow, table = lake(tmp_path / "project", engine)
    if act == "restored":
        DeltaTable(str(table.path)).restore(0)
        code, accepted, read_again = "source_behind", [(1, 0), (2, 0), (3, 0)], [(1, 0), (2, 0)]
    else:
        shutil.rmtree(table.path)
        table.add(*[{"id": number, "at": at(number), "value": 1} for number in (1, 2, 3, 4)])
        code, accepted = "source_replaced", [(1, 0), (2, 0), (3, 0), (4, 1)]
        read_again = [(1, 1), (2, 1), (3, 1), (4, 1)]
    error = flow.fail()
    assert error.code == code
    choices, instead = error.choices, {"state accept": accepted}
    assert len(choices) == 3
    follow(flow.feed, choices, read_again, "id", "value", instead=instead, NUMBER="0")


def test_a_table_of_the_lake_that_was_made_again_stops(tmp_path: Path, engine: SparkEngine) -> None:
    flow, table = lake(tmp_path, engine)
    shutil.rmtree(table.path)
    table.add(*[{"id": number, "at": at(number), "value": 1} for number in (1, 2, 3, 4)])
    assert flow.fail().code == "source_replaced"


def test_a_restored_or_copied_table_of_the_lake_stops(tmp_path: Path, engine: SparkEngine) -> None:
    flow, table = lake(tmp_path, engine)
    copy = tmp_path / "copy"
    shutil.copytree(table.path, copy)
    DeltaTable(str(table.path)).restore(0)
    assert flow.fail().code == "source_behind"
    flow.feed.decide("accept")
    assert flow.run().status == "nothing"
    table.add({"id": 4, "at": at(4), "value": 0})
    flow.run()
    shutil.rmtree(table.path)
    shutil.copytree(copy, table.path)
    error = flow.fail()
    assert error.code == "source_replaced"
    assert "an older copy of it" in error.message


@pytest.mark.full
def test_an_iceberg_table_that_was_rolled_back_stops(tmp_path: Path, spark_engine: SparkEngine) -> None:
    flow, _ = on_lake(tmp_path, spark_engine, watermark=BY_ID)
    spark, path = spark_engine.session(), tmp_path / "lake" / "raw" / "rows"
    name = foreign_table(spark, path)

    def make(*numbers: int) -> None:
        spark.sql(f"CREATE TABLE {name} (id bigint) USING iceberg").collect()
        for number in numbers:
            spark.sql(f"INSERT INTO {name} VALUES ({number})").collect()

    make(1, 2, 3)
    flow.run()
    (first, *_) = [
        row[0]
        for row in spark.sql(f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at").collect()
    ]
    catalog, _, table = name.partition(".")
    spark.sql(f"CALL {catalog}.system.rollback_to_snapshot('{table.replace('`', '')}', {first})").collect()
    assert flow.fail().code == "source_behind"
    flow.feed.decide("accept")
    spark.sql(f"INSERT INTO {name} VALUES (4)").collect()
    flow.run()
    spark.sql(f"DROP TABLE {name}").collect()
    shutil.rmtree(path, ignore_errors=True)
    make(1, 2, 3, 4, 5)
    assert flow.fail().code == "source_replaced"
    assert flow.ids == [1, 2, 3, 4]
