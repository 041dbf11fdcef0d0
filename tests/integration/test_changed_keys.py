"""Merge keys that change, or come: whether rows of the table have one key is looked up before the first load by these (docs/reference/loads.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from resources.spark.engine import SparkEngine
from tests.support.feed import Feed
from tests.support.followed import follow
from tests.support.moves import restore

SOURCE = {"format": "ndjson", "schema": "id long, region string, value long, at long"}
UPSERT = {"load": "merge_upsert"}
FORMATS = ["delta", pytest.param("iceberg", marks=pytest.mark.full)]


def row(number: int | None, region: str, value: int, at: int = 1) -> dict[str, Any]:
    return {"id": number, "region": region, "value": value, "at": at}


def made(folder: Path, engine: SparkEngine, format_: str, **target: Any) -> Feed:
    return Feed(folder, engine, {"source": SOURCE, "target": {"format": format_, **target}})


def stopped(feed: Feed) -> Any:
    """The error of a run that stops for a decision, before it begins a number."""
    error = feed.fail()
    assert (error.code, error.exit_code) == ("keys_not_unique", 4), error.message
    assert feed.open_intent is None
    return error


@pytest.mark.full
@pytest.mark.remedy("keys_not_unique", "run", "state accept", "state reset --replace")
def test_each_choice_about_keys_that_are_not_unique_leads_on(tmp_path: Path, engine: SparkEngine) -> None:
    feed = made(tmp_path / "project", engine, "delta", load="merge_upsert", merge_keys=["id"])
    feed.put("1.ndjson", row(1, "x", 1), row(2, "x", 2), row(3, "y", 3))
    feed.load()
    feed.define(target={"merge_keys": ["region"]})
    feed.put("2.ndjson", row(4, "x", 9))
    error = stopped(feed)
    run, accept, reset = error.choices
    follow(feed, [accept], [("x", 9), ("x", 9), ("y", 3)], "region", "value")
    restore(tmp_path / "saved", feed.folder)
    DeltaTable(str(feed.table)).delete("id = 1")  # the surplus row, as the message says
    follow(feed, [run, reset], [("x", 9), ("y", 3)], "region", "value")


@pytest.mark.parametrize("format_", FORMATS)
def test_other_keys_stop_where_rows_share_one(tmp_path: Path, engine: SparkEngine, format_: str) -> None:
    feed = made(tmp_path, engine, format_, load="merge_upsert", merge_keys=["id"])
    feed.put("1.ndjson", row(1, "x", 1), row(2, "x", 2), row(3, "y", 3))
    feed.load()
    feed.define(target={"merge_keys": ["region"]})
    feed.put("2.ndjson", row(4, "x", 9))
    (plan,) = feed.cli("plan").json
    assert any("is the first with merge_keys: region. It stops if" in warning for warning in plan["warnings"])
    error = stopped(feed)
    assert (
        "target.merge_keys: region (before: load: merge_upsert by id), but 1 value of region occurs in 2 rows"
        in error.message
    )
    assert "strandline state accept flow --reason TEXT" in error.choices
    assert feed.rows("id", "value") == [(1, 1), (2, 2), (3, 3)]
    answer = feed.cli("state", "accept", "flow", "--reason", "meant", "--yes")
    assert "rows of the table that share a key (region) stay as they are" in answer.err
    feed.load()
    assert feed.rows("region", "value") == [("x", 9), ("x", 9), ("y", 3)]
    feed.put("3.ndjson", row(5, "y", 7))
    feed.load()
    assert feed.rows("region", "value") == [("x", 9), ("x", 9), ("y", 7)]


def test_an_appended_table_is_checked_before_rows_are_merged(tmp_path: Path, engine: SparkEngine) -> None:
    feed = made(tmp_path, engine, "delta", load="append")
    feed.put("1.ndjson", row(1, "x", 1), row(1, "x", 2), row(None, "y", 3), row(None, "y", 4), row(2, "y", 5))
    feed.load()
    feed.define(target={"load": "merge_upsert", "merge_keys": ["id"]})
    feed.put("2.ndjson", row(1, "x", 9))
    error = stopped(feed)
    assert "2 values of id occur in 4 rows of table bronze/flow." in error.message
    DeltaTable(str(feed.table)).delete("value in (2, 3, 4)")
    feed.load()
    assert feed.rows("id", "value") == [(1, 9), (2, 5)]


@pytest.mark.full
def test_keys_that_tell_rows_apart_need_no_word_and_stay(tmp_path: Path, engine: SparkEngine) -> None:
    feed = made(tmp_path, engine, "delta", load="merge_upsert", merge_keys=["id"])
    feed.put("1.ndjson", row(1, "x", 1), row(2, "x", 2))
    feed.load()
    feed.define(target={"merge_keys": ["ID", "region"]})
    feed.put("2.ndjson", row(1, "x", 9), row(1, "y", 3))
    feed.load()
    assert feed.rows("id", "region", "value") == [(1, "x", 9), (1, "y", 3), (2, "x", 2)]
    spark = engine.session()
    spark.sql(f"INSERT INTO delta.`{feed.table}` SELECT * FROM delta.`{feed.table}` WHERE id = 2")
    feed.put("3.ndjson", row(3, "x", 3))
    feed.load()
    feed.define(target={"merge_keys": ["id"]})
    feed.put("4.ndjson", row(3, "x", 4))
    stopped(feed)
    feed.decide("reset", "--replace")
    feed.load()
    assert feed.rows("id", "value") == [(1, 3), (2, 2), (3, 4)]


@pytest.mark.full
def test_a_slice_that_is_given_up_by_accept_agrees_to_no_keys(tmp_path: Path, engine: SparkEngine) -> None:
    from tests.support.crash_runner import WRITING, crash

    feed = made(tmp_path, engine, "delta", load="merge_upsert", merge_keys=["id"])
    feed.put("1.ndjson", row(1, "x", 1), row(2, "x", 2))
    feed.load()
    feed.put("2.ndjson", row(3, "x", 9))
    crash(feed, WRITING, 1)
    feed.define(target={"merge_keys": ["region"]})
    changed = feed.fail()
    assert changed.code == "intent_changed"
    for _ in range(2):
        feed.decide("accept")
        if _ == 0:
            stopped(feed)
    feed.load()
    assert feed.rows("region", "value") == [("x", 9), ("x", 9)]


@pytest.mark.parametrize("format_", FORMATS)
def test_shared_replaced_keys_are_a_decision(tmp_path: Path, engine: SparkEngine, format_: str) -> None:
    feed = made(tmp_path, engine, format_, load="merge_overwrite", merge_keys=["id"])
    feed.define(late_files="quarantine")
    feed.put("1.ndjson", row(1, "x", 1), row(1, "x", 2), row(2, "x", 2))
    feed.load()
    feed.put("2.ndjson", row(1, "x", 5))
    feed.load()
    assert feed.rows("id", "value") == [(1, 5), (2, 2)], "several rows of a key are what this load is for"
    feed.define(target={"merge_keys": ["region"]})
    feed.put("3.ndjson", row(1, "x", 6))
    assert "would delete all rows of such a key" in stopped(feed).message
    feed.decide("accept")
    feed.load()
    assert feed.rows("id", "value") == [(1, 6)]


@pytest.mark.full
@pytest.mark.parametrize("format_", FORMATS)
def test_joined_histories_stop_the_run(tmp_path: Path, engine: SparkEngine, format_: str) -> None:
    feed = made(tmp_path, engine, format_, load="scd2", merge_keys=["id", "region"], effective_column="at")
    feed.put("1.ndjson", row(1, "x", 1), row(1, "x", 2, at=2), row(2, "x", 1), row(2, "y", 1))
    feed.load()
    feed.define(target={"merge_keys": ["id"]})
    feed.put("2.ndjson", row(1, "x", 3, at=3))
    error = stopped(feed)
    assert "1 value of id occurs in 2 rows" in error.message
    assert not any("accept" in choice for choice in error.choices)
    feed.define(target={"merge_keys": ["region", "id", "value"]})
    feed.load()
    assert len(feed.rows("id")) == 5
