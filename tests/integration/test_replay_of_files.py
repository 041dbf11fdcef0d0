"""A month of files whose folders are no dates is read again, by a column of their rows or by their arrival."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from resources.outcome import Step
from resources.replay.in_place import replay_in_place
from resources.replay.isolated.replaying import replay_isolated
from resources.replay.options import ReplayOptions
from resources.spark.engine import SparkEngine
from tests.support.feed import NOW, Feed, dies_after
from tests.support.replayed import statuses

COLUMN = ("--start", "2026-01-01", "--end", "2026-02-01", "--column", "at")
ROWS = {
    "a/1.ndjson": [(1, "2025-12-31T23:59:59Z"), (2, "2026-01-01T00:00:00Z")],
    "a/2.ndjson": [(3, "2026-02-01T00:00:00Z")],
    "b/1.ndjson": [(4, "2026-01-31T23:59:59Z")],
    "b/2.ndjson": [(5, "2026-01-15T00:00:00Z")],
}


def put(feed: Feed, path: str, value: int, *extra: int) -> None:
    rows = [{"id": key, "at": at, "value": value} for key, at in ROWS[path]]
    feed.put(path, *rows, *({"id": key, "at": rows[0]["at"], "value": value} for key in extra))


@pytest.fixture
def feed(tmp_path: Path, engine: SparkEngine, request: pytest.FixtureRequest) -> Feed:
    """Four files are loaded, a slice each; then all are corrected, one is gone, and a fifth is new."""
    definition: dict[str, Any] = {
        "source": {"schema": "id long, at timestamp, value long"},
        "watermark": {"checkpoint": {"interval_files": 1}},
        "target": {"load": "append", "format": getattr(request, "param", "delta")},
    }
    made = Feed(tmp_path, engine, definition)
    for path in ROWS:
        put(made, path, 0)
    made.load()
    for path in ROWS:
        put(made, path, 1)
    put(made, "a/1.ndjson", 1, 11)
    (made.landing / "b/2.ndjson").unlink()
    made.put("c/1.ndjson", {"id": 6, "at": "2026-01-02T00:00:00Z", "value": 1})
    return made


OF_JANUARY = [(1, 1), (2, 1), (3, 0), (4, 1), (5, 0), (11, 1)]
"""Files with rows of January are new, whole; the others, gone and new ones stay."""


@pytest.mark.parametrize(
    "feed",
    [
        "delta",
        pytest.param("iceberg", marks=pytest.mark.full),
        pytest.param("parquet", marks=pytest.mark.full),
    ],
    indirect=True,
)
def test_files_with_rows_of_a_month_are_replaced_whole(feed: Feed) -> None:
    dry = feed.command("replay", feed.name, *COLUMN, "--replace", "--gone", "keep", "--dry-run").json[0]
    assert [slice_["files"] for slice_ in dry["slices"]] == [["a/1.ndjson"], ["b/1.ndjson"]]
    refused = feed.cli("replay", feed.name, *COLUMN, "--replace")
    assert (refused.code, "b/2.ndjson" in refused.error["message"]) == (4, True)
    answer = feed.command("replay", feed.name, *COLUMN, "--replace", "--gone", "keep")
    assert statuses(answer) == [("committed", 3), ("committed", 1)]
    assert answer.json[0]["warnings"] == ["missing at the source, so their rows stay: b/2.ndjson"]
    assert feed.rows("id", "value") == OF_JANUARY
    feed.load()
    assert feed.rows("id", "value") == [*OF_JANUARY[:5], (6, 1), (11, 1)]


def test_a_dead_replay_by_a_column_goes_on_with_the_files_that_are_left(feed: Feed) -> None:
    asked = ReplayOptions("2026-01-01", "2026-02-01", column="at", replace=True, gone_files="keep")
    with pytest.raises(KeyboardInterrupt):
        replay_in_place(feed.platform, feed.dataflow, asked, NOW, observer=dies_after(Step.APPENDED))
    assert len(feed.ids) == 6
    feed.command("replay", feed.name, *COLUMN, "--replace", "--gone", "keep")
    assert feed.rows("id", "value") == OF_JANUARY


def test_an_isolated_replay_by_a_column_is_promoted_file_by_file(feed: Feed) -> None:
    feed.command("replay", feed.name, *COLUMN, "--into", "aside/january")
    promoted = feed.command("promote", feed.name, "aside/january", "--reason", "corrected", "--yes")
    assert "files with at from 2026-01-01" in promoted.err
    assert feed.rows("id", "value") == OF_JANUARY


def test_files_are_chosen_by_their_arrival(tmp_path: Path, engine: SparkEngine) -> None:
    feed = Feed(tmp_path, engine, {"source": {"schema": "id long, value long"}})
    for number, day in ((1, "2026-05-01"), (2, "2026-05-02"), (3, "2026-05-03")):
        path = feed.put(f"{number}.ndjson", {"id": number, "value": 0})
        os.utime(feed.landing / path, (datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp(),) * 2)
    feed.load()
    for number in (1, 2, 3):
        feed.put(f"{number}.ndjson", {"id": number, "value": 1})
    bounds = ("--start", "2026-05-02", "--end", "2026-05-03")
    answer = feed.command("replay", feed.name, *bounds, "--by", "arrival", "--replace")
    assert statuses(answer) == [("committed", 1)]
    assert feed.rows("id", "value") == [(1, 0), (2, 1), (3, 0)]


@pytest.mark.without_jvm
@pytest.mark.parametrize("tracking", ["watermark", "set"])
def test_one_overwritten_file_is_named_and_replayed_by_its_path(
    tracking: str, tmp_path: Path, engine: SparkEngine
) -> None:
    feed = Feed(tmp_path, engine, {"source": {"schema": "id long"}, "watermark": {"tracking": tracking}})
    for number in (1, 2, 3):
        feed.put(f"{number}.ndjson", {"id": number})
    feed.load()
    feed.put("2.ndjson", {"id": 20})
    assert feed.command("ledger", feed.name, "--compare").json[0]["changed"] == ["2.ndjson"]
    path_range = ("--start", "2.ndjson", "--end", "2.ndjson~", "--column", "_source_file")
    assert statuses(feed.command("replay", feed.name, *path_range, "--replace")) == [("committed", 1)]
    assert feed.rows("id") == [(1,), (3,), (20,)]
    assert feed.command("ledger", feed.name, "--compare").json[0]["changed"] == []


@pytest.mark.without_jvm
@pytest.mark.parametrize("table", [None, "aside/again"])
def test_a_replay_plans_each_chunk_once_and_reports_none_as_loaded_before(
    tmp_path: Path, engine: SparkEngine, table: str | None
) -> None:
    feed = Feed(
        tmp_path,
        engine,
        {"source": {"schema": "id long"}, "watermark": {"checkpoint": {"interval_files": 1}}},
    )
    for number in (1, 2):
        feed.put(f"{number}.ndjson", number)
    feed.load()
    asked = ReplayOptions("1.ndjson", "2.ndjson~", column="_source_file", replace=True, table=table)
    lines = []
    read_again = replay_in_place if table is None else replay_isolated
    read_again(
        feed.platform,
        feed.dataflow,
        asked,
        NOW,
        observer=lambda step, line: lines.append(line) if step is Step.PLANNED else None,
    )
    assert lines == ["replay of 1 file", "replay of 1 file"]


@pytest.mark.without_jvm
def test_rows_of_files_that_a_dead_replay_replaced_are_deleted_by_nobody(
    tmp_path: Path, engine: SparkEngine
) -> None:
    feed = Feed(tmp_path, engine, {"source": {"schema": "id long"}})
    feed.put("1.ndjson", 1, 11)
    feed.put("2.ndjson", 2)
    feed.load()
    feed.put("1.ndjson", 1)
    asked = ReplayOptions("1.ndjson", "2.ndjson~", column="_source_file", replace=True)
    with pytest.raises(KeyboardInterrupt):
        replay_in_place(feed.platform, feed.dataflow, asked, NOW, observer=dies_after(Step.WRITTEN))
    assert feed.ids == [1, 2]
    path_range = ("--start", "1.ndjson", "--end", "2.ndjson~", "--column", "_source_file", "--replace")
    feed.command("replay", feed.name, *path_range)
    assert feed.rows("id", "_source_file") == [(1, "1.ndjson"), (2, "2.ndjson")]


def test_bounds_and_options_that_do_not_fit_are_refused_by_name(feed: Feed) -> None:
    for options, told in {
        ("--column", "till"): "expected a column of table bronze/flow, found till",
        ("--column", "at", "--by", "arrival"): "expected --column or --by arrival, found both",
        ("--column", "id"): "expected bounds of the type of column id, long, found start 2026-01-01",
        ("--column", "at", "--every", "1 day"): "expected no --every",
    }.items():
        answer = feed.cli(
            "replay", feed.name, "--start", "2026-01-01", "--end", "2026-02-01", "--replace", *options
        )
        assert (answer.code, told in answer.error["message"]) == (2, True), answer.out
