"""Rows of files above a column watermark: all files are read, and each row is loaded once (docs/reference/file-formats.md)."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partitions.column.predicates import ColumnRange, rows_in_ranges
from resources.kinds.column.opening import column_look, open_column
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.support.columns import BY_TIME, Columns, at
from tests.support.crash_runner import crash
from tests.support.feed import Feed
from tests.support.workbooks import xlsx

BY_ID = {"type": "column", "columns": ["id"]}


def on_files(folder: Path, engine: SparkEngine, **definition: Any) -> Columns:
    """Append rows of NDJSON above the time, unless the definition says otherwise."""
    source = {"schema": "id long, at timestamp, value long"} | definition.pop("source", {})
    return Columns(Feed(folder, engine, {"watermark": BY_TIME, **definition, "source": source}))


def put(flow: Columns, path: str, *rows: tuple[int, datetime | None, int]) -> None:
    flow.feed.put(path, *({"id": id_, "at": time and time.isoformat(), "value": value} for id_, time, value in rows))  # fmt: skip


def test_rows_above_the_value_are_read_once_from_any_file(tmp_path: Path, engine: SparkEngine) -> None:
    flow = on_files(tmp_path, engine)
    put(flow, "day=1/b.ndjson", (1, at(1), 10), (2, at(2), 20))
    assert flow.run().status == "committed"
    assert flow.run().status == "nothing"
    put(flow, "day=1/a[1].ndjson.gz", (3, at(2, 1), 30), (4, at(2), 40))
    put(flow, "day=1/b.ndjson", (1, at(1), 11), (5, at(3), 50))  # replaced under its name
    assert flow.run().rows == 2
    assert flow.feed.rows("id", "value", "day", "_source_file") == [
        (1, 10, "1", "day=1/b.ndjson"),
        (2, 20, "1", "day=1/b.ndjson"),
        (3, 30, "1", "day=1/a[1].ndjson.gz"),
        (5, 50, "1", "day=1/b.ndjson"),
    ]
    assert flow.watermark == {"at": at(3)}


def test_numbers_and_text_are_read_to_the_highest_there_is(tmp_path: Path, engine: SparkEngine) -> None:
    flow = on_files(tmp_path, engine, watermark=BY_ID, source={"schema": "id string, value long"})
    flow.feed.put("a.ndjson", {"id": "b", "value": 1}, {"id": "é", "value": 2}, {"value": 3})
    flow.run()
    flow.feed.put("b.ndjson", {"id": "é", "value": 4}, {"id": "z", "value": 5}, {"value": 6}, {"id": "𝄞", "value": 7})  # fmt: skip
    flow.run()
    assert [value for (value,) in flow.feed.rows("value")] == [1, 2, 3, 7]
    assert flow.watermark == {"id": "𝄞"}


@pytest.mark.parametrize(("zone", "hour"), [(None, 12), ("Europe/Berlin", 11)])
@pytest.mark.parametrize("format_", ["ndjson", "csv"])
def test_text_without_an_offset_is_utc_or_of_the_zone_that_the_reader_is_told(
    tmp_path: Path, engine: SparkEngine, format_: str, zone: str | None, hour: int
) -> None:
    options = {} if zone is None else {"options": {"timeZone": zone}}
    source = {"format": format_, "schema": "id long, at timestamp", **options}
    flow = on_files(tmp_path, engine, source=source)
    line = {"ndjson": '{"id": 1, "at": "2026-01-01T12:00:00"}', "csv": "id,at\n1,2026-01-01T12:00:00"}
    flow.feed.put_text(f"a.{format_}", line[format_] + "\n")
    flow.run()
    assert flow.watermark == {"at": at(1).replace(hour=hour)}


def test_rows_younger_than_settle_and_open_days_wait(tmp_path: Path, engine: SparkEngine) -> None:
    flow = on_files(tmp_path, engine, watermark={"type": "column", "columns": ["on"]}, source={"schema": "id long, on date"})  # fmt: skip
    flow.feed.put("a.ndjson", {"id": 1, "on": "2026-05-30"}, {"id": 2, "on": "2026-05-31"})
    flow.run(now="2026-05-31")
    assert (flow.ids, flow.watermark) == ([1], {"on": date(2026, 5, 30)})
    flow.run(now="2026-06-01")
    assert flow.ids == [1, 2]


def test_texts_of_json_are_times_if_the_watermark_is_above_them(tmp_path: Path, engine: SparkEngine) -> None:
    flow = on_files(tmp_path, engine, source={"format": "json", "schema": None})
    flow.feed.put_bytes(
        "a.json", b'[{"id": 1, "at": "2026-01-01T23:00:00-05:00", "day": "2026-01-01"}, {"id": 2}]'
    )
    flow.run()
    assert flow.watermark == {"at": datetime(2026, 1, 2, 4, tzinfo=UTC)}
    flow.feed.put_bytes(
        "b.json", b'[{"id": 3, "at": "2026-01-02T03:00:00Z"}, {"id": 4, "at": "2026-01-02T05:00:00Z"}]'
    )
    flow.run()
    assert sorted(flow.feed.rows("id", "day"), key=str) == [(1, "2026-01-01"), (2, None), (4, None)]


@pytest.mark.parametrize("form", ["parquet", "excel"])
def test_other_formats_are_read_alike_and_inferred(tmp_path: Path, engine: SparkEngine, form: str) -> None:
    flow = on_files(tmp_path, engine, watermark=BY_ID, source={"format": form, "schema": None})
    assert flow.run().status == "nothing"

    def put_ids(name: str, *ids: int) -> None:
        if form == "parquet":
            flow.feed.put_parquet(f"{name}.parquet", *ids)
        else:
            flow.feed.put_bytes(f"{name}.xlsx", xlsx([["id"], *([number] for number in ids)]))

    put_ids("a", 1, 5)
    flow.run()
    put_ids("b", 3, 7)
    flow.run()
    assert (flow.ids, flow.watermark) == ([1, 5, 7], {"id": 7})
    assert not [path for path in (tmp_path / "lake" / "_staging").rglob("*") if path.is_file()]


def test_a_bad_record_of_any_file_loads_nothing_and_is_named(tmp_path: Path, engine: SparkEngine) -> None:
    flow = on_files(tmp_path, engine)
    put(flow, "a.ndjson", (1, at(1), 1))
    flow.run()
    flow.feed.put_text("b.ndjson", '{"id": 2, "at": "2026-01-02T12:00:00Z"}\n{"id": "x"}\n')
    put(flow, "c.ndjson", (3, at(3), 3))
    error = flow.fail()
    assert "file b.ndjson, line 2: field id: expected bigint, found text" in error.message
    flow.feed.put_text("b.ndjson", '{"id": 2, "at": "2026-01-02T12:00:00Z", "more": 1}\n')
    assert "file b.ndjson, line 1: expected the fields of the declared schema, found more" in flow.fail().message  # fmt: skip
    assert (flow.ids, flow.feed.open_intent) == ([1], None)
    flow.feed.put_text("b.ndjson", '{"id": 2, "at": "2026-01-02T12:00:00Z"}\n')
    flow.run()
    assert flow.ids == [1, 2, 3]


@pytest.mark.full
def test_a_record_that_only_the_write_meets_gives_up(tmp_path: Path, engine: SparkEngine) -> None:
    flow = on_files(tmp_path, engine, watermark=BY_TIME | {"nulls": "skip"})
    put(flow, "a.ndjson", (1, at(1), 1))
    flow.feed.put_text("b.ndjson.gz", f'{{"id": 2, "at": "{at(2).isoformat()}"}}\n{{"id": 3, "value": "s3cret"}}\n')  # fmt: skip
    assert "file b.ndjson.gz, line 2: field value: expected bigint, found text" in flow.fail().message
    assert (flow.ids, flow.feed.open_intent, flow.watermark) == ([], None, {})
    put(flow, "b.ndjson.gz", (2, at(2), 2))
    flow.run()
    assert flow.ids == [1, 2]


def test_a_column_that_no_file_has_begins_nothing(tmp_path: Path, engine: SparkEngine) -> None:
    flow = on_files(tmp_path, engine, watermark={"type": "column", "columns": ["gone"]})
    put(flow, "a.ndjson", (1, at(1), 1))
    assert "found gone; the names are " in flow.fail().message
    assert flow.feed.open_intent is None


@pytest.mark.parametrize("step", [Step.INTENT_PUT, pytest.param(Step.WRITTEN, marks=pytest.mark.full)])
def test_a_killed_client_leaves_each_row_once(tmp_path: Path, engine: SparkEngine, step: Step) -> None:
    flow = on_files(tmp_path, engine, watermark=BY_ID)
    put(flow, "a.ndjson", (1, at(1), 1), (2, at(1), 2))
    crash(flow.feed, step)
    put(flow, "b.ndjson", (3, at(1), 3))
    flow.run()
    assert flow.ids == [1, 2, 3]
    assert (flow.watermark, flow.feed.open_intent) == ({"id": 3}, None)


def test_new_rows_are_told_by_listing_and_clock_without_spark(tmp_path: Path, engine: SparkEngine) -> None:
    flow = on_files(tmp_path, engine, watermark=BY_TIME | {"settle": "PT1H"})

    def new_rows(now: datetime) -> bool:
        feed = Feed(flow.feed.folder, SparkEngine(remote="sc://127.0.0.1:1"), flow.feed.definition)
        return column_look(feed.platform, feed.dataflow).has_new_rows(feed.newest, now)

    now = datetime.now(UTC)
    assert new_rows(now)
    put(flow, "a.ndjson", (1, at(1), 1), (2, now - timedelta(minutes=5), 2))
    flow.run(now=now.isoformat())
    assert (flow.ids, new_rows(now)) == ([1], False)
    assert not new_rows(now + timedelta(minutes=30))
    assert new_rows(now + timedelta(minutes=90))
    later = now + timedelta(hours=2)
    flow.run(now=later.isoformat())
    assert (flow.ids, new_rows(later)) == ([1, 2], False)
    put(flow, "b.ndjson", (3, at(1), 3))
    assert new_rows(later)
    assert flow.run(now=later.isoformat()).status == "nothing"
    assert not new_rows(later)
    flow.feed.decide("rewind", "--to", "1")
    assert new_rows(later)


def test_the_condition_reaches_the_folders_and_the_footers_of_parquet_files(
    tmp_path: Path, engine: SparkEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    source = {"format": "parquet", "schema": "id long, day date"}
    flow = on_files(tmp_path, engine, watermark=BY_ID, source=source)
    for day in (1, 2):
        flow.feed.put_parquet(f"day=2026-01-0{day}/a.parquet", day)
    kind = open_column(flow.feed.platform, flow.feed.dataflow)
    above = column_look(flow.feed.platform, flow.feed.dataflow).above
    spark = engine.session()
    pinned = kind.reading.pin(spark, ())
    assert pinned is not None
    for column, value, expected in (
        ("id", 1, r"PushedFilters: \[IsNotNull\(id\), GreaterThan\(id,1\)\]"),
        ("day", date(2026, 1, 1), r"PartitionFilters: \[[^\]]*day"),
    ):
        part = rows_in_ranges([ColumnRange(column, value, None)])
        rows = above.read_rows(spark, [part], pinned)
        rows.explain()
        assert re.search(expected, capsys.readouterr().out)
        assert [row["id"] for row in rows.collect()] == [2]


def test_what_the_reader_of_a_format_has_to_say_is_told(tmp_path: Path, engine: SparkEngine) -> None:
    flow = on_files(tmp_path, engine, watermark=BY_ID, source={"format": "parquet", "schema": None})
    rows = pa.table({"id": [1], "at": pa.array([1_001], pa.timestamp("ns"))})
    with pa.BufferOutputStream() as buffer:
        pq.write_table(rows, buffer)
    flow.feed.put_bytes("a.parquet", buffer.getvalue().to_pybytes())
    assert any("nanoseconds are cut to microseconds" in warning for warning in flow.run().warnings)


def test_infinity_and_nan_of_files_bound_nothing(tmp_path: Path, engine: SparkEngine) -> None:
    by_value = {"type": "column", "columns": ["value"]}
    flow = on_files(tmp_path, engine, source={"schema": "id long, value double"}, watermark=by_value)
    flow.feed.put(
        "1.ndjson", *({"id": number, "value": value} for number, value in enumerate([1.5, "NaN", "Infinity"]))
    )
    flow.run()
    flow.feed.put("2.ndjson", {"id": 3, "value": 2.5})
    flow.run()
    assert (flow.ids, flow.watermark) == ([0, 3], {"value": 2.5})
