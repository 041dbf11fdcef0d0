"""Files of partitions, and whole windows, are read again into a table aside, and promoted or dropped (docs/reference/replay.md, Isolated)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from resources.kinds.path import swap
from resources.outcome import Step
from resources.replay.isolated.promoting import preview_promote, promote_replay
from resources.replay.isolated.replaying import replay_isolated
from resources.replay.options import ReplayOptions
from resources.spark.engine import SparkEngine
from resources.watermarks.quarantine_list import read_quarantine
from scripts.postgres import Postgres
from tests.support.asides import TABLE
from tests.support.feed import NOW, Answer, Feed, dies_after
from tests.support.foreign_acts import Others
from tests.support.replayed import (
    AFTER,
    BEFORE,
    DAYS,
    OVERWRITE,
    SWAPPED,
    UPSERT,
    WINDOWS,
    changed_files,
    changed_windows,
    put,
    statuses,
)
from tests.support.window_feed import REPLACED, DatabaseTable, event, instant, on_postgres, watermark

STEPS = (Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED, Step.APPENDED, Step.TABLE_REMOVED)


def replayed(feed: Feed, *more: str, days: tuple[str, ...] = DAYS) -> Answer:
    return feed.cli("replay", feed.name, *days, "--into", TABLE, *more)


def replay(feed: Feed, *more: str, days: tuple[str, ...] = DAYS) -> Answer:
    return feed.command("replay", feed.name, *days, "--into", TABLE, *more)


def ended(feed: Feed, command: str = "promote") -> Answer:
    return feed.cli(command, feed.name, TABLE, "--reason", "r", "--yes")


def replays(feed: Feed) -> list[tuple[int, int, bool]]:
    return [(each["chunks"], each["done"], each["complete"]) for each in feed.cli("list").json[0]["replays"]]


@pytest.mark.parametrize(
    "target",
    [
        {},
        pytest.param({"format": "iceberg", **UPSERT}, marks=pytest.mark.full),
        pytest.param({"format": "iceberg"}, marks=pytest.mark.full),
        pytest.param({"format": "parquet"}, marks=pytest.mark.full),
        pytest.param(OVERWRITE, marks=pytest.mark.full),
    ],
)
def test_files_of_partitions_are_read_aside_and_promoted(
    tmp_path: Path, engine: SparkEngine, target: dict[str, Any]
) -> None:
    feed = changed_files(tmp_path, engine, **target)
    before, known = feed.watermark, len(feed.entries)
    dry = replayed(feed, "--dry-run").json[0]
    assert [(described["files"], described["reason"]) for described in dry["slices"]] == [
        (["2026-01-02/2.ndjson"], "replay"),
        (["2026-01-02/20.ndjson"], "replay"),
    ]
    answer = replay(feed)
    assert statuses(answer) == [("committed", 1), ("committed", 1)]
    assert (feed.rows("id", "value"), len(feed.entries), replays(feed)) == (BEFORE, known, [(2, 2, True)])
    assert statuses(replayed(feed)) == [("skipped", 0), ("skipped", 0)]
    put(feed, 6, 6)
    feed.load()  # the live flow goes on
    answer = ended(feed)
    assert answer.code == 0, answer.out
    entry = answer.json["entry"]
    assert (entry["why"], entry["rows"], entry["files"]) == ("promote", 2, 2)
    assert feed.rows("id", "value") == sorted([*AFTER, (6, 0)])
    assert (feed.entries[-2].state(), replays(feed)) == (feed.watermark, [])
    assert feed.watermark != before
    assert feed.cli("late", feed.name).code == 0  # what came late counts as ingested
    feed.load()
    assert feed.rows("id", "value") == sorted([*AFTER, (6, 0)])
    covered = feed.cli("ledger", feed.name).json[0]["covered"]
    assert covered["files"] == 7  # five of the first run, the late one, and the last
    assert not list((feed.folder / "lake" / "aside").glob("*"))
    assert list((feed.folder / "state").glob("*~*/*/*")) == []


def test_the_preview_of_a_promote_counts_rows_that_others_deleted(
    tmp_path: Path, engine: SparkEngine
) -> None:
    feed = changed_files(tmp_path, engine)
    DeltaTable(str(feed.table)).delete("id = 2")
    replay(feed)
    shown = preview_promote(feed.platform, feed.dataflow, TABLE)
    assert "others have deleted 1 row of 2026-01-02/2.ndjson from the table, which would come back" in shown


def test_a_promote_deletes_the_rows_of_gone_files_if_the_replay_says_so(
    tmp_path: Path, engine: SparkEngine
) -> None:
    feed = changed_files(tmp_path, engine)
    feed.put("2026-01-03/3b.ndjson", {"id": 3, "value": 30})
    replay(feed, "--gone", "delete")
    assert 3 in feed.ids
    shown = ended(feed)
    assert "so their rows are deleted: 2026-01-03/3.ndjson" in shown.err
    assert [row for row in feed.rows("id", "value") if row[0] == 3] == [(3, 30)]
    feed.load()
    assert [row for row in feed.rows("id", "value") if row[0] == 3] == [(3, 30)]


@pytest.mark.full
def test_what_runs_loaded_since_a_replay_began_stays(tmp_path: Path, engine: SparkEngine) -> None:
    feed = changed_files(tmp_path, engine, **UPSERT)
    replay(feed)
    put(feed, 2, 20, 7)
    assert feed.cli("late", feed.name).code == 0  # loads the late file, as it is now
    put(feed, 6, 6, 9, key=2)
    feed.load()  # a newer value of a key of the range
    shown = preview_promote(feed.platform, feed.dataflow, TABLE)
    assert any("2026-01-02/20.ndjson" in line for line in shown)
    assert ended(feed).code == 0
    assert feed.rows("id", "value") == [(1, 0), (2, 9), (3, 0), (4, 0), (5, 0), (20, 7)]


@pytest.mark.parametrize("released_first", [True, False])
def test_a_released_file_is_left_to_the_next_run_once(
    tmp_path: Path, engine: SparkEngine, *, released_first: bool
) -> None:
    feed = changed_files(tmp_path, engine)
    feed.define(on_bad_file="quarantine")
    path = feed.put_text("2026-01-02/6.ndjson", "{")
    feed.command("late", feed.name)
    assert [aside.file.path for aside in read_quarantine(feed.platform.log, feed.newest).waiting] == [path]
    feed.put(path, {"id": 6, "value": 6})
    commands: list[Callable[[], Answer]] = [
        lambda: feed.cli("files", "release", feed.name, path),
        lambda: replayed(feed),
    ]
    for command in commands if released_first else commands[::-1]:
        assert command().code == 0
    shown = preview_promote(feed.platform, feed.dataflow, TABLE)
    assert any(path in line and "the next run loads them" in line for line in shown) is released_first
    assert ended(feed).code == 0
    feed.load()
    assert feed.rows("id", "value") == sorted([*AFTER, (6, 6)])


@pytest.mark.parametrize("target", [UPSERT, {"format": "iceberg"}, pytest.param({}, marks=pytest.mark.full)])
@pytest.mark.full
def test_swapped_ranges_of_paths_leave_other_files_between_them(
    tmp_path: Path, engine: SparkEngine, target: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swap, "_MAX_NAMED", 1)
    feed = changed_files(tmp_path, engine, **target)
    put(feed, 3, 30)
    put(feed, 3, 31)
    feed.command("late", feed.name)
    for number in (30, 31):
        put(feed, 3, number, 1)
    replay(feed)
    put(feed, 2, 21, 9)
    assert (
        feed.cli("late", feed.name).code == 0
    )  # between two files of the replay, as is the file that is gone
    known = len(feed.entries)
    answer = ended(feed)
    assert (answer.code, answer.json["entry"]["files"], len(feed.entries)) == (0, 4, known + 1)
    assert feed.rows("id", "value") == sorted([*AFTER, (21, 9), (30, 1), (31, 1)])


def test_a_replay_of_files_all_loaded_again_is_refused(tmp_path: Path, engine: SparkEngine) -> None:
    feed = changed_files(tmp_path, engine)
    replay(feed)
    put(feed, 2, 2, 8)
    feed.command("replay", feed.name, *DAYS, "--replace", "--gone", "keep")
    answer = ended(feed)
    assert (answer.code, answer.json["error"]["code"]) == (4, "range_loaded_again")
    assert (2, 8) in feed.rows("id", "value")
    assert ended(feed, "drop").code == 0


def test_a_bad_file_stops_a_replay_and_a_retry_goes_on(tmp_path: Path, engine: SparkEngine) -> None:
    feed = changed_files(tmp_path, engine)
    feed.put_text("2026-01-02/20.ndjson", "{")
    answer = replayed(feed)
    assert answer.code == 1, answer.out
    assert [status for status, _ in statuses(answer)] == ["committed", "failed"]
    refused = ended(feed)
    error = refused.json["error"]
    assert (refused.code, error["code"]) == (4, "replay_unfinished")
    assert "2026-01-02/20.ndjson" in error["message"]
    assert [choice.split()[1] for choice in error["choices"]] == ["replay", "drop"]
    put(feed, 2, 20)
    assert statuses(replayed(feed)) == [("skipped", 0), ("committed", 1)]
    assert ended(feed).code == 0
    assert feed.rows("id", "value") == AFTER


@pytest.mark.parametrize("step", [Step.WRITTEN, *(pytest.param(step, marks=pytest.mark.full) for step in STEPS[:4] if step is not Step.WRITTEN)])  # fmt: skip
def test_a_dead_replay_of_files_ends_by_its_command(tmp_path: Path, engine: SparkEngine, step: Step) -> None:
    feed = changed_files(tmp_path, engine)
    with pytest.raises(KeyboardInterrupt):
        replay_isolated(
            feed.platform, feed.dataflow, ReplayOptions(*DAYS[1::2], TABLE), NOW, observer=dies_after(step)
        )
    put(feed, 6, 6)
    feed.load()
    replay(feed)
    assert feed.rows("id", "value") == [*BEFORE, (6, 0)]
    with pytest.raises(KeyboardInterrupt):
        promote_replay(feed.platform, feed.dataflow, TABLE, "r", NOW, observer=dies_after(step))
    put(feed, 7, 7)
    feed.load()
    answer = ended(feed)
    assert answer.code == 0, answer.out
    feed.load()
    assert feed.rows("id", "value") == sorted([*AFTER, (6, 0), (7, 0)])
    assert (feed.open_intent, replays(feed)) == (None, [])


def test_a_table_aside_that_somebody_has_changed_is_not_promoted(tmp_path: Path, engine: SparkEngine) -> None:
    feed = changed_files(tmp_path, engine)
    replay(feed)
    for path in (feed.folder / "lake" / TABLE / "_delta_log").glob("*1.json"):
        path.unlink()
    answer = ended(feed)
    assert (answer.code, answer.json["error"]["code"]) == (4, "aside_changed")
    assert [choice.split()[1] for choice in answer.json["error"]["choices"]] == ["drop", "replay"]
    assert feed.rows("id", "value") == BEFORE


@pytest.mark.parametrize("act", ["delete", "append", "rollback"])
@pytest.mark.parametrize("form", ["iceberg", "parquet"])
def test_a_changed_table_aside_is_refused(tmp_path: Path, engine: SparkEngine, form: str, act: str) -> None:
    feed = changed_files(tmp_path, engine, format=form)
    put(feed, 3, 30, key=1)
    replay(feed)
    Others(feed, engine.session(), TABLE).do(act)
    answer = ended(feed)
    assert (answer.code, answer.json["error"]["code"]) == (4, "aside_changed")
    assert feed.rows("id", "value") == BEFORE
    assert ended(feed, "drop").code == 0


@pytest.mark.full
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_files_of_a_table_aside_may_be_joined(tmp_path: Path, engine: SparkEngine, form: str) -> None:
    feed = changed_files(tmp_path, engine, format=form)
    replay(feed)
    for act in ("compaction", "expiry"):
        Others(feed, engine.session(), TABLE).do(act)
    assert ended(feed).code == 0
    assert feed.rows("id", "value") == AFTER


@pytest.mark.parametrize(
    "target",
    [
        REPLACED,
        pytest.param({"load": "append"}, marks=pytest.mark.full),
        pytest.param({"format": "iceberg", **REPLACED}, marks=pytest.mark.full),
        pytest.param({"format": "parquet", **REPLACED}, marks=pytest.mark.full),
        pytest.param({"format": "iceberg", **UPSERT}, marks=pytest.mark.full),
    ],
)
def test_whole_windows_are_read_aside_and_promoted(
    tmp_path: Path, engine: SparkEngine, target: dict[str, Any]
) -> None:
    made = changed_windows(tmp_path, engine, target, checkpoint={"interval_windows": 1}, max_slices=4)
    feed, before = made.feed, made.feed.watermark
    rows = made.rows
    dry = replayed(feed, "--dry-run", days=WINDOWS)
    assert {described["reason"] for described in dry.json[0]["slices"]} == {"forced"}
    answer = replay(feed, days=WINDOWS)
    assert sum(found for _, found in statuses(answer)) == 3
    assert (made.rows, {status for status, _ in statuses(answer)}) == (rows, {"committed"})
    ((chunks, done, complete),) = replays(feed)
    assert (chunks, complete) == (done, True)
    answer = ended(feed)
    assert answer.code == 0, answer.out
    assert (made.rows, feed.watermark) == (SWAPPED, before)
    assert (replays(feed), replayed(feed, "--every", "1 day", days=WINDOWS).code) == ([], 2)


def test_windows_read_since_a_replay_or_due_stay(tmp_path: Path, engine: SparkEngine) -> None:
    made = changed_windows(tmp_path, engine, REPLACED, to="2020-01-20")
    days = ("--start", "2020-01-02", "--end", "2020-01-12", "--now", "2020-01-08")
    replay(made.feed, days=days)
    made.table.put(*(event(day, f"2020-01-0{day}", "a", value=2) for day in range(1, 6)))
    forced = ("run", made.feed.name, "--force", "2020-01-03..2020-01-04", "--now", "2020-01-08")
    made.feed.command(*forced)
    made.feed.command("promote", made.feed.name, TABLE, "--reason", "r", "--yes")
    assert [row for row in made.rows if row[0] < 10] == [(1, 0), (2, 1), (3, 2), (4, 1), (5, 1)]
    made.run("2020-01-14")
    assert [row for row in made.rows if row[0] < 10] == [(1, 0), (2, 1), (3, 2), (4, 1), (5, 1)]


@pytest.mark.parametrize("step", [Step.INTENT_PUT, *(pytest.param(step, marks=pytest.mark.full) for step in STEPS[1:4])])  # fmt: skip
def test_a_dead_replay_of_windows_ends_by_a_command(tmp_path: Path, engine: SparkEngine, step: Step) -> None:
    made = changed_windows(tmp_path, engine, REPLACED)
    feed, now = made.feed, instant("2020-01-08")
    asked = ReplayOptions("2020-01-02", "2020-01-04", TABLE)
    with pytest.raises(KeyboardInterrupt):
        replay_isolated(feed.platform, feed.dataflow, asked, now, observer=dies_after(step))
    replay(feed, days=WINDOWS)
    with pytest.raises(KeyboardInterrupt):
        promote_replay(feed.platform, feed.dataflow, TABLE, "r", now, observer=dies_after(step))
    made.run("2020-01-08")
    answer = ended(feed)
    assert answer.code == 0, answer.out
    assert (made.rows, feed.open_intent, replays(feed)) == (SWAPPED, None, [])


@pytest.mark.postgres
def test_windows_known_by_start_are_swapped(tmp_path: Path, engine: SparkEngine, postgres: Postgres) -> None:
    database = DatabaseTable(postgres)
    query = f"SELECT id, value FROM {database.schema}.events WHERE at >= {{start}} AND at < {{end}} AND unit = {{unit.u}}"
    feed = on_postgres(
        tmp_path / "project",
        engine,
        database,
        {"query": query},
        watermark=watermark(to="2020-01-05T12:00:00"),
    )

    def change(value: int) -> None:
        database.ask("DELETE FROM {s}.events")
        database.put(*(event(day, f"2020-01-0{day}T01:00", "a", value) for day in range(1, 6)))

    change(0)
    assert feed.run(now=instant("2020-01-05T10:00")).error is None  # the last window is open
    change(1)
    days = ("--start", "2020-01-02", "--end", "2020-01-06", "--now", "2020-01-08")
    replay(feed, days=days)
    change(2)
    forced = ("run", feed.name, "--force", "2020-01-03..2020-01-04", "--now", "2020-01-05T10:00")
    feed.command(*forced)
    shown = preview_promote(feed.platform, feed.dataflow, TABLE)
    assert any("2020-01-03" in line and "2020-01-05" in line for line in shown), shown
    assert ended(feed).code == 0
    assert feed.rows("id", "value") == [(1, 0), (2, 1), (3, 2), (4, 1), (5, 0)]
    assert feed.run(now=instant("2020-01-08")).error is None
    assert feed.rows("id", "value") == [(1, 0), (2, 1), (3, 2), (4, 1), (5, 2)]
