"""Dataflows whose rows delete their key: histories with kills and replays, and what a table goes through.

See docs/how-to/deletes.md.
"""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.support.columns import BY_TIME, Columns, at
from tests.support.feed import NAME, Feed, dies_after
from tests.support.window_feed import LakeTable

FORMATS = ("delta", "iceberg")
SCHEMA = "id long, value long, since long, gone boolean"
UPSERT: dict[str, Any] = {"load": "merge_upsert", "merge_keys": ["id"], "delete_when": "gone"}
VERSIONS: dict[str, Any] = {"load": "scd2", "merge_keys": ["id"], "effective_column": "since"}
STEPS = (Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED, Step.APPENDED)
each_format = pytest.mark.parametrize("table_format", FORMATS)


def files(folder: Path, engine: SparkEngine, table_format: str, **target: Any) -> Feed:
    """A dataflow of files that loads each in a slice of its own."""
    return Feed(
        folder,
        engine,
        {
            "source": {"schema": SCHEMA},
            "target": {"format": table_format, **target},
            "watermark": {"checkpoint": {"interval_files": 1}},
        },
    )


def row(number: int, value: int = 0, *, gone: bool = False, since: int = 1) -> dict[str, Any]:
    return {"id": number, "value": value, "since": since, "gone": gone}


def killed(feed: Feed, draw: random.Random) -> None:
    """Run, and die at a step if the run comes to it."""
    with suppress(KeyboardInterrupt):
        feed.run(dies_after(draw.choice(STEPS)))


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 8))])
@each_format
def test_files_leave_the_last_row_of_each_key_unless_it_deletes(
    tmp_path: Path, engine: SparkEngine, table_format: str, seed: int
) -> None:
    draw = random.Random(seed)
    feed = files(tmp_path, engine, table_format, **UPSERT)
    last: dict[int, tuple[int, bool, int]] = {}
    for number in range(1, 7):
        rows = [
            row(draw.randrange(6), draw.randrange(100), gone=draw.random() < 0.4)
            for _ in range(draw.randrange(1, 7))
        ]
        feed.put(f"d={number}/a.ndjson", *rows)
        for one in rows:  # of one file the delete is the latest row of a key, then the row with higher values
            rank = (number, one["gone"], one["value"])
            last[one["id"]] = max(last.get(one["id"], rank), rank)
        if number % 2 == 0:
            killed(feed, draw)
        if number == 4:
            feed.load()
            feed.decide("rewind", "--to", str(draw.randrange(1, 4)), "--replace")
    outcome = feed.load()
    kept = sorted((key, value) for key, (_, gone, value) in last.items() if not gone)
    assert feed.rows("id", "value") == kept
    assert outcome.newest is not None
    assert outcome.newest.total_rows == len(kept)
    assert feed.load().status == "nothing"


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 6))])
@each_format
def test_a_marked_source_leaves_its_living_rows(
    tmp_path: Path, engine: SparkEngine, table_format: str, seed: int
) -> None:
    draw = random.Random(seed)
    schema = pa.schema(
        [("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("deleted_at", pa.timestamp("us", "UTC"))]
    )
    source = LakeTable(tmp_path / "lake" / "raw" / "rows", schema)
    target = UPSERT | {"delete_when": "deleted_at IS NOT NULL", "format": table_format}
    flow = Columns(
        Feed(
            tmp_path,
            engine,
            {
                "source": {"type": "table", "table": "raw/rows"},
                "watermark": BY_TIME,
                "target": target,
            },
        )
    )
    for day in range(1, 13, 2):
        for number in draw.sample(range(5), 3):
            moment = at(day + draw.randrange(2))
            source.put({"id": number, "at": moment, "deleted_at": moment if draw.random() < 0.5 else None})
        killed(flow.feed, draw)
        if day == 7:
            flow.run()
            flow.feed.command("replay", NAME, "--start", "2026-01-01", "--end", "2026-01-09", "--replace")
    flow.run()
    assert flow.ids == sorted(number for number, kept in source.rows.items() if kept["deleted_at"] is None)
    newest = flow.feed.newest
    assert newest is not None
    assert newest.total_rows == len(flow.ids)


@each_format
def test_a_key_that_is_deleted_comes_back_with_its_next_row(
    tmp_path: Path, engine: SparkEngine, table_format: str
) -> None:
    feed = files(tmp_path, engine, table_format, **UPSERT)
    feed.put("a.ndjson", row(1, gone=True))
    assert (feed.load().rows, feed.rows("id", "value")) == (0, [])
    feed.put("b.ndjson", row(1, 1), row(2, 1))
    assert (feed.load().rows, feed.rows("id", "value")) == (2, [(1, 1), (2, 1)])
    feed.put("c.ndjson", row(7, gone=True))  # no such key
    outcome = feed.load()
    assert (outcome.rows, outcome.deleted, feed.rows("id", "value")) == (0, 0, [(1, 1), (2, 1)])
    feed.put("d.ndjson", row(1, gone=True), row(3, 1))
    outcome = feed.load()
    assert (outcome.rows, outcome.deleted, feed.rows("id", "value")) == (1, 1, [(2, 1), (3, 1)])
    feed.put("e.ndjson", row(1, 5))
    assert (feed.load().rows, feed.rows("id", "value")) == (1, [(1, 5), (2, 1), (3, 1)])
    assert [(entry.rows, entry.deleted, entry.total_rows) for entry in feed.entries] == [
        (0, 0, 0), (2, 0, 2), (0, 0, 2), (1, 1, 2), (1, 0, 3),
    ]  # fmt: skip
    assert "1 row, 1 deleted, 1 file" in feed.text("state", "history", NAME)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 8))])
@each_format
def test_with_tombstones_files_leave_the_last_row_of_each_key_in_any_order(
    tmp_path: Path, engine: SparkEngine, table_format: str, seed: int
) -> None:
    draw = random.Random(seed)
    feed = files(tmp_path, engine, table_format, **UPSERT, keep_tombstones="P30D")
    last: dict[int, tuple[int, bool, int]] = {}
    numbers = draw.sample(range(1, 8), 7)
    for place, number in enumerate(numbers):
        rows = [
            row(draw.randrange(4), draw.randrange(100), gone=draw.random() < 0.5)
            for _ in range(draw.randrange(1, 5))
        ]
        feed.put(f"d={number}/a.ndjson", *rows)
        for one in rows:
            rank = (number, one["gone"], one["value"])
            last[one["id"]] = max(last.get(one["id"], rank), rank)
        if place in (2, 4):
            killed(feed, draw)
        feed.command("late", NAME)
        if place == 5:
            feed.decide("rewind", "--to", str(draw.randrange(1, 4)), "--replace")
        feed.load()
    kept = sorted((key, value) for key, (_, gone, value) in last.items() if not gone)
    assert feed.rows("id", "value") == kept


def test_a_replay_of_older_files_leaves_deleted_keys_deleted(tmp_path: Path, engine: SparkEngine) -> None:
    feed = files(tmp_path, engine, "delta", **UPSERT, keep_tombstones="P30D")
    feed.put("day=2026-01-01/a.ndjson", row(1, 1), row(2, 1))
    feed.put("day=2026-01-02/a.ndjson", row(1, gone=True))
    feed.load()
    first_file = ("--start", "day=2026-01-01/a.ndjson", "--end", "day=2026-01-01/a.ndjson~")
    first_day = (*first_file, "--column", "_source_file")
    feed.command("replay", NAME, *first_day)
    assert feed.rows("id", "value") == [(2, 1)]
    feed.command("replay", NAME, *first_day, "--replace")
    assert feed.rows("id", "value") == [(2, 1)]
    feed.command("replay", NAME, *first_day, "--into", "aside/first")
    feed.command("promote", NAME, "aside/first", "--reason", "because", "--yes")
    assert feed.rows("id", "value") == [(2, 1)]


def test_tombstones_expire_and_a_reset_empties_them(tmp_path: Path, engine: SparkEngine) -> None:
    feed = files(tmp_path, engine, "delta", **UPSERT, keep_tombstones="P30D")
    feed.put("d=5/a.ndjson", row(1, gone=True), row(2, 1))
    feed.load()
    beside = feed.folder / "lake" / "bronze" / f"{NAME}__tombstones"
    keys = DeltaTable(str(beside)).to_pyarrow_table().to_pylist()
    assert [(key["id"], key["_source_file"]) for key in keys] == [(1, "d=5/a.ndjson")]
    feed.put("d=4/a.ndjson", row(1, 4))
    feed.command("late", NAME)
    assert feed.rows("id", "value") == [(2, 1)]
    feed.define(target={"keep_tombstones": "PT0.001S"})
    feed.put("d=3/a.ndjson", row(1, 3), row(3, gone=True))
    feed.command("late", NAME)
    assert feed.rows("id", "value") == [(1, 3), (2, 1)]
    assert [key["id"] for key in DeltaTable(str(beside)).to_pyarrow_table().to_pylist()] == [3]
    feed.define(target={"keep_tombstones": "P30D"})
    for path in ("d=5/a.ndjson", "d=3/a.ndjson"):
        (feed.landing / path).unlink()
    feed.decide("reset", "--replace")
    feed.load()
    assert feed.rows("id", "value") == [(1, 4)]
    assert DeltaTable(str(beside)).to_pyarrow_table().num_rows == 0


HISTORY = ("id", "value", "_valid_from", "_valid_to", "_is_current")


@each_format
def test_a_history_without_deletes_takes_them_and_keeps_them(
    tmp_path: Path, engine: SparkEngine, table_format: str
) -> None:
    feed = files(tmp_path, engine, table_format, **VERSIONS)
    feed.put("a.ndjson", row(1, 1), row(2, 1))
    feed.load()
    feed.define(target={"delete_when": "gone"})
    feed.put("b.ndjson", row(1, gone=True, since=3))
    assert feed.load().rows == 1
    columns = (*HISTORY, "_is_deleted")
    assert feed.rows(*columns) == [(1, 1, 1, 3, False, True), (2, 1, 1, None, True, None)]
    feed.define(target={"delete_when": None})  # a version that a delete ended stays ended
    feed.put("c.ndjson", row(1, 1, since=5), row(2, 2, since=5))
    feed.load()
    assert feed.rows(*columns) == [
        (1, 1, 1, 3, False, True),
        (1, 1, 5, None, True, False),
        (2, 1, 1, 5, False, False),
        (2, 2, 5, None, True, False),
    ]


@each_format
def test_a_table_gains_columns_in_a_slice_that_deletes(
    tmp_path: Path, engine: SparkEngine, table_format: str
) -> None:
    feed = files(tmp_path, engine, table_format, **UPSERT, schema_mode="merge")
    feed.put("a.ndjson", row(1, 1), row(2, 1))
    feed.load()
    feed.define(source={"schema": f"{SCHEMA}, city string"})
    feed.decide("accept")
    feed.put("b.ndjson", row(1, gone=True), row(3) | {"city": "Kiel"})
    assert feed.load().deleted == 1
    assert feed.rows("id", "city") == [(2, None), (3, "Kiel")]


def test_a_merge_into_deletion_vectors_counts_the_rows_that_it_deletes(
    tmp_path: Path, engine: SparkEngine
) -> None:
    feed = files(tmp_path, engine, "delta", **UPSERT)
    feed.put("a.ndjson", *(row(number) for number in range(1, 6)))
    feed.load()
    engine.session().sql(
        f"ALTER TABLE delta.`{feed.table}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    ).collect()
    feed.put("b.ndjson", row(1, gone=True), row(2, 2), row(6), row(9, gone=True))
    outcome = feed.load()
    assert (outcome.rows, outcome.deleted) == (2, 1)
    assert feed.rows_by_spark("id", "value") == [(2, 2), (3, 0), (4, 0), (5, 0), (6, 0)]
    assert outcome.newest is not None
    assert outcome.newest.total_rows == 5


@each_format
def test_a_delete_in_a_shared_table_leaves_the_keys_of_others(
    tmp_path: Path, engine: SparkEngine, table_format: str
) -> None:
    shared = UPSERT | {"shared": True, "table": "bronze/both"}
    feed = files(tmp_path, engine, table_format, **shared)
    other = Feed(tmp_path, engine, feed.definition | {"source": {"schema": SCHEMA}}, name="other")
    feed.put("a.ndjson", row(1, 1), row(2, 1))
    other.put("a.ndjson", row(1, 7))
    feed.load()
    other.load()
    feed.put("b.ndjson", row(1, gone=True))
    assert feed.load().deleted == 1
    assert feed.rows("id", "value") == [(1, 7), (2, 1)]


def test_a_condition_that_does_not_fit_stops_the_run_before_it_changes_anything(
    tmp_path: Path, engine: SparkEngine
) -> None:
    feed = files(tmp_path, engine, "delta", **UPSERT | {"delete_when": "gone AND missing > 1"})
    feed.put("a.ndjson", row(1))
    error = feed.fail()
    assert error.code == "query"
    assert "target.delete_when" in error.message
    assert "missing" in error.message
    feed.define(target={"delete_when": "1 = 0"})
    assert "names none of them" in feed.fail().message
    assert feed.open_intent is None
    feed.define(target={"delete_when": "gone"})
    feed.load()
    assert feed.ids == [1]


def test_a_condition_that_fails_on_a_row_names_delete_when(tmp_path: Path, engine: SparkEngine) -> None:
    feed = files(tmp_path, engine, "delta", **UPSERT | {"delete_when": "1 / value > 0"})
    feed.put("a.ndjson", row(1, 1))
    feed.load()
    feed.put("b.ndjson", row(2, 0))
    error = feed.fail()
    assert (error.code, "target.delete_when" in error.message) == ("query", True)
    feed.define(target={"delete_when": "value > 0 AND 1 / value > 0"})
    feed.load()
    assert feed.ids == [2]
