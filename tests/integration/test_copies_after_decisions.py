"""Copies under ``duplicates: skip`` after an operator's decision (docs/reference/files.md, Duplicates)."""

from __future__ import annotations

import shutil

import pytest
from deltalake import DeltaTable

from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed
from tests.support.moves import restore

pytestmark = [pytest.mark.each_case, pytest.mark.without_jvm]
UPSERT = {"load": "merge_upsert", "merge_keys": ["id"]}


def copied(make_feed: MakeFeed, **definition: object) -> tuple[Feed, str]:
    """``b/1.ndjson`` is skipped as the copy of ``a/1.ndjson``; the state of that time is exported."""
    watermark = {"duplicates": "skip", "checkpoint": {"interval_files": 1}}
    feed = make_feed(watermark=watermark, **definition)
    feed.put("a/1.ndjson", 1)
    feed.load()
    feed.put("b/1.ndjson", 1)
    feed.put("c/2.ndjson", 2)
    feed.load()
    export = feed.folder / "export"
    export.write_text(feed.command("state", "export", NAME).out)
    return feed, str(export)


def replay(feed: Feed, *more: str) -> None:
    feed.command("replay", NAME, "--start", "a/", "--end", "b/", "--replace", *more)


def sweep(feed: Feed) -> None:
    feed.load()
    feed.command("late", NAME)
    feed.load()


def test_an_import_frees_the_copy_of_an_original_that_was_corrected_since(make_feed: MakeFeed) -> None:
    feed, export = copied(make_feed)
    feed.put("a/1.ndjson", 9)
    replay(feed)
    preview = feed.decide("import", export).err
    sweep(feed)
    assert "1 file (b/1.ndjson), which is late" in preview
    assert feed.ids == [1, 2, 9]


def test_an_import_frees_the_copy_of_an_original_whose_rows_went_since(make_feed: MakeFeed) -> None:
    feed, export = copied(make_feed)
    (feed.landing / "a/1.ndjson").unlink()
    replay(feed, "--gone", "delete")
    feed.decide("import", export)
    sweep(feed)
    assert feed.ids == [1, 2]


def test_an_import_compares_new_files_with_the_content_that_the_table_holds(make_feed: MakeFeed) -> None:
    feed, export = copied(make_feed)
    feed.put("a/1.ndjson", 9)
    replay(feed)
    sweep(feed)
    feed.decide("import", export)
    feed.put("d/1.ndjson", 9)
    feed.put("d/2.ndjson", 1)
    sweep(feed)
    assert feed.ids == [1, 2, 9]


def test_an_import_knows_the_freed_copy_that_was_loaded_since(make_feed: MakeFeed) -> None:
    feed, export = copied(make_feed)
    feed.put("a/1.ndjson", 9)
    replay(feed)
    sweep(feed)
    feed.decide("import", export)
    feed.put("a/1.ndjson", 8)
    replay(feed)
    sweep(feed)
    assert feed.ids == [1, 2, 8]


def test_an_import_beside_the_table_of_its_time_takes_its_records(make_feed: MakeFeed) -> None:
    feed, export = copied(make_feed)
    shutil.copytree(feed.table, feed.folder / "saved")
    feed.put("a/1.ndjson", 9)
    replay(feed)
    restore(feed.folder / "saved", feed.table)
    feed.decide("import", export)
    sweep(feed)
    assert feed.ids == [1, 2]


def test_a_new_copy_of_a_file_that_deleted_skip_answered_is_skipped(make_feed: MakeFeed) -> None:
    feed = make_feed(watermark={"duplicates": "skip", "checkpoint": {"interval_files": 1}})
    feed.put("1.ndjson", 1)
    feed.put("2.ndjson", 2)
    feed.load()
    shutil.copytree(feed.state, feed.folder / "old")
    feed.put("3.ndjson", 3)
    feed.load()
    DeltaTable(str(feed.table)).delete("id = 2")
    restore(feed.folder / "old", feed.state)
    feed.decide("adopt", "--deleted", "skip")
    feed.put("4.ndjson", 2)
    sweep(feed)
    assert feed.ids == [1, 3]


def test_an_import_into_a_lost_log_names_copies_whose_original_has_changed(make_feed: MakeFeed) -> None:
    feed, export = copied(make_feed)
    feed.put("a/1.ndjson", 9)
    replay(feed)
    shutil.rmtree(feed.state)
    preview = feed.decide("import", export).err
    assert "originals of 1 file (b/1.ndjson) have changed since" in preview
    feed.define(watermark={"duplicates": "load"})
    feed.command("replay", NAME, "--start", "b/", "--end", "c/", "--replace")
    assert feed.ids == [1, 2, 9]


def test_an_import_into_a_lost_log_is_silent_about_copies_of_unchanged_files(make_feed: MakeFeed) -> None:
    feed, export = copied(make_feed)
    feed.put("d/4.ndjson", 4)
    feed.load()
    shutil.rmtree(feed.state)
    assert "originals of" not in feed.decide("import", export).err
    sweep(feed)
    assert feed.ids == [1, 2, 4]


@pytest.mark.needs_spark
def test_an_import_into_an_upsert_frees_the_copy_of_a_corrected_original(make_feed: MakeFeed) -> None:
    feed, export = copied(make_feed, target=UPSERT)
    feed.put("a/1.ndjson", 9)
    replay(feed)
    preview = feed.decide("import", export).err
    sweep(feed)
    assert "1 file (b/1.ndjson), which is late" in preview
    assert feed.ids == [1, 2, 9]
