"""Versions of rows whose source loses a column: what was recorded stays, and no version differs by what nobody says (docs/reference/loads.md, scd2)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.integration.test_python_source import make as python_rows
from tests.support.api import ApiFeed, api
from tests.support.columns import BY_TIME, PostgresRows, at, on_lake, on_postgres
from tests.support.feed import Feed

SCD2 = {"load": "scd2", "merge_keys": ["id"], "effective_column": "at", "schema_mode": "merge"}
COLUMNS = ("id", "value", "note", "_valid_from", "_valid_to", "_is_current")
NOTED = pa.schema(
    [("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("value", pa.int64()), ("note", pa.string())]
)


@pytest.mark.full
@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_a_lost_column_of_a_table_makes_no_version(tmp_path: Path, engine: SparkEngine, format_: str) -> None:
    flow, table = on_lake(
        tmp_path,
        engine,
        schema=NOTED,
        watermark=BY_TIME | {"backward": {"days": 30}},
        target=SCD2 | {"format": format_},
    )
    table.add(
        {"id": 1, "at": at(1), "value": 1, "note": "a"},
        {"id": 1, "at": at(3), "value": 1, "note": "b"},
        {"id": 2, "at": at(1), "value": 5, "note": None},
        {"id": 3, "at": at(1), "value": 7, "note": "c"},
    )
    flow.run()
    spark = engine.session()
    source = str(tmp_path / "lake" / "raw" / "rows")
    rest = spark.read.format("delta").load(source).drop("note")
    rest.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(source)
    spark.sql(f"UPDATE delta.`{source}` SET value = 8 WHERE id = 3")
    changed = [(1, at(4), 2), (2, at(4), 5), (4, at(4), 9)]
    spark.createDataFrame(changed, "id long, at timestamp, value long").write.format("delta").mode(
        "append"
    ).save(source)
    flow.run()
    expected = [
        (1, 1, "a", at(1), at(3), False),
        (1, 1, "b", at(3), at(4), False),
        (1, 2, None, at(4), None, True),
        (2, 5, None, at(1), None, True),
        (3, 8, "c", at(1), None, True),
        (4, 9, None, at(4), None, True),
    ]
    assert sorted(flow.feed.rows(*COLUMNS), key=str) == sorted(expected, key=str)
    flow.run()
    assert sorted(flow.feed.rows(*COLUMNS), key=str) == sorted(expected, key=str)


@pytest.mark.full
@pytest.mark.postgres
def test_columns_that_databases_lose_stay(tmp_path: Path, engine: SparkEngine, postgres: Postgres) -> None:
    table = PostgresRows(postgres, "id bigint, at timestamptz, value bigint, note text")
    table.put((1, at(1), 1, "a"), (2, at(1), 5, "b"))
    flow = on_postgres(tmp_path, engine, table, watermark=BY_TIME | {"backward": {"days": 30}}, target=SCD2)
    flow.run()
    table.ask("ALTER TABLE {s}.rows DROP COLUMN note")
    table.put((1, at(2), 2))
    flow.run()
    assert flow.feed.rows(*COLUMNS) == [
        (1, 1, "a", at(1), at(2), False),
        (1, 2, None, at(2), None, True),
        (2, 5, "b", at(1), None, True),
    ]


def _put(feed: Feed, name: str, *rows: Mapping[str, Any]) -> None:
    if feed.definition["source"]["format"] == "ndjson":
        feed.put_text(f"{name}.ndjson", "".join(f"{json.dumps(row)}\n" for row in rows))
    elif feed.definition["source"]["format"] == "parquet":
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), feed.landing / f"{name}.parquet")
    else:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        feed.put_text(f"{name}.csv", text.getvalue())


@pytest.mark.parametrize(
    "format_",
    ["ndjson", pytest.param("csv", marks=pytest.mark.full), pytest.param("parquet", marks=pytest.mark.full)],
)
def test_a_lost_column_of_files_makes_no_version(tmp_path: Path, engine: SparkEngine, format_: str) -> None:
    source = {"format": format_, "schema": "id long, at long, value long, note string"}
    feed = Feed(tmp_path, engine, {"source": source, "target": SCD2})
    _put(
        feed,
        "a",
        {"id": 1, "at": 1, "value": 1, "note": "a"},
        {"id": 2, "at": 1, "value": 2, "note": "b"},
        {"id": 3, "at": 1, "value": 3, "note": "c"},
    )
    feed.load()
    _put(feed, "b", {"id": 1, "at": 1, "value": 9}, {"id": 2, "at": 2, "value": 2})
    _put(feed, "c", {"id": 3, "at": 1, "value": 3, "note": None}, {"id": 4, "at": 1, "value": 4, "note": "d"})
    feed.load()
    assert feed.rows(*COLUMNS) == [
        (1, 9, "a", 1, None, True),
        (2, 2, "b", 1, None, True),
        (3, 3, None, 1, None, True),
        (4, 4, "d", 1, None, True),
    ]


@pytest.mark.full
def test_an_api_whose_records_lose_a_field_leaves_it_as_recorded(tmp_path: Path, engine: SparkEngine) -> None:
    with api() as server:
        source = {"watermark_param_mapping": {"at": "since"}}
        definition = {
            "watermark": {"type": "column", "columns": ["at"], "backward": {"days": 30}},
            "target": SCD2,
        }
        flow = ApiFeed(tmp_path, engine, server, source, definition).flow()
        server.rows = [
            {"id": number, "at": at(1).isoformat(), "value": number, "note": "a"} for number in (1, 2)
        ]
        flow.run()
        server.rows = [
            {"id": 1, "at": at(1).isoformat(), "value": 9},
            {"id": 2, "at": at(2).isoformat(), "value": 3},
        ]
        flow.run()
        assert flow.feed.rows("id", "value", "note", "_is_current") == [
            (1, 9, "a", True),
            (2, 2, "a", False),
            (2, 3, None, True),
        ]
        server.rows = [{"id": 1, "at": at(1).isoformat(), "value": 9, "note": None}]
        flow.run()
        assert flow.feed.rows("id", "value", "note", "_is_current")[0] == (1, 9, None, True)


@pytest.mark.full
def test_a_lost_column_of_a_function_makes_no_version(tmp_path: Path, engine: SparkEngine) -> None:
    flow, code = python_rows(
        tmp_path,
        engine,
        source={"schema": "id long, at timestamp, value long, note string"},
        watermark=BY_TIME | {"backward": {"days": 30}},
        target=SCD2,
    )
    code.put({"id": 1, "at": at(1).isoformat(), "value": 1, "note": "a"})
    flow.run()
    (tmp_path / "rows.jsonl").write_text("")
    code.put({"id": 1, "at": at(1).isoformat(), "value": 9})
    flow.run()
    assert flow.feed.rows("id", "value", "note", "_is_current") == [(1, 9, "a", True)]
