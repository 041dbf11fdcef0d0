"""Files that are away while an operator decides: when they come back, each of their rows is in the table once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed
from tests.support.moves import restore, write_export

pytestmark = [pytest.mark.each_case, pytest.mark.without_jvm]

ONE_BY_ONE = {"checkpoint": {"interval_files": 1}}


def load_files(make_feed: MakeFeed, count: int, **watermark: Any) -> Feed:
    """A dataflow that has loaded so many files, one by one."""
    feed = make_feed(watermark=ONE_BY_ONE | watermark)
    put_and_load(feed, *range(1, count + 1))
    return feed


def put_and_load(feed: Feed, *numbers: int) -> None:
    for number in numbers:
        feed.put(f"{number}.ndjson", number)
    feed.load()


def take_away(feed: Feed, path: str) -> Callable[[], Path]:
    """Take a file away; return what brings it back."""
    away = (feed.landing / path).rename(feed.folder / "away")
    return lambda: away.rename(feed.landing / path)


def sweep(feed: Feed) -> None:
    """Load what is new, what is late, and what the sweep has freed."""
    feed.load()
    feed.command("late", NAME)
    feed.load()


@pytest.mark.parametrize("lost", [True, False])
@pytest.mark.parametrize("watermark", [{}, {"scope": "partition"}, {"tracking": "set"}])
def test_a_file_above_the_watermark_of_an_import_is_not_doubled(
    make_feed: MakeFeed, watermark: dict[str, Any], lost: bool
) -> None:
    feed = load_files(make_feed, 3, **watermark)
    file = write_export(feed)
    put_and_load(feed, 4, 5, 6)
    if lost:
        shutil.rmtree(feed.state)
    bring_back = take_away(feed, "5.ndjson")
    note = (
        "missing at the source, and taken as ingested, since their rows are in the table: 1 file (5.ndjson)"
    )
    assert note in feed.decide("import", file).err
    feed.load()
    bring_back()
    sweep(feed)
    assert feed.ids == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(("gone", "ids"), [("keep", [1, 2, 3, 4, 5, 6]), ("delete", [1, 2, 3, 4, 5, 6])])
def test_a_file_away_while_a_reset_is_taken_back_is_not_doubled(
    make_feed: MakeFeed, gone: str, ids: list[int]
) -> None:
    feed = load_files(make_feed, 6)
    feed.decide("reset", "--replace")
    bring_back = take_away(feed, "5.ndjson")
    feed.decide("rewind", "--to", "3", "--replace", "--gone", gone)
    feed.load()
    assert (5 in feed.ids) == (gone == "keep")
    bring_back()
    sweep(feed)
    assert feed.ids == ids


def test_a_file_away_while_an_empty_export_is_imported_is_not_doubled(make_feed: MakeFeed) -> None:
    feed = load_files(make_feed, 3)
    feed.decide("reset")
    file = write_export(feed)
    feed.decide("rewind", "--to", "3")
    put_and_load(feed, 4)
    bring_back = take_away(feed, "2.ndjson")
    feed.decide("import", file)
    feed.load()
    bring_back()
    sweep(feed)
    assert feed.ids == [1, 2, 3, 4]


def test_the_note_on_unknown_contents_counts_files_that_are_away(make_feed: MakeFeed) -> None:
    feed = load_files(make_feed, 2, duplicates="skip")
    take_away(feed, "1.ndjson")
    shutil.rmtree(feed.state)
    assert "the log has no checksum of 2 files (2.ndjson, 1.ndjson)" in feed.decide("adopt").err


@pytest.mark.parametrize("state", ["lost", "older"])
def test_adopt_asks_about_deleted_rows_of_files_that_are_away(make_feed: MakeFeed, state: str) -> None:
    feed = load_files(make_feed, 1)
    shutil.copytree(feed.state, feed.folder / "older")
    put_and_load(feed, 2, 3)
    DeltaTable(str(feed.table)).delete("id = 2")
    bring_back = take_away(feed, "2.ndjson")
    shutil.rmtree(feed.state)
    if state == "older":
        restore(feed.folder / "older", feed.state)
    asked = feed.cli("state", "adopt", NAME, "--reason", "because", "--yes")
    assert (asked.code, asked.error["code"]) == (4, "deleted_rows")
    assert asked.error["choices"] == [f"strandline state adopt {NAME} --deleted load --reason TEXT"]
    preview = feed.decide("adopt", "--deleted", "load").err
    assert "deleted rows of files that are missing at the source now come back if their file does" in preview
    bring_back()
    sweep(feed)
    assert feed.ids == [1, 2, 3]


def test_skip_says_that_it_holds_for_the_named_files_only(make_feed: MakeFeed) -> None:
    feed = load_files(make_feed, 4)
    DeltaTable(str(feed.table)).delete("id in (2, 3)")
    bring_back = take_away(feed, "3.ndjson")
    shutil.rmtree(feed.state)
    preview = feed.decide("adopt", "--deleted", "skip").err
    assert "deleted rows of files that are missing at the source now come back if their file does" in preview
    bring_back()
    sweep(feed)
    assert feed.ids == [1, 3, 4]
