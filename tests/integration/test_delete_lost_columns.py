"""A delete or retention whose column the rows lose stops the run; a column without values in them does not."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from resources.spark.engine import SparkEngine
from tests.integration.conftest import MakeFeed
from tests.integration.test_structured_streams import Stream
from tests.support.columns import Columns, at
from tests.support.columns import on_lake as columns_on_lake
from tests.support.feed import NOW, Answer, Feed
from tests.support.window_feed import LakeTable, event, watermark
from tests.support.window_feed import on_lake as windows_on_lake

ROWS = ({"id": 1, "who": "ann"}, {"id": 2, "who": "bob"}, {"id": 3, "who": None})
KEPT = [(1, "ann"), (3, None)]
BOB, NOBODY = "who = 'bob'", "who IS NULL"
RENAMED = "SELECT id, who AS name FROM input"
DROPPED = "SELECT id FROM input"
FULL = pytest.mark.full


def delete(feed: Feed, where: str = BOB) -> None:
    feed.command("delete", feed.name, "--where", where, "--reason", "asked for", "--yes")


def made(make_feed: MakeFeed, *, where: str = BOB, **keys: Any) -> Feed:
    """Three rows are loaded, and those of a condition deleted."""
    feed = make_feed(**{"source": {"schema": "id long, who string"}, **keys})
    feed.put("1.ndjson", *ROWS)
    feed.load()
    delete(feed, where)
    return feed


def rows(feed: Feed, *columns: str) -> list[tuple[Any, ...]]:
    names = columns or ("id", "who")
    is_parquet = feed.definition["target"].get("format") == "parquet"
    return feed.rows_by_spark(*names) if is_parquet else feed.rows(*names)


def stops(feed: Feed) -> str:
    """Run, which must stop before it begins a slice; return the message."""
    before = (feed.newest, feed.watermark)
    error = feed.fail()
    assert error.code == "delete_unfit"
    assert (feed.newest, feed.watermark, feed.open_intent) == (*before, None)
    return error.message


def _answers_unfit(answer: Answer, feed: Feed) -> None:
    assert (answer.code, answer.error["code"]) == (4, "delete_unfit"), answer.out
    number = next(entry.number for entry in feed.entries if entry.why == "delete")
    assert answer.error["choices"] == [f"strandline delete {feed.name} --forget {number} --reason TEXT"]


@pytest.mark.parametrize(
    ("table_format", "sql", "where"),
    [
        ("delta", RENAMED, BOB),
        pytest.param("delta", DROPPED, NOBODY, marks=FULL),
        pytest.param("iceberg", RENAMED, BOB, marks=FULL),
        pytest.param("iceberg", DROPPED, NOBODY, marks=FULL),
        pytest.param("parquet", RENAMED, BOB, marks=FULL),
        pytest.param("parquet", DROPPED, NOBODY, marks=FULL),
    ],
)
def test_a_reset_without_the_column_stops_before_the_table_is_emptied(
    make_feed: MakeFeed, table_format: str, sql: str, where: str
) -> None:
    feed = made(make_feed, where=where, target={"format": table_format})
    kept = rows(feed)
    feed.define(sql=sql)
    feed.decide("reset", "--replace")
    message = stops(feed)
    assert f"entry 2: {where}" in message
    assert "found rows without who" in message
    assert rows(feed) == kept
    feed.define(sql="SELECT id, upper(who) AS name, who FROM input")
    assert feed.load().withheld == 1
    assert rows(feed) == kept


def test_a_forgotten_delete_lets_the_rows_come_without_the_column(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    feed.define(sql=RENAMED)
    feed.decide("reset", "--replace")
    stops(feed)
    feed.command("delete", feed.name, "--forget", "2", "--reason", "renamed", "--yes")
    feed.load()
    delete(feed, "name = 'bob'")
    assert feed.rows("id", "name") == [(1, "ann"), (3, None)]


@pytest.mark.full
def test_a_transform_without_the_column_stops_the_run(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    module = "def renamed(rows, batch):\n    return rows.withColumnRenamed('who', 'name')\n"
    (feed.folder / "steps_of_deletes.py").write_text(module)
    feed.define(transform="steps_of_deletes:renamed")
    feed.decide("reset", "--replace")
    stops(feed)
    assert feed.rows("id", "who") == KEPT


@pytest.mark.parametrize(
    "table_format", ["delta", pytest.param("iceberg", marks=FULL), pytest.param("parquet", marks=FULL)]
)
def test_new_and_rewound_files_without_the_column_stop_the_run(
    make_feed: MakeFeed, table_format: str
) -> None:
    feed = made(make_feed, target={"format": table_format, "schema_mode": "merge"})
    feed.define(sql=RENAMED)
    feed.put("2.ndjson", {"id": 4, "who": "bob"})
    stops(feed)
    feed.decide("rewind", "--to", "0", "--replace")
    stops(feed)
    assert rows(feed) == KEPT


@pytest.mark.parametrize("where", [BOB, pytest.param(NOBODY, marks=FULL)])
def test_a_reset_to_files_and_a_schema_without_the_column_stops(make_feed: MakeFeed, where: str) -> None:
    feed = made(make_feed, where=where)
    kept = feed.rows("id", "who")
    (feed.landing / "1.ndjson").unlink()
    feed.put("2.ndjson", {"id": 2, "name": "bob"})
    feed.define(source={"schema": "id long, name string"})
    feed.decide("reset", "--replace")
    stops(feed)
    assert feed.rows("id", "who") == kept
    feed.define(source={"schema": "id long, name string, who string"})
    feed.load()
    assert feed.rows("id", "name") == ([(2, "bob")] if where == BOB else [])


def test_files_without_an_optional_column_are_loaded_as_null(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    feed.put("2.ndjson", 4)
    feed.load()
    assert feed.rows("id", "who") == [*KEPT, (4, None)]
    feed.decide("reset", "--replace")
    feed.put("1.ndjson", *({"id": row["id"]} for row in ROWS))
    feed.load()
    assert feed.rows("id", "who") == [(1, None), (2, None), (3, None), (4, None)]


@pytest.mark.full
def test_csv_files_without_an_optional_column_are_loaded_as_null(make_feed: MakeFeed) -> None:
    source = {"format": "csv", "schema": "id long, who string"}
    feed = make_feed(source=source, target={"schema_mode": "merge"})
    feed.put_text("1.csv", "id,who\n1,ann\n2,bob\n")
    feed.load()
    delete(feed)
    feed.put_text("2.csv", "id\n3\n")
    feed.load()
    feed.decide("reset", "--replace")
    feed.load()
    assert feed.rows("id", "who") == KEPT


@pytest.mark.full
def test_a_column_that_only_the_table_keeps_is_null_in_new_files(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"schema": None}, target={"schema_mode": "merge"})
    feed.put("1.ndjson", *ROWS)
    feed.load()
    delete(feed)
    shutil.rmtree(feed.state)
    feed.decide("adopt")
    (feed.landing / "1.ndjson").unlink()
    feed.put("2.ndjson", 4)
    feed.load()
    assert feed.rows("id", "who") == [*KEPT, (4, None)]


def replayed(folder: Path, engine: SparkEngine, **keys: Any) -> tuple[Columns, LakeTable]:
    """Three rows of a table are loaded, and the second deleted."""
    flow, source = columns_on_lake(folder, engine, target={"load": "append", "schema_mode": "merge"}, **keys)
    source.put(*({"id": day, "at": at(day), "value": day} for day in (1, 2, 3)))
    flow.run()
    delete(flow.feed, "value = 2")
    return flow, source


RANGE = ("--start", "2026-01-01", "--end", "2026-01-05")


def test_a_replay_in_place_without_the_column_stops(tmp_path: Path, engine: SparkEngine) -> None:
    flow, source = replayed(tmp_path / "project", engine)
    feed = flow.feed.define(sql="SELECT id, at, value AS amount FROM input")
    _answers_unfit(feed.cli("replay", feed.name, *RANGE, "--replace"), feed)
    source.put({"id": 4, "at": at(4), "value": 2})
    assert flow.fail().code == "delete_unfit"
    assert (feed.rows("id", "value"), feed.open_intent) == ([(1, 1), (3, 3)], None)


@pytest.mark.full
def test_an_isolated_replay_without_the_column_stops(tmp_path: Path, engine: SparkEngine) -> None:
    flow, _ = replayed(tmp_path / "project", engine)
    feed = flow.feed.define(sql="SELECT id, at, value AS amount FROM input")
    replay = ("replay", feed.name, *RANGE, "--into", "aside/rows")
    answer = feed.cli(*replay)
    _answers_unfit(answer, feed)
    assert "flow~" not in answer.out
    assert not (feed.folder / "lake/aside/rows/_delta_log").exists()
    feed.command("delete", feed.name, "--forget", "2", "--reason", "renamed", "--yes")
    feed.command(*replay)
    feed.command("promote", feed.name, "aside/rows", "--reason", "renamed", "--yes")
    assert feed.rows("id", "amount") == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.full
def test_a_promote_without_the_column_of_a_later_delete_stops(tmp_path: Path, engine: SparkEngine) -> None:
    flow, _ = replayed(tmp_path / "project", engine)
    feed = flow.feed
    feed.command("delete", feed.name, "--forget", "2", "--reason", "renamed", "--yes")
    feed.define(sql="SELECT id, at, value AS amount FROM input")
    feed.command("replay", feed.name, *RANGE, "--into", "aside/rows")
    delete(feed, "value = 3")
    promote = ("promote", feed.name, "aside/rows", "--reason", "renamed", "--yes")
    answer = feed.cli(*promote)
    assert (answer.code, answer.error["code"]) == (4, "delete_unfit"), answer.out
    assert (feed.rows("id", "value"), feed.open_intent) == ([(1, 1)], None)
    feed.command("delete", feed.name, "--forget", "4", "--reason", "renamed", "--yes")
    feed.command(*promote)
    assert feed.rows("id", "amount") == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.full
def test_an_isolated_replay_of_a_source_without_a_value_is_promoted(
    tmp_path: Path, engine: SparkEngine
) -> None:
    source = {"schema": None, "path": "./landing"}
    feed = Feed(tmp_path / "project", engine, {"source": source, "target": {"schema_mode": "merge"}})
    feed.put("day=2026-01-01/1.ndjson", *ROWS)
    feed.load()
    delete(feed)
    feed.put("day=2026-01-02/1.ndjson", 4)
    feed.load()
    days = ("--start", "day=2026-01-02", "--end", "day=2026-01-03")
    feed.command("replay", feed.name, *days, "--into", "aside/rows")
    feed.command("promote", feed.name, "aside/rows", "--reason", "again", "--yes")
    assert feed.rows("id", "who") == [*KEPT, (4, None)]


@pytest.mark.full
def test_a_forced_window_without_the_column_stops(tmp_path: Path, engine: SparkEngine) -> None:
    days = watermark("2026-05-31", "2026-06-02", units=None)
    source, target = {"window_column": "at"}, {"load": "append"}
    flow = windows_on_lake(tmp_path / "project", engine, source=source, watermark=days, target=target)
    flow.table.add(event(1, "2026-05-31", value=7), event(2, "2026-05-31", value=8))
    flow.run("2026-06-01")
    delete(flow.feed, "value = 7")
    flow.feed.define(sql="SELECT id, at, value AS amount FROM input")
    clock = ("--now", "2026-06-01T00:00:00Z")
    forced = ("run", flow.feed.name, "--force", "2026-05-31..2026-06-01", *clock)
    _answers_unfit(flow.feed.cli(*forced), flow.feed)
    assert (flow.rows, flow.feed.open_intent) == ([(2, 8)], None)


@pytest.mark.full
@pytest.mark.parametrize("schema_mode", ["merge", "overwrite"])
def test_a_load_of_all_rows_without_the_column_stops_if_the_schema_has_lost_it(
    make_feed: MakeFeed, schema_mode: str
) -> None:
    feed = make_feed(
        source={"type": "table", "table": "raw/rows"},
        watermark={"type": "window", "definition": []},
        target={"load": "overwrite", "schema_mode": schema_mode},
    )
    place = feed.folder / "lake" / "raw" / "rows"
    write_deltalake(place, pa.table({"id": [1, 2], "who": ["ann", "bob"]}))
    feed.load()
    delete(feed)
    write_deltalake(place, pa.table({"id": [1, 2]}), mode="overwrite", schema_mode="overwrite")
    if schema_mode == "merge":  # which keeps the column
        feed.load()
        assert feed.rows("id", "who") == [(1, None), (2, None)]
    feed.define(sql="SELECT id FROM input")
    write_deltalake(place, pa.table({"id": [1, 2, 3]}), mode="overwrite")
    stops(feed)
    assert feed.rows("id") == ([(1,)] if schema_mode == "overwrite" else [(1,), (2,)])
    feed.define(sql=None)
    if schema_mode == "overwrite":
        stops(feed)


@pytest.mark.full
def test_a_stream_without_the_column_stops(make_feed: MakeFeed) -> None:
    def counting(column: str) -> list[dict[str, Any]]:
        tumble = {"type": "tumble", "size": "PT1M"}
        return [{"type": "aggregate", "window": tumble, "aggregates": {column: "count(*)"}}]

    stream = {"type": "stream", "event_time": "at", "timeout": "PT0S"}
    source = {"schema": "id long, at timestamp"}
    feed = make_feed(source=source, watermark=stream, operators=counting("n"))
    seconds = ("00:01", "00:02", "05:00", "59:00")
    feed.put("1.ndjson", *({"id": 1, "at": f"2026-01-01T00:{second}Z"} for second in seconds))
    feed.load()
    assert feed.rows("n") == [(1,), (2,)]
    delete(feed, "n = 2")
    feed.define(operators=counting("amount"))
    feed.decide("reset", "--replace")
    stops(feed)
    assert feed.rows("n") == [(1,)]


@pytest.mark.full
def test_a_stream_on_sparks_engine_without_the_column_stops(
    tmp_path: Path, spark_engine: SparkEngine
) -> None:
    stream = Stream.of(tmp_path / "project", spark_engine)
    stream.add("1.ndjson", 10, 11, 12, 13, 14, 15, 10, 25)
    stream.load()
    delete(stream, "n = 5")
    stream.define(sql="SELECT window_start, n AS amount FROM input")
    stream.decide("reset", "--replace")
    assert stream.fail().code == "delete_unfit"
    assert stream.rows("n") == []


@pytest.mark.parametrize("table_format", ["delta", pytest.param("iceberg", marks=FULL)])
def test_a_retention_without_its_column_stops_before_the_table_is_emptied(
    make_feed: MakeFeed, table_format: str
) -> None:
    retention = {"column": "at", "keep": "P5D"}
    feed = make_feed(
        source={"schema": "id long, at timestamp"}, target={"retention": retention, "format": table_format}
    )
    feed.put("1.ndjson", {"id": 1, "at": "2026-05-01T00:00:00Z"}, {"id": 2, "at": "2026-05-31T00:00:00Z"})
    feed.put("2.ndjson", 3)
    feed.run(now=NOW)
    kept = [(2,), (3,)]
    assert feed.rows("id") == kept
    feed.define(sql="SELECT id, at AS time FROM input")
    feed.decide("reset", "--replace")
    error = feed.fail()
    assert "target.retention: expected rows with its column, found rows without at" in error.message
    assert (feed.rows("id"), feed.open_intent) == (kept, None)
    feed.define(target={"retention": {"column": "time", "keep": "P5D"}})
    feed.load()
    assert feed.rows("id") == kept
