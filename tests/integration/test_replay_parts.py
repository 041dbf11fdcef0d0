"""Files of a range of partitions, and whole windows, are read again into the dataflow's own table (docs/reference/replay.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.outcome import Step
from resources.replay.in_place import replay_in_place
from resources.replay.options import ReplayOptions
from resources.spark.engine import SparkEngine
from tests.support.feed import NOW, Answer, Feed
from tests.support.replayed import AFTER, DAYS, OVERWRITE, UPSERT, changed_files, put, statuses
from tests.support.window_feed import event, instant, on_lake, watermark


def replayed(feed: Feed, *more: str, days: tuple[str, ...] = DAYS) -> Answer:
    return feed.cli("replay", feed.name, *days, *more)


def replay(feed: Feed, *more: str, days: tuple[str, ...] = DAYS) -> Answer:
    return feed.command("replay", feed.name, *days, *more)


@pytest.mark.parametrize(
    "target",
    [
        {},
        OVERWRITE,
        pytest.param(UPSERT, marks=pytest.mark.full),
        pytest.param({"format": "iceberg", **OVERWRITE}, marks=pytest.mark.full),
        pytest.param({"format": "parquet"}, marks=pytest.mark.full),
    ],
)
@pytest.mark.full
def test_files_of_partitions_are_read_again_and_the_watermark_stays(
    tmp_path: Path, engine: SparkEngine, target: dict[str, Any]
) -> None:
    feed = changed_files(tmp_path, engine, **target)
    before = feed.watermark
    options = () if "load" in target else ("--replace", "--gone", "keep")
    dry = replayed(feed, *options, "--dry-run").json[0]
    assert [(described["files"], described["reason"]) for described in dry["slices"]] == [
        (["2026-01-02/2.ndjson"], "replay"),
        (["2026-01-02/20.ndjson"], "replay"),
    ]
    answer = replay(feed, *options)
    assert statuses(answer) == [("committed", 1), ("committed", 1)]
    (warning,) = answer.json[0]["warnings"]
    assert "2026-01-03/3.ndjson" in warning
    assert feed.rows("id", "value") == AFTER
    assert feed.watermark == before
    assert [entry.why for entry in feed.entries][-2:] == ["replay", "replay"]
    assert feed.cli("late", feed.name).code == 0  # what came late counts as ingested
    assert feed.ids == [1, 2, 3, 4, 5, 20]
    put(feed, 6, 6)
    feed.load()
    assert feed.ids == [1, 2, 3, 4, 5, 6, 20]


@pytest.mark.parametrize("format_", ["delta", "iceberg", "parquet"])
def test_a_replaced_file_that_is_gone_keeps_or_loses_its_rows_as_said(
    tmp_path: Path, engine: SparkEngine, format_: str
) -> None:
    feed = changed_files(tmp_path, engine, format=format_)
    feed.put("2026-01-03/3b.ndjson", {"id": 3, "value": 30})  # the gone 3.ndjson under another name
    asked = replayed(feed, "--replace")
    assert (asked.code, asked.error["code"]) == (4, "gone_files")
    assert "1 file (2026-01-03/3.ndjson) with 1 row in the table" in asked.error["message"]
    command = asked.error["choices"][0].split()
    assert command[-2:] == ["--gone", "delete"]
    answer = feed.command(*command[1:])
    assert "so their rows are deleted: 2026-01-03/3.ndjson" in answer.json[0]["warnings"][0]
    assert [row for row in feed.rows("id", "value") if row[0] == 3] == [(3, 30)]
    assert replayed(feed, "--replace").code == 0  # nothing is gone any more
    assert [row for row in feed.rows("id", "value") if row[0] == 3] == [(3, 30)]


@pytest.mark.full
def test_rows_of_later_files_stay_and_earlier_are_replaced(tmp_path: Path, engine: SparkEngine) -> None:
    """By folders, then names: the folder ``d`` comes before ``d-1``, whose paths come first."""
    definition = {"source": {"schema": "id long, value long"}, "watermark": {"type": "path"}}
    feed = Feed(tmp_path, engine, {**definition, "target": OVERWRITE, "late_files": "alert"})
    for path, rows in {
        "c/1.ndjson": [(1, 0), (2, 0)],
        "d/1.ndjson": [(3, 0)],
        "d/2.ndjson": [(4, 0)],
        "d-1/1.ndjson": [(5, 0)],
    }.items():
        feed.put(path, *({"id": key, "value": value} for key, value in rows))
        feed.load()
    feed.put("d/1.ndjson", {"id": 2, "value": 1}, {"id": 3, "value": 1}, {"id": 4, "value": 1}, {"id": 5, "value": 1})  # fmt: skip
    feed.put("d/2.ndjson", {"id": 6, "value": 1})
    answer = replay(feed, days=("--start", "d", "--end", "d-1"))
    assert statuses(answer) == [("committed", 4)]
    assert feed.rows("id", "value") == [(1, 0), (2, 1), (3, 1), (4, 1), (5, 0), (6, 1)]


@pytest.mark.parametrize("step", [Step.INTENT_PUT, pytest.param(Step.WRITTEN, marks=pytest.mark.full)])
def test_a_dead_replay_of_files_ends_by_its_command(tmp_path: Path, engine: SparkEngine, step: Step) -> None:
    feed = changed_files(tmp_path, engine)
    heard: list[Step] = []

    def dies(found: Step, line: str) -> None:
        heard.append(found)
        if heard.count(step) == 2:
            raise KeyboardInterrupt

    asked = ReplayOptions("2026-01-02", "2026-01-04", replace=True, gone_files="keep")
    with pytest.raises(KeyboardInterrupt):
        replay_in_place(feed.platform, feed.dataflow, asked, NOW, observer=dies)
    put(feed, 6, 6)
    feed.load()
    assert len(feed.ids) == len(set(feed.ids))
    answer = replay(feed, "--replace", "--gone", "keep")
    assert statuses(answer)[0] == ("skipped", 0)
    assert feed.rows("id", "value") == sorted([*AFTER, (6, 0)])


@pytest.mark.full
def test_a_bad_file_stops_the_replay_until_it_is_mended(tmp_path: Path, engine: SparkEngine) -> None:
    feed = changed_files(tmp_path, engine)
    feed.put_text("2026-01-02/20.ndjson", "{")
    answer = replayed(feed, "--replace", "--gone", "keep")
    assert answer.code == 1, answer.out
    assert [status for status, _ in statuses(answer)] == ["committed", "failed"]
    put(feed, 6, 6)
    put(feed, 2, 20)
    assert statuses(replayed(feed, "--replace", "--gone", "keep")) == [("skipped", 0), ("committed", 1)]
    feed.load()
    assert feed.ids == [1, 2, 3, 4, 5, 6, 20]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (DAYS, "--replace"),
        ((*DAYS, "--replace", "--every", "1 day"), "--every"),
        ((*DAYS, "--replace", "--column", "id"), "--column"),
        ((*DAYS, "--replace", "--save-watermark"), "--save-watermark"),
        (("--start", "b", "--end", "a", "--replace"), "below the end"),
        ((*DAYS, "--into", "aside/rows", "--every", "1 day"), "--every"),
    ],
)
def test_what_files_do_not_have_is_refused(
    tmp_path: Path, engine: SparkEngine, options: tuple[str, ...], said: str
) -> None:
    feed = Feed(tmp_path, engine)
    answer = replayed(feed, days=options)
    assert answer.code == 2, answer.out
    assert said in answer.json["error"]["message"]


def test_whole_windows_are_read_again_and_no_high_falls(tmp_path: Path, engine: SparkEngine) -> None:
    made = on_lake(tmp_path / "project", engine)
    for day in range(1, 6):
        made.table.put(event(day, f"2020-01-0{day}", "a"), event(10 + day, f"2020-01-0{day}", "b"))
    made.run("2020-01-08")
    before = made.feed.watermark
    made.table.put(*(event(day, f"2020-01-0{day}", "a", value=1) for day in range(1, 6)))
    made.table.drop(13)
    days = ("--start", "2020-01-02T12:00:00", "--end", "2020-01-04", "--now", "2020-01-08")
    answer = replay(made.feed, "--dry-run", days=days)
    (dry,) = answer.json
    assert (len(dry["slices"]), {described["reason"] for described in dry["slices"]}) == (4, {"forced"})
    answer = replay(made.feed, days=days)
    assert statuses(answer) == [("committed", 3)]
    values = {(day, 1 if day in (2, 3) else 0) for day in range(1, 6)}
    assert set(made.rows) == values | {(10 + day, 0) for day in (1, 2, 4, 5)}
    assert made.feed.watermark == before
    assert replayed(made.feed, "--every", "1 day", days=days).code == 2
    assert replayed(made.feed, days=("--start", "2020-01-04", "--end", "2020-01-04")).code == 2


def test_windows_read_before_a_death_are_not_read_again(tmp_path: Path, engine: SparkEngine) -> None:
    definition = watermark(units="a", checkpoint={"interval_windows": 1}, max_slices=4)
    made = on_lake(tmp_path / "project", engine, watermark=definition)
    for day in range(1, 5):
        made.table.put(event(day, f"2020-01-0{day}", "a"))
    made.run("2020-01-05")
    made.table.put(*(event(day, f"2020-01-0{day}", "a", value=1) for day in range(1, 5)))
    heard: list[Step] = []

    def dies(step: Step, line: str) -> None:
        heard.append(step)
        if heard.count(Step.INTENT_PUT) == 2:
            raise KeyboardInterrupt

    asked, now = ReplayOptions("2020-01-01", "2020-01-05"), instant("2020-01-05")
    with pytest.raises(KeyboardInterrupt):
        replay_in_place(made.feed.platform, made.feed.dataflow, asked, now, observer=dies)
    made.table.put(event(1, "2020-01-01", "a", value=2))
    answer = replay(made.feed, days=("--start", "2020-01-01", "--end", "2020-01-05", "--now", "2020-01-05"))
    assert statuses(answer)[0] == ("skipped", 0)
    assert made.rows == [(1, 1), (2, 1), (3, 1), (4, 1)]
    assert [entry.why for entry in made.feed.entries][-5:] == ["replay", "abandon", *["replay"] * 3]
