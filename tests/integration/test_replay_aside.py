"""A range is read again into a table aside, chunk by chunk; the same command goes on where one has stopped (docs/reference/replay.md, Isolated)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.outcome import Step
from resources.replay.isolated.replaying import replay_isolated
from resources.replay.isolated.standing import stored_replays
from resources.replay.options import ReplayOptions
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.integration.test_api import OFFSETS
from tests.integration.test_columns_of_files import BY_ID, on_files, put
from tests.integration.test_dagster import run
from tests.integration.test_python_source import make
from tests.integration.test_python_source import row as python_row
from tests.support.api import BY_TIME, SCHEMA, ApiFeed, api
from tests.support.asides import TABLE
from tests.support.columns import Columns, PostgresRows, at, on_lake, on_postgres
from tests.support.databases import rows_of
from tests.support.decision_crash import crash_deciding
from tests.support.feed import Answer
from tests.support.mariadb import MariaDB
from tests.support.window_feed import LakeTable, instant

UPSERT = {"load": "merge_upsert", "merge_keys": ["id"]}
DAYS = ("--start", "2026-01-01", "--end", "2026-01-06", "--every", "1 day")


def row(number: int, value: int) -> dict[str, Any]:
    return {"id": number, "at": at(number), "value": value}


def words(flow: Columns, *more: str, days: tuple[str, ...] = DAYS, into: str = TABLE) -> tuple[str, ...]:
    return ("replay", flow.feed.name, *days, "--into", into, *more)


def replayed(flow: Columns, *more: str, **how: Any) -> Answer:
    return flow.feed.cli(*words(flow, *more, **how))


def replay(flow: Columns, *more: str, **how: Any) -> Answer:
    return flow.feed.command(*words(flow, *more, **how))


def statuses(answer: Answer) -> list[tuple[str, int]]:
    return [(chunk["status"], chunk["rows"]) for chunk in answer.json[0]["chunks"]]


def aside_ids(flow: Columns) -> list[int]:
    table = flow.feed.folder / "lake" / TABLE
    platform = flow.feed.platform
    (aside,) = stored_replays(platform.log, flow.feed.name)
    found = platform.table(aside.loading_dataflow(flow.feed.dataflow))
    assert table.exists()
    return sorted(row["id"] for row in found.contents.distinct_rows(["id"])) * (
        found.contents.count_rows() == len(list(found.contents.distinct_rows(["id"])))
    )


def ended(flow: Columns, command: str) -> int:
    return flow.feed.cli(command, flow.feed.name, TABLE, "--reason", "r", "--yes").code


def loaded(
    folder: Path, engine: SparkEngine, form: str = "delta", **target: Any
) -> tuple[Columns, LakeTable]:
    """Rows of days 1, 2, 4 and 9 are loaded; then those of days 1 and 4 are corrected."""
    flow, source = on_lake(folder, engine, target={"format": form, **target})
    source.put(*(row(number, 0) for number in (1, 2, 4, 9)))
    flow.run()
    source.put(row(1, 1), row(4, 1))
    return flow, source


@pytest.mark.parametrize("form", ["delta", "parquet", pytest.param("iceberg", marks=pytest.mark.full)])
def test_a_range_is_read_in_chunks_and_promoted(tmp_path: Path, engine: SparkEngine, form: str) -> None:
    flow, source = loaded(tmp_path, engine, form)
    answer = replay(flow)
    assert statuses(answer) == [
        ("committed", 1),
        ("committed", 1),
        ("nothing", 0),
        ("committed", 1),
        ("nothing", 0),
    ]
    assert answer.json[0]["chunks"][0] | {"rows": 1} == {
        "lower": {"__datetime__": "2026-01-01T00:00:00+00:00"},
        "upper": {"__datetime__": "2026-01-02T00:00:00+00:00"},
        "status": "committed",
        "rows": 1,
        "error": None,
    }
    assert (aside_ids(flow), flow.feed.rows("id", "value")) == ([1, 2, 4], [(1, 0), (2, 0), (4, 0), (9, 0)])
    assert [entry.why for entry in flow.feed.entries] == ["run"]  # the live log gets none
    source.put(row(10, 0))
    flow.run()  # nor is a live run held
    again = replayed(flow)
    assert (again.code, again.json[0]["status"], statuses(again)) == (0, "nothing", [("skipped", 0)] * 5)
    (shown,) = flow.feed.cli("list").json[0]["replays"]
    assert (shown["chunks"], shown["done"], shown["complete"]) == (5, 5, True)
    assert ended(flow, "promote") == 0
    assert flow.feed.rows("id", "value") == [(1, 1), (2, 0), (4, 1), (9, 0), (10, 0)]
    assert flow.run().status == "nothing"


@pytest.mark.parametrize("load", [{}, pytest.param(UPSERT, marks=pytest.mark.full)])
@pytest.mark.parametrize(
    ("folder", "done"),
    [("entries", 1), *(pytest.param(folder, 0, marks=pytest.mark.full) for folder in ("replays", "files", "intents"))],
)  # fmt: skip
def test_a_replay_that_was_killed_goes_on_with_the_same_command(
    tmp_path: Path, engine: SparkEngine, folder: str, done: int, load: dict[str, Any]
) -> None:
    flow, _ = loaded(tmp_path, engine, **load)
    crash_deciding(flow.feed, folder, *words(flow))
    (shown,) = flow.feed.cli("list").json[0]["replays"]
    assert (shown["done"], shown["complete"]) == (done, False)
    refused = flow.feed.cli("promote", flow.feed.name, TABLE, "--reason", "r", "--yes")
    assert (refused.code, refused.json["error"]["code"]) == (4, "replay_unfinished")
    answer = replay(flow)
    assert [status for status, _ in statuses(answer)][:done] == ["skipped"] * done
    assert aside_ids(flow) == [1, 2, 4]
    assert ended(flow, "promote") == 0
    assert flow.feed.rows("id", "value") == [(1, 1), (2, 0), (4, 1), (9, 0)]


def test_a_failed_chunk_stops_and_the_command_goes_on(tmp_path: Path, engine: SparkEngine) -> None:
    flow, source = on_lake(tmp_path, engine)
    for number in (1, 3, 5):
        source.add(row(number, 0))
    with source.without(3):
        answer = replayed(flow)
        assert answer.code == 1, answer.out
        told = [status for status, _ in statuses(answer)]
        assert told == ["committed", "nothing", "failed", "pending", "pending"]
        error = answer.json[0]["chunks"][2]["error"]
        assert error.startswith("chunk 2026-01-03")
        assert answer.json[0]["error"]["message"] == error
        assert "~" not in error.partition("file")[0]
    replay(flow)
    assert aside_ids(flow) == [1, 3, 5]
    assert ended(flow, "drop") == 0


def test_a_dry_run_shows_the_chunks_and_opens_no_source(tmp_path: Path, engine: SparkEngine) -> None:
    flow, source = loaded(tmp_path, engine)
    source.path.rename(source.path.with_name("away"))
    answer = replayed(flow, "--dry-run")
    (document,) = answer.json
    assert (answer.code, len(document["slices"]), document["skips"]) == (0, 5, [])
    assert {described["reason"] for described in document["slices"]} == {"replay"}
    assert flow.feed.cli("list").json[0]["replays"] == []


UNREPLAYABLE = [
    (("--start", "2026-01-06", "--end", "2026-01-06"), TABLE, "start below the end"),
    (("--start", "x", "--end", "2026-01-06"), TABLE, "found 'x'"),
    ((*DAYS[:4], "--every", "1 fortnight"), TABLE, "'fortnight'"),
    ((*DAYS[:4], "--every", "0 days"), TABLE, "above 0"),
    ((*DAYS[:4], "--every", "1.5 days"), TABLE, "1.5 days"),
    ((*DAYS[:4], "--every", "1 step"), TABLE, "step"),
    (("--start", "1", "--end", "9"), TABLE, "timestamp with zone"),
    (("--start", "2026-01-01T00:00:00Z", "--end", "2026-01-02"), TABLE, "zone"),
    ((*DAYS, "--column", "value"), TABLE, "watermark column (at)"),
    (DAYS, "bronze/flow", "no dataflow loads or reads"),
    (DAYS, "raw/rows", "no dataflow loads or reads"),
    (DAYS, "../elsewhere", "in the lake"),
    (DAYS, "raw/others", "found another"),
    (DAYS, "raw/files", "another table or files"),
    (DAYS, "raw/beside", "nothing at raw/beside_bad_records"),
]


def test_what_cannot_be_replayed_is_refused_and_nothing_is_changed(
    tmp_path: Path, engine: SparkEngine
) -> None:
    """The same is asked of a replay in place, by the same code."""
    flow, _ = loaded(tmp_path, engine)
    raw = flow.feed.folder / "lake" / "raw"
    LakeTable(raw / "others").put()
    LakeTable(raw / "beside_bad_records").put()
    (raw / "files").mkdir()
    (raw / "files" / "theirs.csv").write_text("id\n")
    for days, into, said in UNREPLAYABLE:
        answer = replayed(flow, days=days, into=into)
        assert (answer.code, said in answer.json["error"]["message"]) == (2, True), answer.out
    assert flow.feed.cli("list").json[0]["replays"] == []


def test_a_table_that_holds_another_replay_is_refused(tmp_path: Path, engine: SparkEngine) -> None:
    flow, _ = loaded(tmp_path, engine)
    replay(flow)
    answer = replayed(flow, days=(*DAYS[:2], "--end", "2026-01-05"))
    assert (answer.code, "another replay" in answer.json["error"]["message"]) == (2, True)


def test_the_three_are_jobs(tmp_path: Path, engine: SparkEngine) -> None:
    flow, _ = loaded(tmp_path, engine)
    form = {
        "dataflow": flow.feed.name,
        "start": "2026-01-01",
        "end": "2026-01-06",
        "every": "1 days",
        "into": TABLE,
    }
    assert run(flow.feed, "strandline_replay", form).success
    assert aside_ids(flow) == [1, 2, 4]
    end = {"dataflow": flow.feed.name, "table": TABLE, "reason": "because", "confirm": True}
    assert run(flow.feed, "strandline_promote", end).success
    assert flow.feed.rows("id", "value") == [(1, 1), (2, 0), (4, 1), (9, 0)]


@pytest.mark.full
@pytest.mark.postgres
@pytest.mark.parametrize("every", ["3 days", "12 hours"])
def test_a_database_is_read_again_by_its_own_clock(
    tmp_path: Path, engine: SparkEngine, postgres: Postgres, every: str
) -> None:
    table = PostgresRows(postgres)
    flow = on_postgres(tmp_path, engine, table, target=UPSERT)
    table.put((1, at(1), 0), (2, at(2), 0), (4, at(4), 0), (9, at(9), 0))
    flow.run()
    table.ask("UPDATE {s}.rows SET value = 1 WHERE id IN (1, 9)")
    table.ask("DELETE FROM {s}.rows WHERE id = 2")
    answer = replay(flow, days=(*DAYS[:4], "--every", every))
    assert sum(rows for _, rows in statuses(answer)) == 2
    assert ended(flow, "promote") == 0
    assert flow.feed.rows("id", "value") == [(1, 1), (4, 0), (9, 0)]


def test_files_are_read_again_by_steps_of_a_number(tmp_path: Path, engine: SparkEngine) -> None:
    flow = on_files(tmp_path, engine, watermark=BY_ID)
    put(flow, "a.ndjson", *((number, at(1), 0) for number in (1, 4, 7, 12)))
    flow.run()
    put(flow, "a.ndjson", *((number, at(1), 1) for number in (1, 4, 7, 12)))
    answer = replay(flow, days=("--start", "2", "--end", "12", "--every", "5 step"))
    assert [(chunk["lower"], chunk["upper"], chunk["rows"]) for chunk in answer.json[0]["chunks"]] == [
        (2, 5, 1),
        (5, 10, 1),
        (10, 12, 0),
    ]
    assert ended(flow, "promote") == 0
    assert flow.feed.rows("id", "value") == [(1, 0), (4, 1), (7, 1), (12, 0)]


@pytest.mark.full
def test_a_function_is_asked_for_each_chunk(tmp_path: Path, engine: SparkEngine) -> None:
    flow, code = make(tmp_path, engine, target=UPSERT)
    code.put(*(python_row(number, number) for number in (1, 2, 4, 9)))
    flow.run()
    (flow.feed.folder / "rows.jsonl").unlink()
    code.put(*({**python_row(number, number), "value": 50} for number in (1, 4, 9)))
    answer = replay(flow)
    assert sum(rows for _, rows in statuses(answer)) == 2
    assert ended(flow, "promote") == 0
    assert flow.feed.rows("id", "value") == [(1, 50), (4, 50), (9, 9)]


@pytest.mark.full
def test_an_api_is_asked_for_each_chunk(tmp_path: Path, engine: SparkEngine) -> None:
    source = BY_TIME | OFFSETS | {"schema": SCHEMA}
    with api() as server:
        flow = ApiFeed(tmp_path, engine, server, source, {"target": UPSERT}).flow()
        server.rows += [{"id": number, "at": at(number).isoformat()} for number in (1, 2, 4, 9)]
        flow.run()
        del server.rows[1]
        answer = replay(flow)
        assert sum(rows for _, rows in statuses(answer)) == 2
        assert ended(flow, "promote") == 0
        assert flow.ids == [1, 4, 9]


def test_mariadb_is_read_again(tmp_path: Path, engine: SparkEngine, mariadb: MariaDB) -> None:
    table = rows_of(mariadb)
    flow = table.flow(tmp_path, engine)
    table.fill(5)
    flow.run()
    ids = flow.ids
    answer = replay(flow, days=("--start", "2000-01-01", "--end", "2040-01-01", "--every", "20 years"))
    assert sum(rows for _, rows in statuses(answer)) == 5
    assert ended(flow, "promote") == 0
    assert flow.ids == ids


def test_live_runs_go_on_beside_a_replay_and_others_give_way(tmp_path: Path, engine: SparkEngine) -> None:
    flow, source = loaded(tmp_path, engine)
    heard: dict[str, int] = {}

    def hears(step: Step, line: str) -> None:
        if step is Step.INTENT_PUT and not heard:
            heard["live"] = 0
            source.put(row(10, 0))
            assert flow.run().status == "committed"
            heard["replay"] = replayed(flow).code
            heard["drop"] = ended(flow, "drop")
            heard["promote"] = ended(flow, "promote")

    asked = ReplayOptions("2026-01-01", "2026-01-06", TABLE, "1 day")
    done = replay_isolated(
        flow.feed.platform, flow.feed.dataflow, asked, instant("2026-06-01"), observer=hears
    )
    assert (done.outcome.error, heard) == (None, {"live": 0, "replay": 3, "drop": 3, "promote": 4})
    assert aside_ids(flow) == [1, 2, 4]
    assert ended(flow, "promote") == 0
    assert flow.feed.rows("id", "value") == [(1, 1), (2, 0), (4, 1), (9, 0), (10, 0)]


def test_a_promote_gives_way_to_a_live_run(tmp_path: Path, engine: SparkEngine) -> None:
    flow, source = loaded(tmp_path, engine)
    replay(flow)
    codes: list[int] = []

    def hears(step: Step, line: str) -> None:
        if step is Step.INTENT_PUT:
            codes.append(ended(flow, "promote"))

    source.put(row(10, 0))
    flow.run(observer=hears)
    assert codes == [3]
    assert ended(flow, "promote") == 0
    assert flow.feed.rows("id", "value") == [(1, 1), (2, 0), (4, 1), (9, 0), (10, 0)]


@pytest.mark.parametrize(("load", "code"), [({}, 4), (UPSERT, 0)])
@pytest.mark.full
def test_before_the_first_run_only_rows_that_are_found_again_by_keys_are_promoted(
    tmp_path: Path, engine: SparkEngine, load: dict[str, Any], code: int
) -> None:
    flow, source = on_lake(tmp_path, engine, **({"target": load} if load else {}))
    source.put(*(row(number, 0) for number in (1, 2, 4, 9)))
    replay(flow)
    assert ended(flow, "promote") == code
    assert flow.ids == ([] if code else [1, 2, 4])
    flow.run()
    assert flow.ids == [1, 2, 4, 9]
    if code:  # the run has loaded all that stands aside
        assert (ended(flow, "promote"), ended(flow, "drop")) == (4, 0)
        assert flow.ids == [1, 2, 4, 9]
    assert flow.run().status == "nothing"
