"""Columns, windows and loads by keys ask about rows that others deleted, also after a decision."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from resources.spark.engine import SparkEngine
from tests.integration.conftest import MakeFeed
from tests.support.columns import at
from tests.support.columns import on_lake as columns_on_lake
from tests.support.feed import NAME, Answer, Feed
from tests.support.window_feed import event
from tests.support.window_feed import on_lake as windows_on_lake

pytestmark = pytest.mark.each_case

REWIND = ("state", "rewind", NAME, "--to", "0", "--replace", "--reason", "x", "--yes")


def export(feed: Feed) -> str:
    """Write an export; return its path."""
    file = feed.folder / "export.jsonl"
    file.write_text(feed.command("state", "export", NAME).out)
    return str(file)


def imports(feed: Feed, file: str) -> Answer:
    """Import an export."""
    return feed.cli("state", "import", NAME, file, "--reason", "x", "--yes")


def stops(answer: Answer) -> bool:
    """Whether a command has asked about deleted rows."""
    return (answer.code, answer.error.get("code") if answer.code else "") == (4, "deleted_rows")


def delete_by_hand(feed: Feed, id_: int) -> None:
    """Delete a row as another program does."""
    DeltaTable(str(feed.table)).delete(f"id = {id_}")


@pytest.mark.parametrize("is_lost", [False, True], ids=["log", "lost log"])
def test_a_deleted_row_above_a_column_comes_back_only_after_an_answer(
    tmp_path: Path, engine: SparkEngine, is_lost: bool
) -> None:
    flow, source = columns_on_lake(tmp_path / "project", engine)
    feed = flow.feed
    source.put(*({"id": n, "at": at(n), "value": n} for n in (1, 2, 3)))
    flow.run()
    file = export(feed)
    for number in (4, 5):
        source.add({"id": number, "at": at(number), "value": number})
        flow.run()
    if is_lost:
        shutil.rmtree(feed.state)
    assert imports(feed, file).code == 0
    flow.run()
    assert flow.ids == [1, 2, 3, 4, 5]
    delete_by_hand(feed, 4)
    if is_lost:
        shutil.rmtree(feed.state)
    assert stops(imports(feed, file))
    feed.decide("adopt", "--deleted", "load")
    assert stops(feed.cli(*REWIND))
    feed.decide("import", file, "--deleted", "load")
    flow.run()
    assert flow.ids == [1, 2, 3, 4, 5]


def test_a_deleted_row_of_a_window_comes_back_only_after_an_answer(
    tmp_path: Path, engine: SparkEngine
) -> None:
    flow = windows_on_lake(tmp_path / "project", engine)
    flow.table.put(event(1, "2020-01-01T10:00"), event(2, "2020-01-02T10:00"))
    flow.run("2020-01-03")
    file = export(flow.feed)
    flow.table.put(event(3, "2020-01-03T10:00"), event(4, "2020-01-04T10:00"))
    flow.run("2020-01-06")
    assert imports(flow.feed, file).code == 0
    flow.run("2020-01-06")
    delete_by_hand(flow.feed, 3)
    flow.feed.decide("adopt")
    assert stops(flow.feed.cli(*REWIND))
    assert stops(imports(flow.feed, file))
    flow.feed.decide("import", file, "--deleted", "load")
    flow.run("2020-01-06")
    assert [row[0] for row in flow.rows] == [1, 2, 3, 4]


@pytest.mark.parametrize("load", ["merge_upsert", "append after a delete"])
def test_a_row_deleted_before_an_adopt_is_asked_about_where_all_rows_are_counted(
    make_feed: MakeFeed, load: str
) -> None:
    keys = {"load": "merge_upsert", "merge_keys": ["id"]} if load == "merge_upsert" else {"load": "append"}
    feed = make_feed(
        watermark={"checkpoint": {"interval_files": 1}},
        source={"schema": "id long"},
        target={**keys, "origin_columns": True},
    )
    for number in (1, 2):
        feed.put(f"{number}.ndjson", number, number * 10)
    feed.load()
    if load != "merge_upsert":
        feed.command("delete", NAME, "--where", "id = 10", "--reason", "x", "--yes")
    feed.decide("adopt")
    rewind = ("state", "rewind", NAME, "--to", "0", "--replace", "--reason", "x", "--yes")
    assert feed.copy(feed.folder / "copy").cli(*rewind).code == 0
    delete_by_hand(feed, 20)
    feed.decide("adopt", "--deleted", "load")
    assert stops(feed.cli(*rewind))
