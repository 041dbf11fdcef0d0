"""Updates by records that lack a field: absent is not NULL (docs/reference/loads.md)."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.support.api import ApiFeed, api
from tests.support.columns import BY_TIME, at, on_lake
from tests.support.feed import NAME, Feed, dies_after

SCHEMA = (
    "id long, value long, price decimal(10,2), note string, tags array<string>, box struct<a long, b long>"
)
KEEP: dict[str, Any] = {"load": "merge_upsert", "merge_keys": ["id"], "missing_columns": "keep"}
COLUMNS = ("id", "value", "note")
each_format = pytest.mark.parametrize("table_format", ["delta", "iceberg"])
each_seed = pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in (2, 3))]
)


def files(folder: Path, engine: SparkEngine, format_: str = "ndjson", **target: Any) -> Feed:
    return Feed(
        folder,
        engine,
        {"source": {"format": format_, "schema": SCHEMA}, "target": KEEP | target},
    )


def by_id(feed: Feed, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(feed.rows(*columns), key=lambda row: row[0])


@each_seed
@pytest.mark.parametrize("partition_by", [[], ["value"]], ids=["plain", "partitioned"])
@each_format
def test_a_field_that_a_record_lacks_keeps_the_last_value(
    tmp_path: Path, engine: SparkEngine, table_format: str, partition_by: list[str], seed: int
) -> None:
    draw = random.Random(seed)
    feed = files(tmp_path, engine, format=table_format, partition_by=partition_by)
    last: dict[int, dict[str, Any]] = {}
    for number in range(1, 6):
        for part in ("a", "b"):  # two files of one slice
            rows: list[dict[str, Any]] = [
                {"id": key, "value": draw.randrange(3)}
                | ({"note": draw.choice([None, "x", "1.50"])} if draw.random() < 0.6 else {})
                for key in draw.sample(range(5), 3)
            ]
            feed.put(f"d={number}/{part}.ndjson", *rows)
            for row in rows:
                last[row["id"]] = {"note": None, **last.get(row["id"], {}), **row}
        if number % 2 == 0:
            with suppress(KeyboardInterrupt):
                feed.run(dies_after(draw.choice([Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED])))
    outcome = feed.load()
    assert by_id(feed, *COLUMNS) == [(key, row["value"], row["note"]) for key, row in sorted(last.items())]
    assert outcome.newest is not None
    assert outcome.newest.total_rows == len(last)


@pytest.mark.parametrize("format_", ["ndjson", "json"])
def test_values_of_every_type_are_as_without_the_key(
    tmp_path: Path, engine: SparkEngine, format_: str
) -> None:
    feed = files(tmp_path, engine, format_)
    text = '{"id":1,"value":7,"price":1.50,"note":1.50,"tags":["a","b"],"box":{"a":1}}'
    second = '{"id":2,"note":{"b":1,"a":"ä"}}'
    feed.put_text(f"a.{format_}", f"{text}\n{second}\n" if format_ == "ndjson" else f"[{text},{second}]")
    feed.load()
    columns = ("id", "value", "price", "note", "tags", "box")
    expected = by_id(feed, *columns)
    plain = files(tmp_path / "plain", engine, format_, missing_columns="null")
    plain.put_text(f"a.{format_}", (feed.landing / f"a.{format_}").read_text())
    plain.load()
    assert expected == by_id(plain, *columns)
    update = '{"id":1,"note":null,"box":{"b":2}}'
    feed.put_text(f"b.{format_}", update if format_ == "ndjson" else f"[{update}]")
    feed.load()
    first = dict(zip(columns, by_id(feed, *columns)[0], strict=True))
    assert (first["value"], str(first["price"]), first["note"]) == (7, "1.50", None)
    assert first["box"] == {"a": None, "b": 2}  # an object is one value
    assert feed.types.keys() == set(columns)


def test_a_record_that_is_bad_is_bad_with_the_key_too(tmp_path: Path, engine: SparkEngine) -> None:
    feed = files(tmp_path, engine)
    feed.define(max_bad_records=1)
    feed.put_text("a.ndjson", '{"id":1,"value":"x"}\n{"id":2,"value":2}\n')
    feed.load()
    assert by_id(feed, *COLUMNS) == [(2, 2, None)]
    feed.put_text("b.ndjson", '{"id":1,"value":"x"}\n{"id":2,"other":2}\n')
    assert "b.ndjson" in feed.fail().message


def test_rescued_values_and_new_columns_go_with_it(tmp_path: Path, engine: SparkEngine) -> None:
    feed = files(tmp_path, engine, schema_mode="rescue")
    feed.put_text("a.ndjson", '{"id":1,"value":1,"note":"a"}\n')
    feed.load()
    feed.put_text("b.ndjson", '{"id":1,"value":"x"}\n')
    feed.load()
    assert feed.rows(*COLUMNS, "_rescued_data") == [(1, None, "a", '{"value":"x"}')]
    feed.define(target={"schema_mode": "merge"})
    feed.put_text("c.ndjson", '{"id":1,"more":3}\n{"id":2,"note":"b"}\n')
    feed.load()
    feed.put_text("d.ndjson", '{"id":1,"value":4}\n')
    feed.load()
    assert by_id(feed, *COLUMNS, "more") == [(1, 4, "a", 3), (2, None, "b", None)]


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_a_file_that_lacks_a_column_keeps_it(tmp_path: Path, engine: SparkEngine, format_: str) -> None:
    feed = Feed(
        tmp_path,
        engine,
        {
            "source": {"format": format_, "schema": "id long, value long, note string"},
            "target": KEEP | {"schema_mode": "merge"},
        },
    )

    def put(name: str, *rows: dict[str, Any]) -> None:
        if format_ == "parquet":
            pq.write_table(pa.Table.from_pylist(list(rows)), feed.landing / f"{name}.parquet")
            return
        lines = [",".join(rows[0]), *(",".join(str(value) for value in row.values()) for row in rows)]
        feed.put_text(f"{name}.csv", "\n".join(lines) + "\n")

    put("a", {"id": 1, "value": 1, "note": "a"}, {"id": 2, "value": 1, "note": "b"})
    feed.load()
    put("b", {"id": 1, "value": 2}, {"id": 3, "value": 2})
    put("c", {"id": 3, "note": "c"})
    feed.load()
    assert by_id(feed, *COLUMNS) == [(1, 2, "a"), (2, 1, "b"), (3, 2, "c")]


def test_records_of_an_api_keep_what_they_lack(tmp_path: Path, engine: SparkEngine) -> None:
    with api() as server:
        source = {
            "watermark_param_mapping": {"at": "since"},
            "schema": "id long, at timestamp, value long, note string",
        }
        definition = {
            "watermark": {"type": "column", "columns": ["at"], "backward": {"days": 30}},
            "target": KEEP,
        }
        flow = ApiFeed(tmp_path, engine, server, source, definition).flow()
        first = {"at": at(1).isoformat(), "value": 1, "note": "a"}
        server.rows = [{"id": number} | first for number in (1, 2)]
        flow.run()
        later = {"at": at(2).isoformat()}
        server.rows = [{"id": 1, "value": 2} | later, {"id": 2, "note": None} | later]
        flow.run()
        assert flow.feed.rows(*COLUMNS) == [(1, 2, "a"), (2, 1, None)]


def test_a_column_that_a_table_of_the_lake_loses_stays(tmp_path: Path, engine: SparkEngine) -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("value", pa.int64()), ("note", pa.string())]
    )
    flow, table = on_lake(
        tmp_path, engine, schema=schema, watermark=BY_TIME, target=KEEP | {"schema_mode": "merge"}
    )
    table.add({"id": 1, "at": at(1), "value": 1, "note": "a"})
    flow.run()
    source = str(tmp_path / "lake" / "raw" / "rows")
    rest = engine.session().read.format("delta").load(source).drop("note")
    rest.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(source)
    changed = engine.session().createDataFrame([(1, at(4), 2)], "id long, at timestamp, value long")
    changed.write.format("delta").mode("append").save(source)
    flow.run()
    assert flow.feed.rows(*COLUMNS) == [(1, 2, "a")]


def test_a_replay_in_place_keeps_what_its_records_lack_and_an_isolated_one_is_refused(
    tmp_path: Path, engine: SparkEngine
) -> None:
    feed = files(tmp_path, engine)
    feed.put("d=1/a.ndjson", {"id": 1, "value": 1, "note": "a"})
    feed.put("d=2/a.ndjson", {"id": 1, "value": 2})
    feed.load()
    bounds = ("--start", "d=2/a.ndjson", "--end", "d=2/a.ndjson~", "--column", "_source_file")
    feed.put("d=2/a.ndjson", {"id": 1, "value": 3})
    feed.command("replay", NAME, *bounds, "--replace")
    assert by_id(feed, *COLUMNS) == [(1, 3, "a")]
    refused = feed.cli("replay", NAME, *bounds, "--into", "aside/second")
    assert "missing_columns: keep" in json.dumps(refused.error)
