"""Options of an scd2 dataflow: what makes a version, and how its columns are called (docs/reference/loads.md)."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.support.feed import NAME, Feed, dies_after

VERSIONS: dict[str, Any] = {"load": "scd2", "merge_keys": ["id"], "effective_column": "since"}
NAMES = {"valid_from": "since_day", "valid_to": "until_day", "is_current": "is_last"}
HISTORY = ("id", "value", "note", "_valid_from", "_valid_to", "_is_current")
each_format = pytest.mark.parametrize("table_format", ["delta", "iceberg"])


def files(folder: Path, engine: SparkEngine, table_format: str, **target: Any) -> Feed:
    schema = "id long, value long, note string, since date"
    return Feed(
        folder,
        engine,
        {"source": {"schema": schema}, "target": {"format": table_format, **VERSIONS, **target}},
    )


def row(number: int, value: int, note: str, day: int) -> dict[str, Any]:
    return {"id": number, "value": value, "note": note, "since": f"2026-01-{day:02}"}


def day(number: int) -> dt.date:
    return dt.date(2026, 1, number)


@pytest.mark.parametrize("option", [{"track": ["VALUE"]}, {"ignore": ["note"]}], ids=["track", "ignore"])
@each_format
def test_only_a_tracked_column_makes_a_version_which_keeps_what_it_began_with(
    tmp_path: Path, engine: SparkEngine, table_format: str, option: dict[str, Any]
) -> None:
    feed = files(tmp_path, engine, table_format, **option)
    feed.put("a.ndjson", row(1, 1, "a", 1), row(1, 1, "b", 2), row(2, 1, "a", 1))
    feed.load()
    feed.put("b.ndjson", row(1, 1, "c", 5), row(2, 2, "c", 5))
    assert feed.load().rows == 2  # the end of a version, and a new one
    assert feed.rows(*HISTORY) == [
        (1, 1, "a", day(1), None, True),
        (2, 1, "a", day(1), day(5), False),
        (2, 2, "c", day(5), None, True),
    ]
    feed.put("c.ndjson", row(2, 2, "d", 5), row(1, 7, "z", 1))  # of the time of a version
    feed.load()
    assert feed.rows(*HISTORY) == [
        (1, 7, "z", day(1), None, True),
        (2, 1, "a", day(1), day(5), False),
        (2, 2, "c", day(5), None, True),
    ]


def test_other_tracked_columns_count_for_later_rows(tmp_path: Path, engine: SparkEngine) -> None:
    feed = files(tmp_path, engine, "delta", track=["value"])
    feed.put("a.ndjson", row(1, 1, "a", 1), row(1, 1, "b", 2))
    feed.load()
    feed.define(target={"track": ["note"]})
    feed.put("b.ndjson", row(1, 2, "a", 3), row(1, 2, "c", 4))
    feed.load()
    assert feed.rows(*HISTORY) == [
        (1, 1, "a", day(1), day(4), False),
        (1, 2, "c", day(4), None, True),
    ]


@pytest.mark.parametrize("key", ["track", "ignore"])
def test_a_column_that_the_rows_lack_stops_the_run_at_its_key(
    tmp_path: Path, engine: SparkEngine, key: str
) -> None:
    feed = files(tmp_path, engine, "delta", **{key: ["valeu"]})
    feed.put("a.ndjson", row(1, 1, "a", 1))
    error = feed.fail()
    assert error.code == "query"
    assert f"target.{key}" in error.message
    assert "value" in error.message
    assert feed.open_intent is None
    feed.define(target={key: ["value"]})
    feed.load()
    assert feed.ids == [1]


@pytest.mark.full
@pytest.mark.parametrize("partition_by", [[], ["is_last"]], ids=["plain", "partitioned"])
@each_format
def test_the_columns_of_a_history_have_the_names_of_its_definition(
    tmp_path: Path, engine: SparkEngine, table_format: str, partition_by: list[str]
) -> None:
    feed = files(
        tmp_path, engine, table_format, names=NAMES, open_end="9999-12-31", partition_by=partition_by
    )
    columns = ("id", "value", *NAMES.values())
    feed.put("a.ndjson", row(1, 1, "a", 1), row(2, 1, "a", 1))
    feed.load()
    feed.put("b.ndjson", row(1, 2, "a", 5))
    for step in (Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED):
        with suppress(KeyboardInterrupt):
            feed.run(dies_after(step))
    feed.load()
    end = dt.date(9999, 12, 31)
    expected = [
        (1, 1, day(1), day(5), False),
        (1, 2, day(5), end, True),
        (2, 1, day(1), end, True),
    ]
    assert feed.rows_by_spark(*columns) == expected
    feed.define(target={"delete_when": "note = 'gone'"})
    feed.put("c.ndjson", row(2, 0, "gone", 7))
    feed.load()
    assert feed.rows_by_spark(*columns, "_is_deleted")[2] == (2, 1, day(1), day(7), False, True)
    feed.define(target={"load": "scd2", "merge_keys": ["id", "value"]})  # the keys of versions are looked up
    feed.put("d.ndjson", row(2, 1, "a", 9))
    feed.load()
    assert feed.rows_by_spark(*columns)[-1] == (2, 1, day(9), end, True)


@each_format
def test_other_names_or_another_end_stop_before_the_table_would_hold_both(
    tmp_path: Path, engine: SparkEngine, table_format: str
) -> None:
    feed = files(tmp_path, engine, table_format)
    feed.put("a.ndjson", row(1, 1, "a", 1))
    feed.load()
    feed.put("b.ndjson", row(1, 2, "a", 2))
    for change, part in (({"names": NAMES}, "target.names"), ({"open_end": "9999-12-31"}, "target.open_end")):
        feed.define(target=change)
        error = feed.fail()
        assert (error.code, part in error.message) == ("definition_changed", True)
        assert error.choices == (f"strandline state reset {NAME} --replace --reason TEXT",)
    feed.decide("reset", "--replace")
    feed.load()
    end = dt.date(9999, 12, 31)
    assert feed.rows("id", "value", *NAMES.values()) == [
        (1, 1, day(1), day(2), False),
        (1, 2, day(2), end, True),
    ]


def test_an_open_end_that_is_no_value_of_the_time_stops_the_run(tmp_path: Path, engine: SparkEngine) -> None:
    feed = files(tmp_path, engine, "delta", open_end="never")
    feed.put("a.ndjson", row(1, 1, "a", 1))
    error = feed.fail()
    assert error.code == "query"
    assert "target.open_end: expected a value of type date" in error.message
    feed.define(target={"open_end": "9999-12-31"})
    feed.load()
    assert feed.ids == [1]
