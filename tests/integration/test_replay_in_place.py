"""A range is read again into the dataflow's own table, chunk by chunk, while live runs go on (docs/reference/replay.md, In place)."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from partitions.column.state import ColumnState, ReadBound
from resources.outcome import Step
from resources.replay.in_place import replay_in_place
from resources.replay.options import ReplayOptions
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.integration.test_dagster import run
from tests.support.columns import BY_TIME, REPLACED, Columns, PostgresRows, at, on_lake, on_postgres
from tests.support.decision_crash import crash_deciding
from tests.support.feed import Answer, Feed, dies_after
from tests.support.window_feed import LakeTable, instant

UPSERT: dict[str, Any] = {"load": "merge_upsert", "merge_keys": ["id"]}
BY_KEYS: dict[str, Any] = {"load": "merge_overwrite", "merge_keys": ["id"]}
DAYS = ("--start", "2026-01-01", "--end", "2026-01-06", "--every", "1 day")
ASKED = ReplayOptions("2026-01-01", "2026-01-06", every="1 day")
LOADS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "append": ({}, ("--replace",)),
    "upsert": (UPSERT, ()),
    "upsert and replace": (UPSERT, ("--replace",)),
    "by keys": (BY_KEYS, ()),
    "by keys and replace": (BY_KEYS, ("--replace",)),
    "by range": (REPLACED, ()),
}
KEPT = {"upsert", "by keys"}
"""Loads that keep rows which are gone at the source."""


def row(number: int, value: int, day: int | None = None) -> dict[str, Any]:
    return {"id": number, "at": at(day or number), "value": value}


def replayed(flow: Columns, *more: str, days: tuple[str, ...] = DAYS) -> Answer:
    return flow.feed.cli("replay", flow.feed.name, *days, *more)


def replay(flow: Columns, *more: str, days: tuple[str, ...] = DAYS) -> Answer:
    return flow.feed.command("replay", flow.feed.name, *days, *more)


def statuses(answer: Answer) -> list[str]:
    return [chunk["status"] for chunk in answer.json[0]["chunks"]]


def definition(target: dict[str, Any]) -> dict[str, Any]:
    """A dataflow with this target; one that replaces by range looks back."""
    back = {"watermark": BY_TIME | {"backward": {"hours": 1}}} if target == REPLACED else {}
    return {"target": target, **back}


def loaded(
    folder: Path, engine: SparkEngine, form: str = "delta", **target: Any
) -> tuple[Columns, LakeTable]:
    """Rows of days 1 to 4 and 9 are loaded; then one is corrected, one is gone, one came late, and one is new."""
    made = definition(target)
    flow, source = on_lake(folder, engine, **made | {"target": {**made["target"], "format": form}})
    source.put(*(row(number, 0) for number in (1, 2, 3, 4, 9)))
    flow.run()
    source.drop(2)
    source.put(row(1, 1), row(20, 0, day=4), row(10, 0))
    return flow, source


@pytest.mark.parametrize(
    ("load", "form"),
    [
        *((load, "delta") for load in ("append", "upsert", "by range")),
        *(pytest.param(load, "delta", marks=pytest.mark.full) for load in LOADS if load not in ("append", "upsert", "by range")),
        *(pytest.param(load, "iceberg", marks=pytest.mark.full) for load in LOADS),
        ("append", "parquet"),
        pytest.param("by range", "parquet", marks=pytest.mark.full),
    ],
)  # fmt: skip
@pytest.mark.full
def test_chunks_write_once_below_a_mark(tmp_path: Path, engine: SparkEngine, load: str, form: str) -> None:
    target, options = LOADS[load]
    flow, _ = loaded(tmp_path, engine, form, **target)
    before = flow.watermark
    answer = replay(flow, *options)
    gone = [(2, 0)] if load in KEPT else []
    cleared = "nothing" if gone else "committed"
    assert statuses(answer) == ["committed", cleared, "committed", "committed", "nothing"]
    first = answer.json[0]["chunks"][0]
    assert (first["lower"], first["rows"]) == ({"__datetime__": "2026-01-01T00:00:00+00:00"}, 1)
    assert flow.feed.rows("id", "value") == [(1, 1), *gone, (3, 0), (4, 0), (9, 0), (20, 0)]
    assert flow.watermark == before
    whys = [entry.why for entry in flow.feed.entries]
    assert sorted(whys) == ["replay"] * (len(whys) - 1) + ["run"]
    assert flow.run().newest is not None  # the new one
    assert flow.feed.rows("id", "value") == [(1, 1), *gone, (3, 0), (4, 0), (9, 0), (10, 0), (20, 0)]
    again = replayed(flow, *options)
    assert (again.code, statuses(again).count("skipped")) == (
        0,
        0,
    )  # when it is over, it can be asked for again
    assert flow.feed.rows("id", "value") == [(1, 1), *gone, (3, 0), (4, 0), (9, 0), (10, 0), (20, 0)]


@pytest.mark.parametrize("load", [pytest.param("upsert", marks=pytest.mark.full), "by keys"])
@pytest.mark.full
def test_a_newer_value_of_a_key_that_is_there_stays(tmp_path: Path, engine: SparkEngine, load: str) -> None:
    flow, source = on_lake(tmp_path, engine, target=LOADS[load][0])
    source.put(row(1, 0), row(2, 0))
    flow.run()
    source.add({"id": 1, "at": at(9), "value": 9})  # beside the old one: the source keeps both
    flow.run()
    assert flow.feed.rows("id", "value") == [(1, 9), (2, 0)]
    replay(flow)
    assert flow.feed.rows("id", "value") == [(1, 9), (2, 0)]


def test_rows_above_the_watermark_are_left_to_an_append(tmp_path: Path, engine: SparkEngine) -> None:
    flow, source = on_lake(tmp_path, engine)
    source.put(row(1, 0), row(3, 0))
    assert statuses(replayed(flow, "--replace")) == ["nothing"] * 5  # nothing is loaded yet
    flow.run()
    source.put(row(4, 0), row(5, 0), {"id": 6, "at": at(3, 5), "value": 0})
    assert statuses(replayed(flow, "--replace")) == [
        "committed",
        "nothing",
        "committed",
        "nothing",
        "nothing",
    ]
    assert flow.ids == [1, 3]
    flow.run()
    assert flow.ids == [1, 3, 4, 5, 6]


@pytest.mark.full
def test_a_failed_chunk_stops_and_a_retry_goes_on(tmp_path: Path, engine: SparkEngine) -> None:
    flow, source = on_lake(tmp_path, engine, target=UPSERT)
    for number in (1, 3, 5):
        source.add(row(number, 0))
    flow.run()
    with source.without(3):
        answer = replayed(flow)
        assert answer.code == 1, answer.out
        assert statuses(answer) == ["committed", "nothing", "failed", "pending", "pending"]
        error = answer.json[0]["chunks"][2]["error"]
        assert error.startswith("chunk 2026-01-03")
        assert answer.json[0]["error"]["message"] == error
    assert flow.run().status == "nothing"  # runs go on
    shown = replayed(flow, "--dry-run").json[0]
    assert (len(shown["slices"]), len(shown["skips"])) == (4, 1)
    answer = replay(flow)
    assert statuses(answer) == ["skipped", "nothing", "committed", "nothing", "committed"]


@pytest.mark.full
def test_a_failing_dataflow_keeps_no_other_from_its_chunks(tmp_path: Path, engine: SparkEngine) -> None:
    flow, source = loaded(tmp_path, engine, **UPSERT)
    definition = flow.feed.definition | {"source": {"type": "table", "table": "raw/others"}}
    others = LakeTable(flow.feed.folder / "lake" / "raw" / "others", source.schema)
    others.put(row(1, 0))
    other = Columns(Feed(flow.feed.folder, engine, definition, name="other"))
    other.run()
    others.put(row(1, 7))
    with source.without():
        answer = replayed(flow, other.feed.name)
    assert answer.code == 1, answer.out
    failed, done = answer.json
    assert [document["dataflow"] for document in answer.json] == [flow.feed.name, "other"]
    assert (failed["chunks"][0]["status"], done["chunks"][0]["status"]) == ("failed", "committed")
    assert other.feed.rows("id", "value") == [(1, 7)]


@pytest.mark.parametrize(
    ("load", "step", "live"),
    [
        ("append", Step.INTENT_PUT, True),
        ("append", Step.WRITTEN, False),
        *(
            pytest.param(load, step, live, marks=pytest.mark.full)
            for load in ("append", "upsert")
            for step in (Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED, Step.APPENDED)
            for live in (True, False)
        ),
    ],
)
def test_a_replay_that_died_holds_no_run_back_and_is_ended_by_the_same_command(
    tmp_path: Path, engine: SparkEngine, load: str, step: Step, live: bool
) -> None:
    target, options = LOADS[load]
    flow, source = loaded(tmp_path, engine, **target)
    asked = ReplayOptions("2026-01-01", "2026-01-06", every="1 day", replace=bool(options))
    with pytest.raises(KeyboardInterrupt):
        replay_in_place(
            flow.feed.platform, flow.feed.dataflow, asked, instant("2026-06-01"), observer=dies_after(step)
        )
    if live:
        flow.run()
        assert 10 in flow.ids
        assert len(flow.ids) == len(set(flow.ids))
    replay(flow, *options)
    flow.run()
    gone = [(2, 0)] if load in KEPT else []
    assert flow.feed.rows("id", "value") == [(1, 1), *gone, (3, 0), (4, 0), (9, 0), (10, 0), (20, 0)]
    source.put(row(11, 0))
    assert flow.run().rows == 1


@pytest.mark.parametrize("load", ["append", pytest.param("by keys and replace", marks=pytest.mark.full)])
def test_rows_that_a_dead_replay_replaced_count_as_deleted_by_nobody(
    tmp_path: Path, engine: SparkEngine, load: str
) -> None:
    target, options = LOADS[load]
    flow, _ = loaded(tmp_path, engine, **target)
    asked = ReplayOptions("2026-01-02", "2026-01-03", replace=True)  # whose one row is gone at the source
    now = instant("2026-06-01")
    with pytest.raises(KeyboardInterrupt):
        replay_in_place(flow.feed.platform, flow.feed.dataflow, asked, now, observer=dies_after(Step.WRITTEN))
    assert flow.ids == [1, 3, 4, 9]
    assert replay(flow, *options, days=(*DAYS, "--dry-run")).json[0]["slices"] != []
    replay(flow, *options)
    assert flow.feed.rows("id", "value") == [(1, 1), (3, 0), (4, 0), (9, 0), (20, 0)]


@pytest.mark.full
@pytest.mark.parametrize("folder", ["replaying", "files", "intents", "entries"])
def test_a_killed_replay_ends_by_its_command(tmp_path: Path, engine: SparkEngine, folder: str) -> None:
    flow, _ = loaded(tmp_path, engine)
    crash_deciding(flow.feed, folder, "replay", flow.feed.name, *DAYS, "--replace")
    replay(flow, "--replace")
    flow.run()
    assert flow.feed.rows("id", "value") == [(1, 1), (3, 0), (4, 0), (9, 0), (10, 0), (20, 0)]


@pytest.mark.full
def test_live_runs_go_on_between_chunks_and_give_way_within(tmp_path: Path, engine: SparkEngine) -> None:
    flow, source = loaded(tmp_path, engine)
    codes: list[int] = []
    asked = ReplayOptions("2026-01-01", "2026-01-06", every="1 day", replace=True)

    def hears(step: Step, line: str) -> None:
        if step is Step.INTENT_PUT:
            codes.append(flow.feed.cli("run", flow.feed.name).code)

    def told(reports: Any) -> None:
        source.put(row(10 + len(codes), 0))
        flow.run()

    done = replay_in_place(
        flow.feed.platform, flow.feed.dataflow, asked, instant("2026-06-01"), observer=hears, on_progress=told
    )
    assert (done.outcome.error, codes) == (None, [3] * 4)
    assert flow.ids == [1, 3, 4, 9, 10, 11, 12, 13, 14, 20]


def test_a_run_that_is_faster_than_a_chunk_is_waited_for(tmp_path: Path, engine: SparkEngine) -> None:
    flow, _ = loaded(tmp_path, engine, **UPSERT)
    ran: list[str] = []

    def hears(step: Step, line: str) -> None:
        if step is Step.LIST_KEPT and not ran:
            ran.append(flow.run().status)

    asked = ReplayOptions("2026-01-01", "2026-01-06")
    done = replay_in_place(
        flow.feed.platform, flow.feed.dataflow, asked, instant("2026-06-01"), observer=hears
    )
    assert (done.outcome.error, ran, done.reports[0]["rows"]) == (None, ["committed"], 4)
    assert flow.feed.rows("id", "value") == [(1, 1), (2, 0), (3, 0), (4, 0), (9, 0), (10, 0), (20, 0)]


def test_saved_chunks_move_the_watermark_and_are_skipped(tmp_path: Path, engine: SparkEngine) -> None:
    flow, source = on_lake(tmp_path, engine)
    source.put(*(row(number, 0) for number in (1, 3, 9)))
    answer = replay(flow, "--replace", "--save-watermark")
    assert statuses(answer) == ["committed", "nothing", "committed", "nothing", "nothing"]
    assert ColumnState.of(flow.watermark).bounds["at"] == ReadBound(instant("2026-01-04"), False)
    source.put({"id": 4, "at": instant("2026-01-04"), "value": 0})  # what is saved is exclusive
    again = replayed(flow, "--replace", "--save-watermark")
    assert statuses(again) == ["skipped", "skipped", "skipped", "committed", "nothing"]
    flow.run()
    assert flow.ids == [1, 3, 4, 9]


def test_a_table_aside_saves_no_watermark(tmp_path: Path, engine: SparkEngine) -> None:
    flow, _ = on_lake(tmp_path, engine, target=UPSERT)
    answer = replayed(flow, "--into", "aside/rows", "--save-watermark")
    assert (answer.code, "found both" in answer.json["error"]["message"]) == (2, True)


def test_an_append_is_replayed_with_replace_alone(tmp_path: Path, engine: SparkEngine) -> None:
    flow, _ = loaded(tmp_path, engine)
    for options in ((), ("--save-watermark",), ("--dry-run",)):
        error = replayed(flow, *options).json["error"]
        assert "--replace" in error["message"]
        ways = [shlex.split(choice) for choice in error["choices"]]
        assert [way[:3] for way in ways] == [["strandline", "replay", flow.feed.name]] * 2
        assert [flow.feed.cli(*way[1:], "--dry-run").code for way in ways] == [0, 0]
    assert len(flow.feed.entries) == 1


def test_a_dry_run_opens_no_source(tmp_path: Path, engine: SparkEngine) -> None:
    flow, source = loaded(tmp_path, engine)
    source.path.rename(source.path.with_name("away"))
    answer = replay(flow, "--dry-run", "--replace")
    assert {described["reason"] for described in answer.json[0]["slices"]} == {"replay"}
    assert len(flow.feed.entries) == 1


@pytest.mark.full
def test_a_history_gets_the_versions_that_it_lacks(tmp_path: Path, engine: SparkEngine) -> None:
    flow, source = on_lake(
        tmp_path, engine, target={"load": "scd2", "merge_keys": ["id"], "effective_column": "at"}
    )
    source.put(row(1, 0), row(3, 0))
    flow.run()
    source.add({"id": 1, "at": at(2), "value": 7})
    replay(flow)
    replay(flow)
    versions = flow.feed.rows("id", "value", "_is_current")
    assert versions == [(1, 0, False), (1, 7, True), (3, 0, True)]
    assert replayed(flow, "--replace").code == 2


def test_it_is_a_job_with_chunks_on_the_watermarks_page(tmp_path: Path, engine: SparkEngine) -> None:
    flow, _ = loaded(tmp_path, engine)
    form = {
        "dataflow": flow.feed.name,
        "start": "2026-01-01",
        "end": "2026-01-06",
        "every": "1 days",
        "replace": True,
    }
    assert run(flow.feed, "strandline_replay", form).success
    assert flow.feed.rows("id", "value") == [(1, 1), (3, 0), (4, 0), (9, 0), (20, 0)]


@pytest.mark.postgres
@pytest.mark.parametrize("load", ["append", "by range"])
def test_a_database_is_read_again_by_its_own_clock(
    tmp_path: Path, engine: SparkEngine, postgres: Postgres, load: str
) -> None:
    table = PostgresRows(postgres)
    target, options = LOADS[load]
    flow = on_postgres(tmp_path, engine, table, **definition(target))
    table.put((1, at(1), 0), (2, at(2), 0), (4, at(4), 0), (9, at(9), 0))
    flow.run()
    table.ask("UPDATE {s}.rows SET value = 1 WHERE id IN (1, 9)")
    table.ask("DELETE FROM {s}.rows WHERE id = 2")
    replay(flow, *options)
    assert flow.feed.rows("id", "value") == [(1, 1), (4, 0), (9, 0)]
