"""Options of a merge_upsert dataflow: rows and columns that keep their first values (docs/reference/loads.md)."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.support.feed import NAME, Feed, dies_after

UPSERT: dict[str, Any] = {"load": "merge_upsert", "merge_keys": ["id"]}
STEPS = (Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED, Step.APPENDED)
each_format = pytest.mark.parametrize("table_format", ["delta", "iceberg"])
each_seed = pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in (2, 3))]
)


def files(folder: Path, engine: SparkEngine, table_format: str, **target: Any) -> Feed:
    """A dataflow of files that loads each in a slice of its own."""
    return Feed(
        folder,
        engine,
        {
            "source": {"schema": "id long, value long, made long"},
            "target": {"format": table_format, **UPSERT, **target},
            "watermark": {"checkpoint": {"interval_files": 1}},
        },
    )


def row(number: int, value: int = 0, made: int | None = None) -> dict[str, Any]:
    return {"id": number, "value": value, "made": made}


def first_day(feed: Feed, *options: str) -> None:
    bounds = ("--start", "d=1/a.ndjson", "--end", "d=1/a.ndjson~", "--column", "_source_file")
    feed.command("replay", NAME, *bounds, *options)


@each_seed
@each_format
def test_with_insert_only_each_key_keeps_its_first_row(
    tmp_path: Path, engine: SparkEngine, table_format: str, seed: int
) -> None:
    draw = random.Random(seed)
    feed = files(tmp_path, engine, table_format, insert_only=True)
    first: dict[int, int] = {}
    for number in range(1, 6):
        rows = [row(draw.randrange(9), draw.randrange(100)) for _ in range(draw.randrange(1, 6))]
        feed.put(f"d={number}/a.ndjson", *rows)
        for one in sorted(rows, key=lambda one: one["value"]):  # of one file the lower values come first
            first.setdefault(one["id"], one["value"])
        if number % 2 == 0:
            with suppress(KeyboardInterrupt):
                feed.run(dies_after(draw.choice(STEPS)))
    outcome = feed.load()
    assert feed.rows("id", "value") == sorted(first.items())
    assert outcome.newest is not None
    assert outcome.newest.total_rows == len(first)
    first_day(feed)
    assert feed.rows("id", "value") == sorted(first.items())
    feed.put("d=9/a.ndjson", *(row(number) for number in first))
    assert feed.load().rows == 0
    assert feed.rows("id", "value") == sorted(first.items())


@each_format
def test_a_replay_that_replaces_loads_the_rows_of_its_range_again(
    tmp_path: Path, engine: SparkEngine, table_format: str
) -> None:
    feed = files(tmp_path, engine, table_format, insert_only=True)
    feed.put("d=1/a.ndjson", row(1, 1), row(2, 1))
    feed.put("d=2/a.ndjson", row(3, 2))
    feed.load()
    feed.put("d=1/a.ndjson", row(2, 7), row(3, 7), row(4, 7))
    first_day(feed, "--replace")
    assert feed.rows("id", "value") == [(2, 7), (3, 2), (4, 7)]


def test_in_a_shared_table_a_key_of_another_dataflow_is_no_key_of_this_one(
    tmp_path: Path, engine: SparkEngine
) -> None:
    shared = {"shared": True, "table": "bronze/both"}
    feed = files(tmp_path, engine, "delta", insert_only=True, **shared)
    source = {"schema": "id long, value long, made long"}
    other = Feed(tmp_path, engine, feed.definition | {"source": source}, name="other")
    other.define(target={"insert_only": None, "immutable": ["made"]})
    other.put("a.ndjson", row(1, 1, 1))
    other.load()
    feed.put("a.ndjson", row(1, 2, 2))
    feed.load()
    other.put("b.ndjson", row(1, 3, 3))
    other.load()
    feed.put("b.ndjson", row(1, 4, 4), row(2, 4, 4))
    feed.load()
    assert feed.rows("id", "value", "made") == [(1, 2, 2), (1, 3, 1), (2, 4, 4)]


@each_seed
@each_format
def test_an_immutable_column_keeps_the_first_value_that_is_not_null(
    tmp_path: Path, engine: SparkEngine, table_format: str, seed: int
) -> None:
    draw = random.Random(seed)
    feed = files(tmp_path, engine, table_format, immutable=["made"], delete_when="value = 99")
    last: dict[int, tuple[int, int | None]] = {}
    for number in range(1, 6):
        rows = {
            key: row(key, draw.choice([*range(5), 99]), draw.choice([None, *range(9)]))
            for key in draw.sample(range(6), 4)
        }
        feed.put(f"d={number}/a.ndjson", *rows.values())
        for key, one in rows.items():
            before = last.pop(key, (0, None))[1]
            if one["value"] != 99:
                last[key] = (one["value"], one["made"] if before is None else before)
        if number % 2 == 0:
            with suppress(KeyboardInterrupt):
                feed.run(dies_after(draw.choice(STEPS)))
    outcome = feed.load()
    expected = sorted((key, *values) for key, values in last.items())
    assert sorted(feed.rows("id", "value", "made"), key=lambda one: one[0]) == expected
    assert outcome.newest is not None
    assert outcome.newest.total_rows == len(last)


def test_a_replay_leaves_immutable_columns_and_a_reset_builds_them_anew(
    tmp_path: Path, engine: SparkEngine
) -> None:
    feed = files(tmp_path, engine, "delta", immutable=["made"])
    feed.put("d=1/a.ndjson", row(1, 1, 1))
    feed.load()
    feed.put("d=1/a.ndjson", row(1, 2, 2))
    first_day(feed, "--replace")
    assert feed.rows("id", "value", "made") == [(1, 2, 1)]
    feed.decide("reset", "--replace")
    feed.load()
    assert feed.rows("id", "value", "made") == [(1, 2, 2)]


def test_an_immutable_column_that_the_table_gains_takes_its_first_value(
    tmp_path: Path, engine: SparkEngine
) -> None:
    feed = files(tmp_path, engine, "delta", schema_mode="merge")
    feed.define(source={"schema": "id long, value long"})
    feed.put("a.ndjson", {"id": 1, "value": 1}, {"id": 2, "value": 1})
    feed.load()
    feed.define(source={"schema": "id long, value long, made long"}, target={"immutable": ["made"]})
    feed.decide("accept")
    feed.put("b.ndjson", row(1, 2, 2))
    feed.load()
    feed.put("c.ndjson", row(1, 3, 3), row(2, 3, 3))
    feed.load()
    assert feed.rows("id", "value", "made") == [(1, 3, 2), (2, 3, 3)]


def test_an_immutable_column_that_the_rows_lack_stops_the_run(tmp_path: Path, engine: SparkEngine) -> None:
    feed = files(tmp_path, engine, "delta", immutable=["mdae"])
    feed.put("a.ndjson", row(1, 1, 1))
    error = feed.fail()
    assert (error.code, "target.immutable" in error.message) == ("query", True)
    feed.define(target={"immutable": ["made"]})
    feed.load()
    assert feed.ids == [1]
