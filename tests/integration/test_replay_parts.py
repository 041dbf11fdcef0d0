"""Files of a range of partitions, and whole windows, are read again into the dataflow's own table (docs/replay.md, Files, Windows)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.loop.outcome import Step
from resources.replay import Asked, replay_in_place
from resources.spark import SparkEngine
from tests.support.feed import NOW, Answer, Feed
from tests.support.window_feed import event, instant, on_lake, watermark

UPSERT = {"load": "merge_upsert", "merge_keys": ["id"]}
SCHEMA = {"schema": "id long, value long"}
RANGE = ("--start", "2026-01-02", "--end", "2026-01-04")


def replayed(feed: Feed, *more: str, days: tuple[str, ...] = RANGE) -> Answer:
    return feed.cli("replay", feed.name, *days, *more)


def statuses(answer: Answer) -> list[tuple[str, int]]:
    return [(chunk["status"], chunk["rows"]) for chunk in answer.json[0]["chunks"]]


def put(feed: Feed, day: int, number: int, value: int = 0) -> str:
    return feed.put(f"2026-01-0{day}/{number}.ndjson", {"id": number, "value": value})


def loaded(folder: Path, engine: SparkEngine, **target: Any) -> Feed:
    """A file of each of five days is loaded, one a slice; then some change."""
    watermark = {"type": "path", "checkpoint": {"interval_files": 1}}
    feed = Feed(
        folder, engine, {"source": SCHEMA, "watermark": watermark, "target": target or {"load": "append"}}
    )
    for day in range(1, 6):
        put(feed, day, day)
    feed.load()
    put(feed, 1, 1, 1)  # out of the range
    put(feed, 2, 2, 1)
    put(feed, 2, 20)  # late
    (feed.landing / "2026-01-03" / "3.ndjson").unlink()
    put(feed, 4, 4, 1)  # the end is no part of it
    return feed


@pytest.mark.parametrize("target", [{}, pytest.param(UPSERT, marks=pytest.mark.full)])
def test_files_of_partitions_are_read_again_and_the_watermark_stays(
    tmp_path: Path, engine: SparkEngine, target: dict[str, Any]
) -> None:
    feed = loaded(tmp_path, engine, **target)
    before = feed.watermark
    options = () if target else ("--replace",)
    dry = replayed(feed, *options, "--dry-run").json[0]
    assert [(described["files"], described["reason"]) for described in dry["slices"]] == [
        (["2026-01-02/2.ndjson"], "replay"),
        (["2026-01-02/20.ndjson"], "replay"),
    ]
    answer = replayed(feed, *options)
    assert answer.code == 0, answer.out
    assert statuses(answer) == [("committed", 1), ("committed", 1)]
    (gone,) = answer.json[0]["warnings"]
    assert "2026-01-03/3.ndjson" in gone
    assert feed.rows("id", "value") == [(1, 0), (2, 1), (3, 0), (4, 0), (5, 0), (20, 0)]
    assert feed.watermark == before
    assert [entry.why for entry in feed.entries][-2:] == ["replay", "replay"]
    assert feed.cli("late", feed.name).code == 0  # what came late counts as ingested
    assert feed.ids == [1, 2, 3, 4, 5, 20]
    put(feed, 6, 6)
    feed.load()
    assert feed.ids == [1, 2, 3, 4, 5, 6, 20]


@pytest.mark.parametrize("step", [Step.INTENT_PUT, pytest.param(Step.WRITTEN, marks=pytest.mark.full)])
def test_a_replay_of_files_that_died_is_ended_by_the_same_command(
    tmp_path: Path, engine: SparkEngine, step: Step
) -> None:
    feed = loaded(tmp_path, engine)
    heard: list[Step] = []

    def dies(found: Step, line: str) -> None:
        heard.append(found)
        if heard.count(step) == 2:
            raise KeyboardInterrupt

    asked = Asked("2026-01-02", "2026-01-04", replace=True)
    with pytest.raises(KeyboardInterrupt):
        replay_in_place(feed.platform, feed.dataflow, asked, NOW, observer=dies)
    put(feed, 6, 6)
    feed.load()
    assert len(feed.ids) == len(set(feed.ids))
    answer = replayed(feed, "--replace")
    assert answer.code == 0, answer.out
    assert statuses(answer)[0] == ("skipped", 0)
    assert feed.rows("id", "value") == [(1, 0), (2, 1), (3, 0), (4, 0), (5, 0), (6, 0), (20, 0)]


def test_a_bad_file_stops_the_replay_and_the_same_command_goes_on(
    tmp_path: Path, engine: SparkEngine
) -> None:
    feed = loaded(tmp_path, engine)
    feed.put_text("2026-01-02/20.ndjson", "{")
    answer = replayed(feed, "--replace")
    assert answer.code == 1, answer.out
    assert [status for status, _ in statuses(answer)] == ["committed", "failed"]
    put(feed, 6, 6)
    put(feed, 2, 20)
    assert statuses(replayed(feed, "--replace")) == [("skipped", 0), ("committed", 1)]
    feed.load()
    assert feed.ids == [1, 2, 3, 4, 5, 6, 20]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (RANGE, "--replace"),
        ((*RANGE, "--replace", "--every", "1 day"), "--every"),
        ((*RANGE, "--replace", "--column", "id"), "--column"),
        ((*RANGE, "--replace", "--save-watermark"), "--save-watermark"),
        (("--start", "b", "--end", "a", "--replace"), "below the end"),
        ((*RANGE, "--into", "aside/rows", "--every", "1 day"), "--every"),
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
    answer = replayed(made.feed, "--dry-run", days=days)
    assert answer.code == 0, answer.out
    (dry,) = answer.json
    assert (len(dry["slices"]), {described["reason"] for described in dry["slices"]}) == (4, {"forced"})
    answer = replayed(made.feed, days=days)
    assert answer.code == 0, answer.out
    assert statuses(answer) == [("committed", 3)]
    values = {(day, 1 if day in (2, 3) else 0) for day in range(1, 6)}
    assert set(made.rows) == values | {(10 + day, 0) for day in (1, 2, 4, 5)}
    assert made.feed.watermark == before
    assert replayed(made.feed, "--every", "1 day", days=days).code == 2
    assert replayed(made.feed, days=("--start", "2020-01-04", "--end", "2020-01-04")).code == 2


def test_windows_that_were_read_before_a_death_are_not_read_again(
    tmp_path: Path, engine: SparkEngine
) -> None:
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

    asked, now = Asked("2020-01-01", "2020-01-05"), instant("2020-01-05")
    with pytest.raises(KeyboardInterrupt):
        replay_in_place(made.feed.platform, made.feed.dataflow, asked, now, observer=dies)
    made.table.put(event(1, "2020-01-01", "a", value=2))
    answer = replayed(made.feed, days=("--start", "2020-01-01", "--end", "2020-01-05", "--now", "2020-01-05"))
    assert answer.code == 0, answer.out
    assert statuses(answer)[0] == ("skipped", 0)
    assert made.rows == [(1, 1), (2, 1), (3, 1), (4, 1)]
