"""A ``reset --replace`` that has not emptied the table yet, and another decision after it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from resources.spark.engine import SparkEngine
from tests.integration.conftest import MakeFeed
from tests.support.columns import BY_TIME, at, on_lake
from tests.support.feed import Feed

pytestmark = [pytest.mark.each_case, pytest.mark.without_jvm]
EACH_FILE = {"checkpoint": {"interval_files": 1}}
ALL_STAY = "the reset before deletes nothing any more: 3 rows of table bronze/flow stay"


def loaded(make_feed: MakeFeed, **watermark: Any) -> Feed:
    """Return a feed that has loaded three files."""
    feed = make_feed(watermark=EACH_FILE | watermark)
    for number in (1, 2, 3):
        feed.put(f"{number}.ndjson", number)
    feed.load()
    return feed


def load_all(feed: Feed) -> list[int]:
    """Run, also for late files, and return the rows."""
    feed.load()
    feed.command("late", feed.name)
    feed.load()
    return feed.ids


@pytest.mark.parametrize("tracking", ["watermark", "set"])
@pytest.mark.parametrize("to", [1, 3])
def test_set_after_a_pending_reset_keeps_each_row_once(make_feed: MakeFeed, tracking: str, to: int) -> None:
    feed = loaded(make_feed, tracking=tracking)
    feed.decide("reset", "--replace")
    effect = feed.decide("set", f'{{"path": "{to}.ndjson"}}').err
    assert ALL_STAY in effect
    assert "the first commit" not in effect
    feed.put("4.ndjson", 4)
    assert load_all(feed) == [1, 2, 3, 4]


def test_set_after_a_pending_reset_keeps_rows_of_partitions(make_feed: MakeFeed) -> None:
    feed = make_feed(watermark=EACH_FILE | {"scope": "partition"})
    for number in (1, 2, 3):
        feed.put(f"day={number}/{number}.ndjson", number)
    feed.load()
    feed.decide("reset", "--replace")
    effect = feed.decide("set", '{"paths": {"day=2": "2.ndjson"}, "closed_before": null}').err
    assert ALL_STAY in effect
    feed.put("day=4/4.ndjson", 4)
    assert load_all(feed) == [1, 2, 3, 4]


def test_set_after_a_pending_reset_keeps_the_row_of_a_file_that_comes_back(make_feed: MakeFeed) -> None:
    feed = loaded(make_feed)
    feed.decide("reset", "--replace")
    (feed.landing / "2.ndjson").rename(feed.folder / "away")
    effect = feed.decide("set", '{"path": "3.ndjson"}').err
    assert (
        "missing at the source, and taken as ingested, since their rows are in the table: 1 file (2.ndjson)"
        in effect
    )
    feed.load()
    (feed.folder / "away").rename(feed.landing / "2.ndjson")
    assert load_all(feed) == [1, 2, 3]


@pytest.mark.parametrize("change", [{"path": "./landing/b"}, {"extensions": [".json"]}])
def test_the_preview_of_accept_counts_the_rows_that_a_pending_reset_deletes(
    make_feed: MakeFeed, change: dict[str, Any]
) -> None:
    feed = make_feed(source={"path": "./landing/a"}, watermark=EACH_FILE)
    for number in (1, 2, 3):
        feed.put(f"a/{number}.ndjson", number)
    feed.load()
    feed.decide("reset", "--replace")
    feed.put("b/9.ndjson", 9)
    feed.define(source=change)
    effect = feed.decide("accept").err
    assert "the first commit deletes all 3 rows of table bronze/flow" in effect
    assert (
        "so their rows are deleted: 3 files (1.ndjson, 2.ndjson, 3.ndjson) with 3 rows in the table" in effect
    )


def test_a_rewind_and_a_plan_count_the_rows_that_a_pending_reset_deletes(make_feed: MakeFeed) -> None:
    feed = loaded(make_feed)
    feed.decide("reset", "--replace")
    (feed.landing / "2.ndjson").unlink()
    effect = feed.decide("rewind", "--to", "0", "--replace").err
    assert "the first commit deletes all 3 rows of table bronze/flow" in effect
    assert "missing at the source, so their rows are deleted: 1 file (2.ndjson) with 1 row" in effect
    assert "stay" not in effect.partition("next run")[0].partition("the first commit")[2]
    assert "the first commit deletes all 3 rows of table bronze/flow" in feed.text("plan", feed.name)


@pytest.mark.remedy("configuration", "state adopt")
def test_a_rewind_keeps_rows_of_missing_files_once_adopt_has_taken_a_reset_back(make_feed: MakeFeed) -> None:
    feed = loaded(make_feed)
    feed.decide("reset", "--replace")
    (feed.landing / "2.ndjson").unlink()
    keeping = (
        "state",
        "rewind",
        feed.name,
        "--to",
        "0",
        "--replace",
        "--gone",
        "keep",
        "--reason",
        "because",
        "--yes",
    )
    refused = feed.cli(*keeping)
    assert (refused.code, refused.error["choices"]) == (2, ["strandline state adopt flow --reason TEXT"])
    feed.decide("adopt")
    feed.command(*keeping)
    assert load_all(feed) == [1, 2, 3]


def test_an_import_keeps_rows_although_its_export_has_a_pending_reset(make_feed: MakeFeed) -> None:
    feed = loaded(make_feed)
    feed.decide("reset", "--replace")
    export = feed.folder / "export"
    export.write_text(feed.command("state", "export", feed.name).out)
    feed.load()
    feed.put("4.ndjson", 4)
    feed.load()
    (feed.landing / "2.ndjson").rename(feed.folder / "away")
    shutil.rmtree(feed.state)
    effect = feed.decide("import", str(export)).err
    assert ALL_STAY.replace("3 rows", "4 rows") in effect
    assert load_all(feed) == [1, 2, 3, 4]


@pytest.mark.needs_spark
def test_an_adopt_keeps_rows_although_a_delete_came_after_a_reset(make_feed: MakeFeed) -> None:
    feed = loaded(make_feed)
    feed.decide("reset", "--replace")
    feed.command("delete", feed.name, "--where", "id = 1", "--reason", "because", "--yes")
    effect = feed.decide("adopt").err
    assert ALL_STAY.replace("3 rows", "2 rows") in effect
    (feed.landing / "2.ndjson").unlink()
    assert load_all(feed) == [2, 3]


@pytest.mark.needs_spark
@pytest.mark.parametrize("day", [1, 3])
def test_set_of_a_column_after_a_pending_reset_keeps_each_row_once(
    tmp_path: Path, engine: SparkEngine, day: int
) -> None:
    flow, table = on_lake(tmp_path, engine, watermark=BY_TIME)
    table.put(*({"id": id_, "at": at(id_), "value": id_} for id_ in (1, 2, 3)))
    flow.run()
    flow.feed.decide("reset", "--replace")
    watermark = f'{{"at": {{"__datetime__": "2026-01-0{day}T12:00:00+00:00"}}}}'
    assert ALL_STAY in flow.feed.decide("set", watermark).err
    table.put({"id": 4, "at": at(4), "value": 4})
    flow.run()
    assert flow.ids == [1, 2, 3, 4]
