"""A replay aside is promoted in one commit, or dropped, whoever dies when; what the live flow has loaded since stays (docs/reference/replay.md, Isolated)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from resources.outcome import Step
from resources.platform.platform import Platform
from resources.replay.isolated import promoting
from resources.replay.isolated.dropping import drop_replay
from resources.replay.isolated.promoting import promote_replay
from resources.replay.isolated.standing import IsolatedReplay
from resources.replay.isolated.unchanged import check_unchanged
from resources.spark.engine import SparkEngine
from resources.tables.contract.commits import Version
from tests.integration.test_dagster import run
from tests.support.asides import TABLE, stand_aside
from tests.support.columns import BY_TIME, REPLACED, Columns, at, on_lake
from tests.support.decision_crash import crash_deciding
from tests.support.feed import Answer, Feed, dies_after, sorted_rows
from tests.support.foreign_acts import Others
from tests.support.iceberg import iceberg_history
from tests.support.window_feed import LakeTable, instant

NOW = instant("2026-06-01")
UPSERT = {"load": "merge_upsert", "merge_keys": ["id"]}
WAYS: dict[str, dict[str, Any]] = {
    "append": {},
    "upsert": {"target": UPSERT},
    "replaced": {"target": REPLACED, "watermark": {**BY_TIME, "backward": {"days": 1}}},
}
BEFORE = [(1, 1), (2, 2), (5, 5)]
AFTER = [(1, 10), (3, 3), (5, 5)]


def row(number: int, value: int, day: int | None = None) -> dict[str, Any]:
    return {"id": number, "at": at(day or number), "value": value}


def rows(flow: Columns) -> list[Any]:
    return flow.feed.rows("id", "value")


def loaded(
    folder: Path, engine: SparkEngine, way: str, form: str, **settings: Any
) -> tuple[Columns, LakeTable]:
    """Three rows are loaded; then one was corrected at the source, one deleted, and one came late, all before day 4."""
    given = WAYS[way]
    flow, source = on_lake(folder, engine, **{**given, "target": {"format": form, **given.get("target", {})}})
    if settings:
        feed = flow.feed
        flow = Columns(Feed(folder, engine, feed.definition, settings["project"], settings["variables"]))
    source.put(*(row(number, value) for number, value in BEFORE))
    flow.run()
    source.put(row(1, 10), row(3, 3))
    source.drop(2)
    return flow, source


def promoted(flow: Columns) -> Answer:
    return flow.feed.cli("promote", flow.feed.name, TABLE, "--reason", "corrected", "--yes")


def replays(flow: Columns) -> Any:
    return flow.feed.cli("list").json[0]["replays"]


@pytest.mark.parametrize(
    ("way", "form"),
    [
        ("append", "delta"),
        ("upsert", "iceberg"),
        *(
            pytest.param(way, form, marks=pytest.mark.full)
            for way in WAYS
            for form in ("delta", "iceberg")
            if (way, form) not in {("append", "delta"), ("upsert", "iceberg")}
        ),
    ],
)
def test_a_promote_swaps_a_range_at_once(tmp_path: Path, engine: SparkEngine, way: str, form: str) -> None:
    flow, _ = loaded(tmp_path, engine, way, form)
    stand_aside(flow.feed, at(1), at(4), now=NOW)
    assert rows(flow) == BEFORE
    (shown,) = replays(flow)
    assert (shown["table"], shown["chunks"], shown["done"], shown["complete"]) == (TABLE, 4, 4, True)
    watermark, version = flow.watermark, _versions(flow, form)
    answer = promoted(flow)
    assert (answer.code, rows(flow)) == (0, AFTER)
    entry = answer.json["entry"]
    assert (entry["why"], entry["reason"], entry["rows"], entry["number"]) == ("promote", "corrected", 2, 2)
    assert (flow.watermark, _versions(flow, form)) == (watermark, version + 1)
    assert {tuple(seen) for seen in _seen(flow, form)} == {tuple(BEFORE), tuple(AFTER)}
    assert (replays(flow), (flow.feed.folder / "lake" / TABLE).exists()) == ([], False)
    assert flow.run().status == ("committed" if way == "replaced" else "nothing")  # which reads a day again
    assert rows(flow) == AFTER
    assert promoted(flow).code == 2


def _versions(flow: Columns, form: str) -> int:
    """How many versions of rows a reader can see."""
    if form == "delta":
        return int(DeltaTable(str(flow.feed.table)).version())
    table = flow.feed.platform.table(flow.feed.dataflow)
    return len(table.head(None, flow.feed.entries[0].app_id).tagged_commits)


def _seen(flow: Columns, form: str) -> list[list[tuple[Any, ...]]]:
    """The rows that readers have seen: of every version, or of every snapshot that was the newest once."""
    columns, folder = ("id", "value"), flow.feed.table
    if form == "delta":
        tables = [DeltaTable(str(folder), version=version) for version in range(_versions(flow, form) + 1)]
        found = [table.to_pyarrow_table(columns=list(columns)).to_pylist() for table in tables]
    else:
        found = iceberg_history(folder, columns)
    return [sorted_rows(each, columns) for each in found]


@pytest.mark.parametrize("end", [4, 9])
def test_a_newer_value_of_the_live_flow_stays(tmp_path: Path, engine: SparkEngine, end: int) -> None:
    flow, source = loaded(tmp_path, engine, "upsert", "delta")
    stand_aside(flow.feed, at(1), at(end), now=NOW)
    source.put(row(1, 60, day=6), row(7, 7))
    flow.run()
    assert promoted(flow).code == 0
    assert rows(flow) == [(1, 60), (3, 3), (5, 5), (7, 7)]
    assert flow.run().status == "nothing"


def test_a_promote_is_refused_once_its_range_was_loaded_again(tmp_path: Path, engine: SparkEngine) -> None:
    flow, source = loaded(tmp_path, engine, "upsert", "delta")
    stand_aside(flow.feed, at(1), at(4), now=NOW)
    flow.feed.decide("rewind", "--to", "0")
    source.put(row(1, 11))
    flow.run()
    answer = promoted(flow)
    assert (answer.code, answer.json["error"]["code"]) == (4, "range_loaded_again")
    assert (1, 11) in rows(flow)


@pytest.mark.full
@pytest.mark.remedy("nothing_loaded", "run", "drop")
def test_a_replay_before_the_first_run_is_dropped_after_it(tmp_path: Path, engine: SparkEngine) -> None:
    flow, source = on_lake(tmp_path, engine)
    source.put(row(1, 1), row(3, 3))
    stand_aside(flow.feed, at(1), at(4), now=NOW)
    error = promoted(flow).json["error"]
    assert error["code"] == "nothing_loaded"
    run, drop = error["choices"]
    flow.feed.command(*run.split()[1:])
    flow.feed.command(*drop.replace("TEXT", "x").split()[1:], "--yes")
    assert (rows(flow), replays(flow)) == ([(1, 1), (3, 3)], [])


@pytest.mark.full
@pytest.mark.remedy("replay_promoted", "drop")
def test_a_promoted_replay_that_remains_is_dropped_and_made_again(
    tmp_path: Path, engine: SparkEngine
) -> None:
    flow, _ = loaded(tmp_path, engine, "append", "delta")
    again = ("replay", flow.feed.name, "--start", "2026-01-01", "--end", "2026-01-04", "--into", TABLE)
    flow.feed.command(*again)
    with pytest.raises(KeyboardInterrupt):
        promote_replay(
            flow.feed.platform, flow.feed.dataflow, TABLE, "r", NOW, observer=dies_after(Step.APPENDED)
        )
    promoted_rows = rows(flow)
    error = flow.feed.cli(*again).error
    assert error["code"] == "replay_promoted"
    (drop,) = error["choices"]
    flow.feed.command(*drop.replace("TEXT", "x").split()[1:], "--yes")
    assert (rows(flow), replays(flow)) == (promoted_rows, [])
    flow.feed.command(*again)


@pytest.mark.each_case
@pytest.mark.parametrize("way", ["append", "upsert"])
def test_a_replay_from_before_the_first_run_is_refused(tmp_path: Path, engine: SparkEngine, way: str) -> None:
    flow, source = on_lake(tmp_path, engine, **WAYS[way])
    source.put(row(1, 1), row(3, 3))
    stand_aside(flow.feed, at(1), at(4), now=NOW)
    source.put(row(3, 30), row(5, 5))
    flow.run()
    answer = promoted(flow)
    assert (answer.code, answer.json["error"]["code"]) == (4, "range_loaded_again")
    assert "entry 1 loaded rows" in answer.json["error"]["message"]
    assert rows(flow) == [(1, 1), (3, 30), (5, 5)]
    assert [each["table"] for each in replays(flow)] == [TABLE]


def test_an_older_replay_is_not_promoted_over_a_newer_one(tmp_path: Path, engine: SparkEngine) -> None:
    flow, source = loaded(tmp_path, engine, "append", "delta")
    stand_aside(flow.feed, at(1), at(4), now=NOW)
    source.drop(1, 3)  # so that the newer one only deletes
    stand_aside(flow.feed, at(1), at(4), now=NOW, table="aside/newer")
    flow.feed.command("promote", flow.feed.name, "aside/newer", "--reason", "r", "--yes")
    answer = promoted(flow)
    assert (answer.code, answer.json["error"]["code"]) == (4, "range_loaded_again")
    assert rows(flow) == [(5, 5)]


@pytest.mark.parametrize(("end", "code"), [(4, 0), (9, 4)])
def test_a_late_look_back_holds_it_up(tmp_path: Path, engine: SparkEngine, end: int, code: int) -> None:
    flow, source = loaded(tmp_path, engine, "replaced", "delta")
    stand_aside(flow.feed, at(1), at(end), now=NOW)
    source.put(row(6, 6))
    flow.run()
    assert promoted(flow).code == code
    assert rows(flow) == [*(AFTER if code == 0 else BEFORE), (6, 6)]


@pytest.mark.parametrize(("job", "left"), [("strandline_promote", AFTER), ("strandline_drop", BEFORE)])
def test_both_are_jobs_that_only_show_what_they_would_do_unless_it_is_confirmed(
    tmp_path: Path, engine: SparkEngine, job: str, left: list[Any]
) -> None:
    flow, _ = loaded(tmp_path, engine, "append", "delta")
    stand_aside(flow.feed, at(1), at(4), now=NOW)
    form = {"dataflow": flow.feed.name, "table": TABLE, "reason": "because"}
    assert run(flow.feed, job, form).success
    assert (rows(flow), len(replays(flow))) == (BEFORE, 1)
    assert run(flow.feed, job, {**form, "confirm": True}).success
    assert (rows(flow), replays(flow)) == (left, [])


def test_an_unfinished_replay_is_not_promoted_and_can_be_dropped(tmp_path: Path, engine: SparkEngine) -> None:
    flow, _ = loaded(tmp_path, engine, "append", "delta")
    stand_aside(flow.feed, at(1), at(9), now=NOW, complete=False)
    answer = promoted(flow)
    error = answer.json["error"]
    assert (answer.code, error["code"]) == (4, "replay_unfinished")
    assert "2026-01-06" in error["message"]
    assert [choice.split()[1] for choice in error["choices"]] == ["replay", "drop"]
    dropped = flow.feed.cli("drop", flow.feed.name, TABLE, "--reason", "r", "--yes")
    assert (dropped.code, rows(flow), replays(flow)) == (0, BEFORE, [])
    assert not (flow.feed.folder / "lake" / TABLE).exists()
    assert list((flow.feed.folder / "state").glob("*~*/*/*")) == []
    for words in (("promote",), ("drop",)):
        again = flow.feed.cli(*words, flow.feed.name, TABLE, "--reason", "r", "--yes")
        assert again.code == 2


STEPS = (Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED, Step.APPENDED, Step.TABLE_REMOVED)


@pytest.mark.each_case
@pytest.mark.parametrize("form", ["delta", pytest.param("iceberg", marks=pytest.mark.full)])
@pytest.mark.parametrize("first", ["promote", pytest.param("run", marks=pytest.mark.full)])
@pytest.mark.parametrize("step", STEPS)
def test_a_promote_that_died_is_ended_by_the_same_command(
    tmp_path: Path, engine: SparkEngine, step: Step, first: str, form: str
) -> None:
    flow, source = loaded(tmp_path, engine, "upsert", form)
    stand_aside(flow.feed, at(1), at(4), now=NOW)
    with pytest.raises(KeyboardInterrupt):
        promote_replay(flow.feed.platform, flow.feed.dataflow, TABLE, "r", NOW, observer=dies_after(step))
    source.put(row(8, 8))
    if first == "run":
        flow.run()
    answer = promoted(flow)
    assert answer.code == 0, answer.out
    flow.run()
    assert rows(flow) == [*AFTER, (8, 8)]
    assert [entry.why for entry in flow.feed.entries].count("promote") == 1
    assert (replays(flow), flow.feed.open_intent) == ([], None)


def test_a_promote_that_was_killed_is_ended_by_the_same_command(tmp_path: Path, engine: SparkEngine) -> None:
    flow, _ = loaded(tmp_path, engine, "append", "delta")
    stand_aside(flow.feed, at(1), at(4), now=NOW)
    words = ("promote", flow.feed.name, TABLE, "--reason", "r", "--yes")
    crash_deciding(flow.feed, "intents", *words)
    flow.feed.command(*words)
    assert (rows(flow), replays(flow)) == (AFTER, [])
    assert (flow.run().status, flow.feed.open_intent) == ("nothing", None)


@pytest.mark.parametrize(
    ("act", "form"),
    [
        ("dropped", "delta"),
        ("dropped", "iceberg"),
        ("changed", "delta"),
        ("changed", "iceberg"),
        pytest.param("dropped", "parquet", marks=pytest.mark.full),
    ],
)
def test_a_changed_replay_leaves_live_rows(tmp_path: Path, engine: SparkEngine, act: str, form: str) -> None:
    flow, _ = loaded(tmp_path, engine, "append", form)
    stand_aside(flow.feed, at(1), at(4), now=NOW)

    def hears(step: Step, line: str) -> None:
        if step is Step.INTENT_PUT and act == "dropped":
            shutil.rmtree(flow.feed.folder / "lake" / TABLE)
        elif step is Step.INTENT_PUT:
            Others(flow.feed, engine.session(), TABLE).do("delete")

    if act == "dropped":
        with pytest.raises(StrandlineError):
            promote_replay(flow.feed.platform, flow.feed.dataflow, TABLE, "r", NOW, observer=hears)
        assert rows(flow) == BEFORE
        flow.feed.command("drop", flow.feed.name, TABLE, "--reason", "r", "--yes")
        flow.run()
        assert rows(flow) == BEFORE
    else:
        promote_replay(flow.feed.platform, flow.feed.dataflow, TABLE, "r", NOW, observer=hears)
        assert rows(flow) == AFTER
    assert (replays(flow), flow.feed.open_intent) == ([], None)


def test_a_replay_dropped_under_a_promote_is_not_one_without_rows(
    tmp_path: Path, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, _ = loaded(tmp_path, engine, "append", "delta")
    stand_aside(flow.feed, at(1), at(4), now=NOW)

    def dropped_first(platform: Platform, dataflow: Dataflow, aside: IsolatedReplay) -> Version | None:
        drop_replay(platform, dataflow, TABLE, "r", NOW)
        return check_unchanged(platform, dataflow, aside)

    monkeypatch.setattr(promoting, "check_unchanged", dropped_first)
    answer = promoted(flow)
    assert (answer.code, answer.json["error"]["code"]) == (4, "replay_unfinished")
    assert (rows(flow), len(flow.feed.entries)) == (BEFORE, 1)


@pytest.mark.full
def test_a_promote_swaps_its_own_rows_of_a_shared_table(tmp_path: Path, engine: SparkEngine) -> None:
    shared = {"target": {**UPSERT, "table": "bronze/both", "shared": True}}
    flow, source = on_lake(tmp_path, engine, **shared)
    definition = {**flow.feed.definition, **shared}
    other = Columns(Feed(tmp_path, engine, definition, name="other"))
    source.put(*(row(number, value) for number, value in BEFORE))
    flow.run()
    other.run()
    source.put(row(1, 10), row(3, 3))
    source.drop(2)
    stand_aside(flow.feed, at(1), at(4), now=NOW)
    assert promoted(flow).code == 0
    assert flow.feed.rows("_dataflow", "id", "value") == [
        *((flow.feed.name, *pair) for pair in AFTER),
        *(("other", *pair) for pair in BEFORE),
    ]


@pytest.mark.parametrize("form", ["delta", pytest.param("iceberg", marks=pytest.mark.full)])
def test_a_dead_drop_is_ended_by_its_command(tmp_path: Path, engine: SparkEngine, form: str) -> None:
    flow, _ = loaded(tmp_path, engine, "append", form)
    stand_aside(flow.feed, at(1), at(4), now=NOW)
    with pytest.raises(KeyboardInterrupt):
        drop_replay(
            flow.feed.platform, flow.feed.dataflow, TABLE, "r", NOW, observer=dies_after(Step.TABLE_REMOVED)
        )
    refused = promoted(flow)
    assert (refused.code, refused.json["error"]["code"]) == (4, "replay_dropping")
    flow.feed.command("drop", flow.feed.name, TABLE, "--reason", "r", "--yes")
    assert (rows(flow), replays(flow)) == (BEFORE, [])
