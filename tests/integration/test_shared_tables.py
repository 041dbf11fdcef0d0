"""Dataflows that share a table, from their sources to the table and through decisions and crashes (docs/reference/loads.md, Tables that dataflows share)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.support.crash_runner import WRITING, crash
from tests.support.feed import NAME, Feed, answer_of
from tests.support.window_feed import REPLACED, instant, watermark

BOTH = {"table": "bronze/both", "shared": True}
UPSERT = {"load": "merge_upsert", "merge_keys": ["id"]}
OTHER = "other"
SLOW = "SELECT * FROM input WHERE coalesce(java_method('java.lang.Thread', 'sleep', 300L), '') <> 'x'"
"""Slow enough to be killed in its middle; the write goes on at the server."""


def _pair(folder: Path, engine: SparkEngine, **definition: Any) -> tuple[Feed, Feed]:
    """Two dataflows of one project that share a table, each with a landing zone of its own."""
    target = BOTH | definition.pop("target", {})
    made = [Feed(folder, engine, {**definition, "target": target}, name=name) for name in (NAME, OTHER)]
    return made[0], made[1]


def _rows(feed: Feed) -> list[tuple[Any, ...]]:
    """Whose each row is, and its id."""
    return feed.rows("_dataflow", "id")


def test_rows_say_whose_they_are_and_are_counted_so(tmp_path: Path, engine: SparkEngine) -> None:
    flow, other = _pair(tmp_path, engine)
    for feed, ids in ((flow, (1, 2)), (other, (3,)), (flow, (4,)), (other, (5, 6))):
        feed.put(f"d=1/{ids[0]}.ndjson", *ids)
        assert feed.load().rows == len(ids)
    assert _rows(flow) == [(NAME, 1), (NAME, 2), (NAME, 4), (OTHER, 3), (OTHER, 5), (OTHER, 6)]
    assert [feed.entries[-1].total_rows for feed in (flow, other)] == [3, 3]
    assert [feed.platform.table(feed.dataflow).contents.count_rows() for feed in (flow, other)] == [3, 3]
    assert [feed.load().status for feed in (flow, other)] == ["nothing", "nothing"]


def test_bad_records_of_one_file_name_are_kept_by_dataflow(tmp_path: Path, engine: SparkEngine) -> None:
    source = {"format": "ndjson", "schema": "id long"}
    flow, other = _pair(tmp_path, engine, source=source, max_bad_records=1)
    for feed in (flow, other):
        feed.put_text("a.ndjson", f'{{"id": 1}}\n{{"id": "of {feed.name}"}}\n')
        feed.load()
    kept = {
        name: DeltaTable(str(tmp_path / f"lake/bronze/{name}_bad_records"))
        .to_pyarrow_table()["text"]
        .to_pylist()
        for name in (NAME, OTHER)
    }
    assert kept == {name: [f'{{"id": "of {name}"}}'] for name in (NAME, OTHER)}


@pytest.mark.parametrize("decision", [("reset",), ("rewind", "--to", "0")], ids=["reset", "rewind"])
def test_a_decision_that_replaces_deletes_the_rows_of_its_dataflow_alone(
    tmp_path: Path, engine: SparkEngine, decision: tuple[str, ...]
) -> None:
    flow, other = _pair(tmp_path, engine)
    for feed in (flow, other):
        feed.put("a.ndjson", 1, 2)
        feed.load()
    flow.put("a.ndjson", 3)
    verb, *rest = decision
    flow.decide(verb, *rest, "--replace")
    flow.load()
    assert _rows(flow) == [(NAME, 3), (OTHER, 1), (OTHER, 2)]
    assert flow.entries[-1].total_rows == 1
    assert other.load().status == "nothing"


def test_a_dataflow_without_state_stops_and_adopts_its_own(tmp_path: Path, engine: SparkEngine) -> None:
    flow, other = _pair(tmp_path, engine)
    for feed in (flow, other):
        feed.put("b.ndjson", 1)
        feed.load()
    flow.state.rename(tmp_path / "lost")
    flow.put("c.ndjson", 2)
    assert flow.cli("run", NAME).error["code"] == "state_lost"
    flow.decide("adopt")
    assert (flow.path, flow.entries[-1].total_rows) == ("b.ndjson", 1)
    flow.load()
    assert _rows(flow) == [(NAME, 1), (NAME, 2), (OTHER, 1)]


def test_a_restored_table_stops_whoever_lost_rows(tmp_path: Path, engine: SparkEngine) -> None:
    flow, other = _pair(tmp_path, engine)
    for feed, name in ((flow, "a"), (other, "a"), (flow, "b")):
        feed.put(f"{name}.ndjson", 1)
        feed.load()
    DeltaTable(str(flow.table)).restore(1)
    assert flow.cli("run", NAME).error["code"] == "table_behind"
    other.put("b.ndjson", 2)
    assert other.load().status == "committed"  # all of its rows are still there
    flow.decide("adopt")
    assert flow.path == "a.ndjson"
    flow.load()
    assert _rows(flow) == [(NAME, 1), (NAME, 1), (OTHER, 1), (OTHER, 2)]


def test_each_loads_again_after_removal_and_reset(tmp_path: Path, engine: SparkEngine) -> None:
    flow, other = _pair(tmp_path, engine)
    for feed in (flow, other):
        feed.put("a.ndjson", 1)
        feed.load()
    shutil.rmtree(flow.table)
    for feed in (flow, other):
        assert feed.cli("run", feed.name).error["code"] == "table_missing"
        feed.decide("reset")
    for feed in (flow, other):
        assert feed.load().status == "committed"
    assert _rows(flow) == [(NAME, 1), (OTHER, 1)]
    assert [feed.load().status for feed in (flow, other)] == ["nothing", "nothing"]


def test_a_table_loaded_alone_tells_another_no_state(tmp_path: Path, engine: SparkEngine) -> None:
    flow, other = _pair(tmp_path, engine)
    flow.define(target={"shared": False})
    flow.put("a.ndjson", 1)
    other.define(target={"table": "bronze/later"})
    flow.load()
    for feed in (flow, other):
        feed.define(target=BOTH)
    other.put("a.ndjson", 2)
    assert other.cli("run", OTHER).error["code"] == "state_lost"
    adopted = other.cli("state", "adopt", OTHER, "--reason", "test", "--yes")
    assert (adopted.code, other.entries) == (4, [])
    flow.cli("state", "reset", NAME, "--replace", "--reason", "test", "--yes")
    flow.load()
    assert other.load().status == "committed"
    assert _rows(flow) == [(NAME, 1), (OTHER, 2)]


def test_columns_that_a_shared_table_lacks_are_told(tmp_path: Path, engine: SparkEngine) -> None:
    flow, other = _pair(tmp_path, engine)
    other.define(source={"schema": "id long, name string"})
    flow.put("a.ndjson", 1)
    flow.load()
    other.put("a.ndjson", {"id": 2, "name": "x"})
    error = other.fail()
    assert "state reset" not in " ".join(error.choices)
    assert "other dataflows" in error.message


FOLDERS = "./days/{start:%Y-%m-%d}"


def _path_and_folders(folder: Path, engine: SparkEngine, **target: Any) -> tuple[Feed, Feed]:
    """Two dataflows that share a table: one of files that come, and one of a folder for each day, whose rows tell their window."""
    source = {"schema": "id long"}
    flow = Feed(folder, engine, {"source": source, "target": BOTH | target}, name=NAME)
    days = {
        "source": source | {"path": FOLDERS, "extensions": [".ndjson"]},
        "watermark": watermark(units=None, partial=False),
        "target": BOTH | REPLACED | target,
    }
    return flow, Feed(folder, engine, days, name=OTHER)


def _put_day(feed: Feed, day: int, *ids: int) -> None:
    path = feed.folder / "days" / f"2020-01-{day:02d}" / "x.ndjson"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f'{{"id": {id_}}}\n' for id_ in ids))


def test_rows_that_a_shared_table_refuses_are_told(tmp_path: Path, engine: SparkEngine) -> None:
    flow, days = _path_and_folders(tmp_path, engine)
    flow.put("a.ndjson", 1)
    flow.load()
    _put_day(days, 1, 2)
    error = days.run(now=instant("2020-01-02T06:00")).error
    assert error is not None
    assert "the rows have _window_start timestamp, _unit string, which the table lacks." in error.message
    assert (
        "To go on, set schema_mode: merge in each file of the table, which accepts new columns; or"
        in error.message
    )


@pytest.mark.full
@pytest.mark.each_case
@pytest.mark.parametrize("more", [{}, {"merge_keys": ["id"]}], ids=["windows", "keys"])
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_windows_join_a_table_of_files_that_takes_columns(
    tmp_path: Path, engine: SparkEngine, form: str, more: dict[str, Any]
) -> None:
    flow, days = _path_and_folders(tmp_path, engine, format=form, schema_mode="merge")
    days.define(target=more)
    flow.put("a.ndjson", 1)
    flow.load()
    for day in (1, 2):
        _put_day(days, day, 10 * day)
    assert days.run(now=instant("2020-01-03T06:00")).error is None
    _put_day(days, 3, 30)
    assert days.run(now=instant("2020-01-04T06:00")).error is None
    flow.put("b.ndjson", 2)
    flow.load()
    found = [(row[0], row[1], row[2] and row[2].day) for row in flow.rows("_dataflow", "id", "_window_start")]
    assert found == [
        (NAME, 1, None),
        (NAME, 2, None),
        (OTHER, 10, 1),
        (OTHER, 20, 2),
        (OTHER, 30, 3),
    ]


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_rows_by_keys_bring_columns_to_a_shared_table(tmp_path: Path, engine: SparkEngine, form: str) -> None:
    flow, other = _pair(tmp_path, engine, target={"format": form, "schema_mode": "merge"})
    other.define(source={"schema": "id long, name string"}, target=UPSERT)
    flow.put("a.ndjson", 1)
    flow.load()
    for name in ("x", "y"):
        other.put(f"{name}.ndjson", {"id": 1, "name": name})
        assert other.load().status == "committed"
    assert flow.rows("_dataflow", "id", "name") == [(NAME, 1, None), (OTHER, 1, "y")]


def test_a_dataflow_with_a_table_of_its_own_resets_its_columns(tmp_path: Path, engine: SparkEngine) -> None:
    flow, _ = _pair(tmp_path, engine)
    flow.put("a.ndjson", 1)
    flow.load()
    (flow.landing / "a.ndjson").unlink()
    flow.put("a.ndjson", {"id": 1, "name": "x"})
    flow.define(source={"schema": "id long, name string"})
    flow.decide("reset", "--replace")
    flow.load()
    assert flow.rows("_dataflow", "id", "name") == [(NAME, 1, "x")]


@pytest.mark.full
@pytest.mark.parametrize("first", [True, False], ids=["first slice", "later slice"])
@pytest.mark.parametrize("step", [Step.INTENT_PUT, WRITING, Step.WRITTEN, Step.VERIFIED])
def test_a_dead_run_is_finished_once_after_another_dataflow_commits(
    tmp_path: Path, engine: SparkEngine, step: str, first: bool
) -> None:
    slow = {"sql": SLOW} if step == WRITING else {}
    flow, other = _pair(tmp_path, engine, target=UPSERT if step == Step.WRITTEN else {}, **slow)
    if not first:
        flow.put("a.ndjson", 1)
        flow.load()
    flow.put("b.ndjson", 2, 3)
    other.put("a.ndjson", 4)
    crash(flow, step)
    other.load()
    assert flow.load().status == "recovered"
    assert _rows(flow) == ([] if first else [(NAME, 1)]) + [(NAME, 2), (NAME, 3), (OTHER, 4)]
    assert [flow.load().status, other.load().status] == ["nothing", "nothing"]
    assert flow.entries[-1].total_rows == (2 if first else 3)


@pytest.mark.full
@pytest.mark.parametrize("load", [{"load": "append"}, UPSERT], ids=["append", "merge_upsert"])
def test_dataflows_at_one_moment_both_load(tmp_path: Path, engine: SparkEngine, load: dict[str, Any]) -> None:
    pair = _pair(tmp_path, engine, target=load, watermark={"checkpoint": {"interval_files": 1}})
    for turn in range(2):  # the first one makes the table
        for feed in pair:
            for number in range(4):
                feed.put(f"{turn}{number}.ndjson", 10 * turn + number)
        runs = [feed.start("run", feed.name) for feed in pair]
        answers = [answer_of(run) for run in runs]
        assert [answer.code for answer in answers] == [0, 0], [answer.err for answer in answers]
    ids = [10 * turn + number for turn in range(2) for number in range(4)]
    assert _rows(pair[0]) == [(name, number) for name in (NAME, OTHER) for number in ids]
    assert [feed.entries[-1].total_rows for feed in pair] == [8, 8]
