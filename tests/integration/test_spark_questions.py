"""How often a run asks a Spark Connect server: each question takes milliseconds, and one for columns has Spark look at the whole query."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect.client import SparkConnectClient

from resources.spark.engine import SparkEngine
from resources.spark.settings import temporary_settings, tune
from scripts import postgres as pg
from tests.integration.conftest import MakeFeed
from tests.support.columns import PostgresRows, at, on_postgres
from tests.support.iceberg import iceberg_rows

COLUMNS, SETTINGS = "_analyze", "config"

Asked = list[tuple[str, str]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """The questions about columns and settings that this process asks from now on, each with what it names."""
    found: Asked = []

    def heard(kind: str) -> None:
        ask = getattr(SparkConnectClient, kind)

        def noting(client: SparkConnectClient, *given: Any, **named: Any) -> Any:
            found.append((kind, f"{given} {named}"))
            return ask(client, *given, **named)

        monkeypatch.setattr(SparkConnectClient, kind, noting)

    heard(COLUMNS)
    heard(SETTINGS)
    return found


def test_settings_for_a_while_are_asked_and_put_back_at_once(engine: SparkEngine, asked: Asked) -> None:
    session = engine.session()
    session.conf.set("strandline.known", "before")
    asked.clear()
    with temporary_settings(
        session, {"strandline.known": "1", "strandline.new": "2", "strandline.more": "3"}
    ):
        assert len(asked) == 2
        within = [session.conf.get(f"strandline.{name}", None) for name in ("known", "new", "more")]
        asked.clear()
    assert len(asked) == 2
    after = [session.conf.get(f"strandline.{name}", None) for name in ("known", "new", "more")]
    assert (within, after) == (["1", "2", "3"], ["before", None, None])


def test_after_a_small_write_a_session_compiles_as_it_did_before(engine: SparkEngine, asked: Asked) -> None:
    session = engine.session()
    keys = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")
    before = [session.conf.get(key) for key in keys]
    asked.clear()
    compiled = [tune(session, 1)]
    assert len(asked) == 2
    small = [session.conf.get(key) for key in keys]
    compiled.append(tune(session, None))
    after = [session.conf.get(key) for key in keys]
    assert (compiled, small, after) == ([False, True], ["false", "NO_CODEGEN"], before)


def test_a_run_tells_spark_of_an_iceberg_catalog_once(make_feed: MakeFeed, asked: Asked) -> None:
    feed = make_feed(target={"format": "iceberg", "load": "merge_upsert", "merge_keys": ["id"]})
    feed.put("a.ndjson", 1)
    feed.load()
    feed.put("b.ndjson", 1, 2)
    asked.clear()
    feed.load()
    told = [text for kind, text in asked if kind == SETTINGS and '"spark.sql.catalog.strandline' in text]
    assert len(told) == 1
    assert feed.ids == [1, 2]


@pytest.mark.parametrize("form", ["delta", "iceberg", "parquet"])
def test_files_read_as_the_last_ones_cost_no_question(make_feed: MakeFeed, asked: Asked, form: str) -> None:
    feed = make_feed(target={"format": form, "load": "append"}, unknown_fields="ignore")
    feed.put("a.ndjson", 1)
    feed.load()
    feed.put("b.ndjson", 2)
    asked.clear()
    feed.load()
    assert [kind for kind, _ in asked].count(COLUMNS) == 0
    assert feed.ids == [1, 2]


@pytest.mark.parametrize("form", ["delta", "iceberg"])
@pytest.mark.each_case
def test_rows_merged_as_the_last_ones_cost_no_question(make_feed: MakeFeed, asked: Asked, form: str) -> None:
    feed = make_feed(
        source={"schema": "id long, v long"},
        target={"format": form, "load": "merge_upsert", "merge_keys": ["id"]},
        unknown_fields="ignore",
        late_files="alert",
    )
    for name, value in (("a", 1), ("b", 2)):
        feed.put(f"{name}.ndjson", {"id": 1, "v": value}, {"id": value, "v": value})
        asked.clear()
        feed.load()
    assert [kind for kind, _ in asked].count(COLUMNS) == 0
    assert feed.rows("id", "v") == [(1, 2), (2, 2)]


def test_folders_as_windows_cost_no_question_once_loaded(make_feed: MakeFeed, asked: Asked) -> None:
    feed = make_feed(
        source={"path": "./landing/{start:%Y-%m-%d}", "schema": "id long"},
        watermark={
            "type": "window",
            "window": "daily",
            "grace": "P1D",
            "partial": False,
            "definition": [{"name": "day", "type": "datetime", "range": {"from": "2026-01-01", "to": "-"}}],
        },
        target={"format": "iceberg", "load": "merge_overwrite", "replace_by_watermark": True},
        unknown_fields="ignore",
    )
    for day in (1, 2):
        feed.put(f"2026-01-0{day}/a.ndjson", day)
    feed.run(now=datetime(2026, 1, 2, 1, tzinfo=UTC))
    asked.clear()
    outcome = feed.run(now=datetime(2026, 1, 3, 1, tzinfo=UTC))  # the first day is read again
    assert (outcome.error, outcome.rows) == (None, 2)
    assert [kind for kind, _ in asked].count(COLUMNS) == 0
    assert sorted(row["id"] for row in iceberg_rows(feed.table, ["id"])) == [1, 2]


@pytest.mark.postgres
def test_of_rows_above_a_column_of_a_database_spark_is_asked_for_no_columns(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres, asked: Asked
) -> None:
    table = PostgresRows(postgres)
    flow = on_postgres(tmp_path, engine, table)
    table.put((1, at(1), 10))
    flow.run()
    table.put((2, at(2), 20))
    asked.clear()
    flow.run()
    assert [kind for kind, _ in asked].count(COLUMNS) == 0
    assert flow.ids == [1, 2]
