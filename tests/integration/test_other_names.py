"""Files of another root that count as loaded under other names, and decisions that go back from there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed
from tests.support.moves import restore

pytestmark = [pytest.mark.each_case, pytest.mark.without_jvm]
EACH_FILE = {"checkpoint": {"interval_files": 1}}


def renamed(make_feed: MakeFeed, other_name: str, **watermark: Any) -> Feed:
    """Return a feed of another root: its row 2 was loaded from 3.ndjson, which has another name there.

    The state as it was before that load is in ``export``, the lake in ``old_lake``.
    """
    feed = make_feed(source={"path": "./landing/a"}, watermark=EACH_FILE | watermark)
    feed.put("a/1.ndjson", 1)
    feed.load()
    (feed.folder / "export").write_text(feed.command("state", "export", NAME).out)
    shutil.copytree(feed.table, old_lake(feed))
    feed.put("a/3.ndjson", 2)
    feed.load()
    feed.put("b/1.ndjson", 1)
    feed.put(f"b/{other_name}", 2)
    feed.define(source={"path": "./landing/b"})
    feed.decide("accept", "--below", "loaded")
    return feed


def old_lake(feed: Feed) -> Path:
    """Return the folder of the older lake."""
    return feed.folder / "old_lake"


def load_all(feed: Feed) -> list[int]:
    """Run, also for late files, and return the rows."""
    feed.load()
    feed.command("late", NAME)
    feed.load()
    return feed.ids


@pytest.mark.remedy("other_files", "state adopt --deleted load", "state adopt --deleted skip")
@pytest.mark.parametrize("tracking", ["watermark", "set"])
@pytest.mark.parametrize(("answer", "rows"), [("load", [1, 2]), ("skip", [1])])
def test_adopt_of_an_older_table_asks_about_files_loaded_under_other_names(
    make_feed: MakeFeed, tracking: str, answer: str, rows: list[int]
) -> None:
    feed = renamed(make_feed, "0.ndjson", tracking=tracking)
    restore(old_lake(feed), feed.table)
    asked = feed.cli("state", "adopt", NAME, "--reason", "because", "--yes")
    assert (asked.code, asked.error["code"]) == (4, "other_files")
    assert "1 file (0.ndjson)" in asked.error["message"]
    assert asked.error["choices"] == [
        f"strandline state adopt {NAME} --deleted {word} --reason TEXT" for word in ("load", "skip")
    ]
    assert "1 file (0.ndjson)" in feed.decide("adopt", "--deleted", answer).err
    assert load_all(feed) == rows


@pytest.mark.parametrize("tracking", ["watermark", "set"])
def test_adopt_of_the_same_table_keeps_files_loaded_under_other_names(
    make_feed: MakeFeed, tracking: str
) -> None:
    feed = renamed(make_feed, "2.ndjson", tracking=tracking)
    effect = feed.decide("adopt").err
    assert "count as loaded under other names, so never read: 1 file (2.ndjson)" in effect
    assert load_all(feed) == [1, 2]


@pytest.mark.remedy("other_names", "state adopt")
def test_import_below_files_loaded_under_other_names_stops_and_adopt_leads_on(make_feed: MakeFeed) -> None:
    feed = renamed(make_feed, "2.ndjson")
    refused = feed.cli("state", "import", NAME, str(feed.folder / "export"), "--reason", "because", "--yes")
    assert (refused.code, refused.error["code"]) == (2, "other_names")
    assert "1 file (2.ndjson)" in refused.error["message"]
    assert refused.error["choices"][0] == f"strandline state adopt {NAME} --reason TEXT"
    feed.decide("adopt")
    assert load_all(feed) == [1, 2]


def test_import_of_a_set_keeps_files_loaded_under_other_names(make_feed: MakeFeed) -> None:
    feed = renamed(make_feed, "2.ndjson", tracking="set")
    feed.decide("import", str(feed.folder / "export"))
    assert load_all(feed) == [1, 2]


@pytest.mark.parametrize("options", [["--replace"], []])
@pytest.mark.parametrize("taken_back_by", ["adopt", "rewind"])
def test_a_reset_that_is_taken_back_keeps_files_loaded_under_other_names(
    make_feed: MakeFeed, options: list[str], taken_back_by: str
) -> None:
    feed = renamed(make_feed, "2.ndjson")
    assert feed.newest is not None
    number = feed.newest.number
    feed.decide("reset", *options)
    feed.decide(taken_back_by, *(["--to", str(number)] if taken_back_by == "rewind" else []))
    assert load_all(feed) == [1, 2]


def test_a_table_loaded_again_no_longer_counts_files_under_other_names(make_feed: MakeFeed) -> None:
    feed = renamed(make_feed, "2.ndjson")
    feed.decide("reset", "--replace")
    (feed.landing / "b/2.ndjson").rename(feed.folder / "away")
    feed.load()
    (feed.folder / "away").rename(feed.landing / "b/2.ndjson")
    assert "other names" not in feed.decide("adopt").err
    assert load_all(feed) == [1, 2]


def test_rewind_after_a_reset_stops_at_files_loaded_under_other_names(make_feed: MakeFeed) -> None:
    feed = renamed(make_feed, "2.ndjson")
    feed.decide("reset")
    refused = feed.cli("state", "rewind", NAME, "--to", "1", "--replace", "--reason", "because", "--yes")
    assert (refused.code, refused.error["code"]) == (2, "other_names")


def test_set_after_a_reset_names_files_loaded_under_other_names(make_feed: MakeFeed) -> None:
    feed = renamed(make_feed, "2.ndjson")
    feed.decide("reset", "--replace")
    effect = feed.decide("set", '{"path": "1.ndjson"}').err
    assert "read again, so their rows are there twice: 1 file (2.ndjson)" in effect


@pytest.mark.parametrize("is_lost", [True, False])
@pytest.mark.parametrize("tracking", ["watermark", "set"])
@pytest.mark.parametrize(("answer", "rows"), [("load", [1, 2, 2]), ("skip", [1, 2])])
def test_adopt_with_a_lost_or_older_state_asks_whether_files_have_other_names(
    make_feed: MakeFeed, answer: str, rows: list[int], tracking: str, is_lost: bool
) -> None:
    feed = make_feed(source={"path": "./landing/a"}, watermark=EACH_FILE | {"tracking": tracking})
    feed.put("a/1.ndjson", 1)
    feed.load()
    old_state = shutil.copytree(feed.state, feed.folder / "old_state")
    feed.put("a/3.ndjson", 2)
    feed.load()
    feed.put("b/1.ndjson", 1)
    feed.put("b/2.ndjson", 2)
    feed.define(source={"path": "./landing/b"})
    feed.decide("accept", "--below", "loaded")
    shutil.rmtree(feed.state)
    if not is_lost:
        restore(old_state, feed.state)
    asked = feed.cli("state", "adopt", NAME, "--reason", "because", "--yes")
    assert (asked.code, asked.error["code"]) == (4, "other_files")
    assert (
        "found none of 1 file (2.ndjson), and rows of files that the source lacks: 1 file (3.ndjson)"
        in asked.error["message"]
    )
    assert "1 file (2.ndjson)" in feed.decide("adopt", "--deleted", answer).err
    assert load_all(feed) == rows
