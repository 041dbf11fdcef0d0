"""Rows above a column watermark, from PostgreSQL and from tables of the lake: each once, and what a run reads is known before it reads."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from resources.spark import SparkEngine
from scripts import postgres as pg
from tests.support.columns import BY_TIME, REPLACED, PostgresRows, at, on_lake, on_postgres


@pytest.mark.postgres
def test_a_run_reads_rows_above_the_stored_value_once(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres
) -> None:
    table = PostgresRows(postgres)
    flow = on_postgres(tmp_path, engine, table)
    table.put((1, at(1), 10), (2, at(2), 20))
    assert flow.run().status == "committed"
    assert flow.run().status == "nothing"
    table.put((3, at(2, 1), 30))
    assert flow.run().rows == 1
    assert flow.ids == [1, 2, 3]
    assert flow.watermark == {"at": at(2, 1)}


@pytest.mark.postgres
def test_rows_of_the_same_value_are_read_together(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres
) -> None:
    table = PostgresRows(postgres)
    flow = on_postgres(tmp_path, engine, table, watermark=BY_TIME | {"checkpoint": {"interval_rows": 8}})
    table.put(*[(number, at(1 + number // 3), 0) for number in range(30)])
    outcome = flow.run()
    assert flow.ids == list(range(30))
    assert [committed.rows for committed in outcome.committed] == [12, 12, 6]


@pytest.mark.postgres
def test_rows_younger_than_settle_wait_for_a_later_run(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres
) -> None:
    table = PostgresRows(postgres)
    flow = on_postgres(tmp_path, engine, table, watermark=BY_TIME | {"settle": "PT1H"})
    table.ask("INSERT INTO {s}.rows VALUES (1, now() - interval '2 hours', 0), (2, now(), 0)")
    flow.run()
    assert flow.ids == [1]


@pytest.mark.postgres
def test_a_source_without_an_index_is_read_up_to_the_clock_and_an_empty_range_writes_nothing(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres
) -> None:
    table = PostgresRows(postgres, indexed=None)
    flow = on_postgres(tmp_path, engine, table)
    table.put((1, at(1), 10), (2, datetime(2200, 1, 1, tzinfo=UTC), 20))
    assert flow.run().rows == 1
    assert flow.watermark == {"at": at(1)}
    assert flow.run().status == "nothing"
    assert flow.feed.newest is not None
    assert flow.feed.newest.number == 1


@pytest.mark.postgres
@pytest.mark.parametrize("indexed", ["id", None])
def test_a_number_without_a_bound_before_the_read_is_saved_as_the_rows_tell(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres, indexed: str | None
) -> None:
    table = PostgresRows(postgres, indexed=indexed)
    flow = on_postgres(tmp_path, engine, table, watermark={"type": "column", "columns": ["id"]})
    table.put((1, at(1), 10), (7, None, 20), (None, at(3), 30))
    flow.run()
    assert flow.watermark == {"id": 7}
    table.put((8, at(1), 10), (None, at(4), 30))
    flow.run()
    assert flow.watermark == {"id": 8}
    assert sorted(flow.feed.rows("value")) == [(10,), (10,), (20,), (30,)]


@pytest.mark.postgres
def test_a_look_back_reads_corrected_rows_again_and_replaces_them(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres
) -> None:
    table = PostgresRows(postgres)
    flow = on_postgres(
        tmp_path, engine, table, watermark=BY_TIME | {"backward": {"days": 2}}, target=REPLACED
    )
    table.put(*[(number, at(number), number) for number in range(1, 6)])
    flow.run()
    table.ask("UPDATE {s}.rows SET value = 0 WHERE id IN (1, 4)")
    table.ask("DELETE FROM {s}.rows WHERE id = 5")
    outcome = flow.run()
    assert sorted(flow.feed.rows("id", "value")) == [(1, 1), (2, 2), (3, 3), (4, 0)]
    assert outcome.as_json()["watermark_effective"] == {"at": {"__datetime__": at(3).isoformat()}}
    assert flow.watermark == {"at": at(5)}


def test_a_table_of_the_lake_is_read_above_the_stored_value(tmp_path: Path, engine: SparkEngine) -> None:
    flow, table = on_lake(tmp_path, engine)
    table.add({"id": 1, "at": at(1), "value": 1}, {"id": 2, "at": at(2, 7), "value": 2})
    flow.run()
    assert flow.run().status == "nothing"
    table.add({"id": 3, "at": at(2, 7), "value": 3}, {"id": 4, "at": at(2, 8), "value": 4})
    flow.run()
    assert flow.ids == [1, 2, 4]
    assert flow.watermark == {"at": at(2, 8)}
