"""``strandline why``: what became of a file, and why a dataflow loads nothing now (docs/reference/cli.md, why)."""

from __future__ import annotations

import os
from typing import Any

import pytest

from partitions.errors import TargetError
from partitions.instants import time_text
from resources.notes.last_run import note_attempt
from resources.outcome import Outcome
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, NOW, Feed

pytestmark = pytest.mark.without_jvm


def why(feed: Feed, *subject: str) -> tuple[str, str]:
    document: dict[str, Any] = feed.command("why", NAME, *subject).json
    assert document["subject"] == (subject[0] if subject else None)
    return document["status"], document["summary"]


def put_old(feed: Feed, path: str, *rows: int) -> None:
    feed.put(path, *rows)
    at = NOW.timestamp() - 86_400
    os.utime(feed.landing / path, (at, at))


class TestAFile:
    def test_a_loaded_file_names_its_entry_run_and_table_version(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1, 2)
        feed.put("b.ndjson", 3)
        feed.load()
        newest = feed.newest
        assert newest is not None
        (entry,) = feed.command("why", NAME, "a.ndjson").json["entries"]
        assert entry == {
            "entry": 1, "time": newest.time, "why": "run", "rows": 3, "run_id": newest.run_id,
            "table_version": newest.table_version, "part": "with 1 other file", "part_rows": None,
        }  # fmt: skip
        run = f", run {newest.run_id[:8]}" if newest.run_id else ""
        assert feed.text("why", NAME, "a.ndjson") == (
            "flow a.ndjson: loaded\n"
            f"  entry 1 (run) of {time_text(newest.time)}: 3 rows, table version {newest.table_version}{run} (with 1 other file)\n"
        )

    def test_a_path_below_the_root_may_be_absolute(self, feed: Feed) -> None:
        feed.put("d=1/a.ndjson", 1)
        feed.load()
        document = feed.command("why", NAME, str(feed.landing / "d=1/a.ndjson")).json
        assert (document["subject"], document["status"]) == ("d=1/a.ndjson", "loaded")

    def test_a_file_above_the_watermark_is_due(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1)
        feed.load()
        feed.put("b.ndjson", 2)
        assert why(feed, "b.ndjson") == ("due", "not loaded yet: the next run loads it, in slice 1 of 1")

    def test_a_file_that_settles_waits(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"type": "path", "settle": "PT1H"})
        feed.put("a.ndjson", 1)
        assert why(feed, "a.ndjson") == ("waits", "not loaded yet: younger than settle (1 h)")

    def test_a_file_below_the_watermark_is_late(self, feed: Feed) -> None:
        feed.put("b.ndjson", 1)
        feed.load()
        put_old(feed, "a.ndjson", 2)
        status, summary = why(feed, "a.ndjson")
        assert (status, summary) == (
            "late",
            "late: its name sorts at or below the watermark, and it is of 2026-05-31 00:00:00 UTC; the sweep has not met it yet",
        )

    def test_a_late_file_that_the_sweep_has_met_names_its_policy(self, make_feed: MakeFeed) -> None:
        feed = make_feed(late_files="alert")
        feed.put("b.ndjson", 1)
        feed.load()
        put_old(feed, "a.ndjson", 2)
        feed.command("late", NAME)
        assert why(feed, "a.ndjson")[1].endswith("; nothing loads it (late_files: alert)")
        assert why(feed)[0] == "waits"
        assert (
            "  1 late file, such as a.ndjson: nothing loads it (late_files: alert)\n    strandline late flow"
            in (feed.text("why", NAME))
        )

    def test_a_changed_file_says_that_runs_do_not_load_it_again(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1)
        feed.load()
        put_old(feed, "a.ndjson", 1, 2, 3)
        document = feed.command("why", NAME, "a.ndjson").json
        assert document["summary"] == "loaded, and changed at the source since"
        assert document["choices"] == [
            "strandline replay flow --start a.ndjson --end 'a.ndjson~' --column _source_file --replace"
        ]

    @pytest.mark.parametrize(
        ("path", "reason"), [("_a.ndjson", "names that start with _ or ."), ("a.csv", "found .csv")]
    )
    def test_a_name_that_no_listing_takes_says_why(self, feed: Feed, path: str, reason: str) -> None:
        feed.put_text(path, "")
        status, summary = why(feed, path)
        assert status == "skipped"
        assert reason in summary

    def test_an_unknown_file_names_the_nearest_one(self, feed: Feed) -> None:
        feed.put("day-1.ndjson", 1)
        feed.load()
        refused = feed.cli("why", NAME, "day-11.ndjson")
        assert (refused.code, refused.json["error"]["code"]) == (2, "configuration")
        assert refused.json["error"]["message"].endswith("did you mean day-1.ndjson?")


class TestNow:
    def test_without_new_data_everything_is_loaded(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1)
        feed.load()
        assert why(feed) == ("up_to_date", "everything is loaded: no file is above the watermark")

    def test_new_data_is_loaded_by_the_next_run(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1)
        document = feed.command("why", NAME).json
        assert (document["status"], document["reasons"]) == ("due", [])
        assert document["summary"] == "the next run loads: 1 file to start with, in 1 slice"
        assert document["choices"] == ["strandline run flow"]

    def test_a_failing_run_says_since_when_why_and_what_comes_next(self, feed: Feed) -> None:
        error = TargetError("file b.ndjson is bad", choices=["strandline doctor"])
        note_attempt(feed.platform.log, Outcome(NAME, "run-1", {}, 0, error=error))
        feed.put("a.ndjson", 1)
        document = feed.command("why", NAME).json
        (failure, next_run) = document["reasons"]
        assert (document["status"], failure["what"], failure["why"]) == (
            "failing",
            "the last attempt failed",
            "file b.ndjson is bad",
        )
        assert document["summary"] == f"runs fail since {time_text(failure['since'])}"
        assert (next_run["what"], next_run["why"]) == ("the next run", "1 file to start with, in 1 slice")
        assert document["choices"] == ["strandline doctor"]

    def test_a_changed_definition_stops_it(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1)
        feed.load()
        feed.define(watermark={"type": "path", "scope": "partition"})
        status, summary = why(feed)
        assert status == "stopped"
        assert summary.startswith("nothing can be loaded: its definition has changed")

    def test_the_answer_of_a_missing_source_is_its_error(self, feed: Feed) -> None:
        feed.landing.rmdir()
        status, summary = why(feed)
        assert status == "failing"
        assert "expected a folder, found none" in summary

    def test_an_unknown_dataflow_names_the_nearest_one(self, feed: Feed) -> None:
        refused = feed.cli("why", "flaw")
        assert (refused.code, "flow" in refused.json["error"]["message"]) == (2, True)
