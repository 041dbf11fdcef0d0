"""Each command that an error about rows or columns names leads on, on Spark: it is run, and each row is there once."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.spark.engine import SparkEngine
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed
from tests.support.followed import follow
from tests.support.streams import Stream, definition

pytestmark = pytest.mark.full

RESET = f"strandline state reset {NAME} --replace --reason TEXT"


@pytest.mark.remedy("unknown_field", "state reset --replace")
def test_new_fields_are_loaded_by_a_wider_schema_and_the_reset_that_is_named(make_feed: MakeFeed) -> None:
    feed = make_feed()
    feed.put("1.ndjson", 1)
    feed.load()
    feed.put("2.ndjson", {"id": 2, "more": "x"})
    error = feed.fail()
    assert error.code == "unknown_field"
    assert RESET.removesuffix(" TEXT") in error.message
    feed.define(source={"schema": "id long, more string"})
    follow(feed, [RESET], [(1, None), (2, "x")], "id", "more")


@pytest.mark.remedy("incompatible_schema", "state reset --replace")
def test_a_new_column_of_sql_is_loaded_by_the_reset_that_is_named(make_feed: MakeFeed) -> None:
    feed = make_feed(sql="SELECT id, _source_file FROM input")
    feed.put("1.ndjson", 1)
    feed.load()
    feed.define(sql="SELECT id, id + 1 AS more, _source_file FROM input")
    feed.put("2.ndjson", 2)
    error = feed.fail()
    assert error.code == "incompatible_schema"
    follow(feed, error.choices, [(1, 2), (2, 3)], "id", "more")


@pytest.mark.remedy("conflict", "stream flush")
def test_waiting_rows_are_flushed_by_the_command_that_a_purge_names(
    tmp_path: Path, engine: SparkEngine
) -> None:
    stream = Stream(Feed(tmp_path / "project", engine, definition()))
    stream.append((1, "a", 0), (2, "a", 10), (3, "a", 20))
    stream.feed.load()
    purge = ("delete", NAME, "--where", "id = 3", "--purge", "--reason", "x", "--yes")
    error = stream.feed.cli(*purge).error
    assert error["code"] == "conflict"
    assert f"`strandline stream flush {NAME}`" in error["message"]
    stream.feed.command("stream", "flush", NAME, "--reason", "x", "--yes")
    stream.feed.command(*purge)
    assert (stream.ids(), stream.ids("__buffer")) == ([1, 2], [])
