"""Commits of a table are read again (docs/reference/replay.md, Commits)."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from resources.outcome import Step
from resources.replay.in_place import replay_in_place
from resources.replay.options import ReplayOptions
from resources.spark.engine import SparkEngine
from tests.integration.test_dagster import run as run_job
from tests.integration.test_offsets import FORMATS, Copy, keyed
from tests.support.commits import OF_CHANGES, UPSTREAMS, copying, rows_of
from tests.support.decision_crash import crash_deciding
from tests.support.feed import NOW, Answer, Feed
from tests.support.iceberg import foreign_table
from tests.support.steps import Killed, killed_at

pytestmark = pytest.mark.usefixtures("engine")

KEEPING: dict[str, Any] = {"source": {"on_change": "keep"}, "target": {"merge_keys": ["id"]}}
ASIDE = ("--into", "aside/again")


@pytest.fixture
def make(tmp_path: Path, engine: SparkEngine) -> Any:
    def made(kind: str = "delta", **keys: Any) -> Copy:
        feed = Feed(tmp_path / "project", engine, copying(**keys))
        return Copy(feed, UPSTREAMS[kind](feed.folder / "lake", engine))

    return made


def number(kind: str, commit: int) -> str:
    """Return the number of a commit, counted from 0: those of Iceberg snapshots begin with 1."""
    return str(commit + (kind == "iceberg"))


def replay(feed: Feed, start: str, end: str, *options: str) -> Answer:
    return feed.cli("replay", "flow", "--start", start, "--end", end, *options)


def damage(feed: Feed, where: str | None = None) -> None:
    """Change rows of the target, as another writer would."""
    DeltaTable(str(feed.table)).update(updates={"v": "'damaged'"}, predicate=where)


@FORMATS
def test_keys_that_commits_of_the_range_have_changed_get_their_newest_row(make: Any, kind: str) -> None:
    feed, upstream = make(kind, source={"from": "earliest"}, **keyed())
    upstream.append((1, "a"), (2, "b"), (4, "d"))
    upstream.append((3, "c"))
    upstream.update(1, "x")
    upstream.delete(4)
    feed.load()
    upstream.append((5, "unread"))
    damage(feed)
    before = feed.watermark
    answer = replay(feed, number(kind, 0), number(kind, 1))
    assert [chunk["status"] for chunk in answer.json[0]["chunks"]] == ["committed"]
    assert rows_of(feed) == [(1, "x"), (2, "b"), (3, "damaged")]
    assert feed.watermark == before
    entry = feed.newest
    assert entry is not None
    assert entry.why == "replay"
    feed.load()
    assert rows_of(feed) == [(1, "x"), (2, "b"), (3, "damaged"), (5, "unread")]


def test_commits_are_chosen_by_their_time_and_unread_ones_wait_for_the_next_run(make: Any) -> None:
    feed, upstream = make(source={"from": "earliest"}, **keyed())
    for version, day in enumerate(["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]):
        upstream.append((version, day))
        upstream.date_commit(version, f"{day}T12:00:00+00:00")
        if version == 2:
            feed.load()
    damage(feed)
    planned = replay(feed, "2026-01-02", "2026-01-09", "--dry-run").json[0]
    assert [slice_["commits"] for slice_ in planned["slices"]] == [[1, 2]]
    assert planned["skips"] == [
        {"what": "1 commit", "why": "lies behind the position; the next run reads it"}
    ]
    assert rows_of(feed) == [(number, "damaged") for number in range(3)]
    assert replay(feed, "2026-01-02", "2026-01-09").code == 0
    assert rows_of(feed) == [(0, "damaged"), (1, "2026-01-02"), (2, "2026-01-03")]


def test_chunks_follow_the_checkpoint_and_later_commits_win_in_each_of_them(make: Any) -> None:
    feed, upstream = make(source={"from": "earliest"}, watermark={"checkpoint": {"commits": 1}}, **keyed())
    for value in ("a", "b", "c"):
        upstream.merge((1, value), (2, value)) if value != "a" else upstream.append((1, value), (2, value))
    upstream.delete(2)
    feed.load()
    damage(feed)
    answer = replay(feed, "0", "3")
    chunks = answer.json[0]["chunks"]
    assert [(chunk["lower"], chunk["upper"]) for chunk in chunks] == [(0, 1), (1, 2), (2, 3)]
    assert rows_of(feed) == [(1, "c")]


@FORMATS
def test_kept_changes_of_the_range_are_replaced_by_what_the_log_says(make: Any, kind: str) -> None:
    feed, upstream = make(kind, **KEEPING)
    upstream.append((1, "a"), (2, "b"))
    feed.load()
    upstream.update(1, "x")
    upstream.delete(2)
    upstream.append((3, "c"))
    feed.load()
    expected = feed.rows(*OF_CHANGES)
    damage(feed)
    refused = replay(feed, number(kind, 1), number(kind, 3))
    assert refused.code == 2
    assert [shlex.split(choice)[-1] for choice in refused.json["error"]["choices"]] == [
        "--replace",
        "silver/copy_replay",
    ]
    assert replay(feed, number(kind, 1), number(kind, 3), "--replace").code == 0
    replayed = [row for row in expected if number(kind, 1) <= str(row[3]) < number(kind, 3)]
    assert len(replayed) == 3
    rows = feed.rows(*OF_CHANGES)
    assert sorted(row for row in rows if row[1] != "damaged") == sorted(replayed)
    assert len(rows) == len(expected)


def test_the_rows_of_a_first_read_are_never_taken_for_those_of_its_commit(make: Any) -> None:
    feed, upstream = make(**KEEPING)
    upstream.append((1, "a"))
    upstream.append((2, "b"))
    feed.load()
    upstream.append((3, "c"))
    feed.load()
    expected = feed.rows(*OF_CHANGES)
    answer = replay(feed, "1", "3", "--replace")
    assert answer.code == 2
    assert "expected a start behind the first read, found version 1" in answer.json["error"]["message"]
    assert replay(feed, "2", "3", "--replace").code == 0
    assert feed.rows(*OF_CHANGES) == expected


@pytest.mark.remedy("configuration", "replay")
def test_changes_of_a_table_that_was_there_before_stay(make: Any) -> None:
    feed, upstream = make(**KEEPING)
    upstream.append((1, "a"))
    feed.load()
    for id_ in (2, 3, 4):
        upstream.append((id_, "old"))
    feed.load()
    shutil.rmtree(upstream.folder)
    upstream.append((7, "new"))
    feed.fail()
    feed.decide("accept")
    upstream.append((8, "new"))
    feed.load()
    expected = feed.rows(*OF_CHANGES)
    assert replay(feed, "0", "2", "--replace").code == 2
    refused = replay(feed, "1", "2", "--replace")
    assert refused.code == 2
    assert "set back or replaced" in refused.error["message"]
    assert feed.rows(*OF_CHANGES) == expected
    into, _ = refused.error["choices"]
    assert feed.cli(*into.split()[1:]).code == 0


@pytest.mark.remedy("configuration", "state reset --replace")
@pytest.mark.remedy("configuration", "replay")
@pytest.mark.parametrize("load", ["append", "merge_overwrite"])
def test_rows_that_do_not_tell_their_commit_are_refused_in_place_and_both_ways_out_work(
    make: Any, load: str
) -> None:
    target = {"load": load} | ({"merge_keys": ["id"]} if load != "append" else {})
    feed, upstream = make(target=target)
    upstream.append((1, "a"))
    upstream.append((2, "b"))
    feed.load()
    damage(feed)
    answer = replay(feed, "1", "2", "--replace") if load == "append" else replay(feed, "1", "2")
    assert answer.code == 2
    anew, aside = answer.json["error"]["choices"]
    assert feed.command(*shlex.split(aside)[1:]).json[0]["table"] == "silver/copy_replay"
    assert [
        row["id"]
        for row in DeltaTable(str(feed.folder / "lake/silver/copy_replay")).to_pyarrow_table().to_pylist()
    ] == [2]
    feed.command(*shlex.split(anew)[1:], "--yes")
    feed.load()
    assert rows_of(feed) == [(1, "a"), (2, "b")]


@pytest.mark.remedy("nothing_to_promote", "replay")
def test_rows_aside_of_a_keyed_load_are_looked_at_and_dropped_and_then_replayed_in_place(make: Any) -> None:
    feed, upstream = make(source={"from": "earliest"}, **keyed())
    upstream.append((1, "a"), (2, "b"))
    upstream.update(1, "x")
    feed.load()
    damage(feed)
    text = feed.text("replay", "flow", "--start", "0", "--end", "1", *ASIDE)
    assert "strandline drop" in text
    assert "strandline promote" not in text
    rows = DeltaTable(str(feed.folder / "lake/aside/again")).to_pyarrow_table().to_pylist()
    assert sorted((row["id"], row["v"]) for row in rows) == [(1, "a"), (2, "b")]
    answer = feed.cli("promote", "flow", "aside/again", "--reason", "x", "--yes")
    assert (answer.code, answer.json["error"]["code"]) == (4, "nothing_to_promote")
    in_place, drop = answer.json["error"]["choices"]
    feed.command(*shlex.split(in_place)[1:])
    feed.command(*shlex.split(drop)[1:], "--yes")
    assert rows_of(feed) == [(1, "x"), (2, "b")]


@FORMATS
def test_kept_changes_are_replayed_aside_and_promoted_without_those_that_no_run_has_read(
    make: Any, kind: str
) -> None:
    feed, upstream = make(kind, watermark={"checkpoint": {"commits": 1}}, **KEEPING)
    upstream.append((1, "a"), (2, "b"))
    feed.load()
    upstream.update(1, "x")
    upstream.delete(2)
    feed.load()
    expected = feed.rows(*OF_CHANGES)
    upstream.append((9, "unread"))
    damage(feed, "_change_type != 'insert'")
    start, end = number(kind, 1), number(kind, 9)
    chunks = feed.command("replay", "flow", "--start", start, "--end", end, *ASIDE).json[0]["chunks"]
    assert [chunk["status"] for chunk in chunks] == ["committed"] * 3
    text = feed.text("promote", "flow", "aside/again", "--reason", "x", "--yes")
    assert "rows of 1 commit wait for the next run, which reads them" in text
    assert feed.rows(*OF_CHANGES) == expected
    feed.load()
    new = [row[:3] for row in feed.rows(*OF_CHANGES) if row not in expected]
    assert new == [(9, "unread", "insert")]
    assert not (feed.folder / "lake/aside/again").exists()


@FORMATS
def test_a_table_that_was_set_back_is_replayed_when_a_run_has_followed_it(make: Any, kind: str) -> None:
    feed, upstream = make(kind, source={"from": "earliest"}, **keyed())
    upstream.append((1, "a"))
    upstream.append((2, "b"))
    feed.load()
    upstream.restore(1)
    feed.load()
    damage(feed)
    assert replay(feed, number(kind, 0), number(kind, 3)).code == 0
    assert rows_of(feed) == upstream.rows() == [(1, "a")]


def test_change_rows_with_numbers_of_their_own_are_never_replaced_nor_numbered_again(
    make: Any, engine: SparkEngine
) -> None:
    feed, upstream = make("iceberg", **KEEPING)
    for row in ((1, "a"), (2, "b"), (3, "c")):
        upstream.append(row)
        feed.load()
    upstream.restore(1)  # it takes number 4, and the next commit number 5
    upstream.append((4, "d"))
    feed.load()
    spark = engine.session()
    name = foreign_table(spark, upstream.folder)
    spark.sql(f"ALTER TABLE {name} CREATE BRANCH work").collect()
    for id_ in (8, 9):  # they take two numbers of the table's
        spark.sql(f"INSERT INTO {name}.branch_work VALUES ({id_}, 'w')").collect()
    upstream.append((5, "e"))
    feed.load()
    numbers = feed.rows("id", "_commit_version")
    assert numbers == [(1, 1), (2, 2), (3, 3), (3, 4), (4, 5), (5, 7)]
    refused = replay(feed, "4", "9", "--replace")
    assert (refused.code, "numbers of their own" in refused.error["message"]) == (2, True)
    feed.decide("set", "7")
    upstream.append((6, "f"))
    feed.load()
    assert feed.rows("id", "_commit_version") == [*numbers, (6, 8)]
    assert replay(feed, "4", "9", "--replace").code == 2


def test_versions_that_the_history_lacks_are_added_and_no_version_is_set_back(make: Any) -> None:
    sql = "SELECT *, timestamp '2026-01-01' + make_interval(0, 0, 0, 0, 0, id) AS at FROM input"
    feed, upstream = make(source={"from": "earliest"}, sql=sql, **keyed("scd2", effective_column="at"))
    upstream.append((1, "a"), (2, "b"))
    upstream.append((3, "c"))
    feed.load()
    upstream.update(1, "corrected")  # with the same effective time
    upstream.delete(2)
    feed.load()
    columns = ("id", "v", "_valid_from", "_valid_to", "_is_current", "_is_deleted")
    expected = feed.rows(*columns)
    assert replay(feed, "0", "4").code == 0
    assert feed.rows(*columns) == expected
    DeltaTable(str(feed.table)).delete("id = 1")
    assert replay(feed, "0", "1").code == 4
    assert replay(feed, "0", "1", "--deleted", "load").code == 0
    assert feed.rows(*columns) == expected


@pytest.mark.parametrize("step", [Step.LIST_KEPT, Step.INTENT_PUT, Step.WRITTEN])
@FORMATS
def test_a_replay_that_died_goes_on_with_the_same_command_and_live_runs_go_on(
    make: Any, kind: str, step: Step
) -> None:
    feed, upstream = make(
        kind, source={"from": "earliest"}, watermark={"checkpoint": {"commits": 1}}, **keyed()
    )
    upstream.append((1, "a"))
    upstream.append((2, "b"))
    upstream.update(1, "x")
    feed.load()
    damage(feed)
    options = ReplayOptions(number(kind, 0), number(kind, 2))
    with pytest.raises(Killed):
        replay_in_place(feed.platform, feed.dataflow, options, NOW, observer=killed_at(step, 2))
    upstream.append((3, "live"))
    feed.load()
    assert (3, "live") in rows_of(feed)
    result = replay_in_place(feed.platform, feed.dataflow, options, NOW)
    assert result.outcome.error is None
    assert {report["status"] for report in result.reports} <= {"committed", "skipped"}
    assert rows_of(feed) == upstream.rows()
    whys = [entry.why for entry in feed.entries]
    assert whys.count("replay") == 2


@pytest.mark.parametrize("folder", ["replays", "chunks", "intents", "entries", "marks"])
@pytest.mark.full
def test_an_isolated_replay_that_was_killed_goes_on(make: Any, folder: str) -> None:
    feed, upstream = make(watermark={"checkpoint": {"commits": 1}}, **KEEPING)
    upstream.append((1, "a"))
    feed.load()
    upstream.update(1, "x")
    upstream.update(1, "y")
    feed.load()
    expected = feed.rows(*OF_CHANGES)
    words = ("replay", "flow", "--start", "1", "--end", "3", *ASIDE)
    crash_deciding(feed, folder, *words)
    feed.command(*words)
    damage(feed, "_commit_version > 0")
    feed.command("promote", "flow", "aside/again", "--reason", "x", "--yes")
    assert feed.rows(*OF_CHANGES) == expected


def test_a_live_replay_of_cleaned_commits_stops_before_it_reads(make: Any) -> None:
    feed, upstream = make(source={"from": "earliest"}, **keyed())
    upstream.append((1, "a"))
    upstream.append((2, "b"))
    upstream.append((3, "c"))
    feed.load()
    upstream.compact()
    upstream.vacuum()
    feed.load()
    answer = replay(feed, "1", "2")
    assert (answer.code, answer.json["error"]["code"]) == (4, "versions_gone")
    upstream.clean()
    answer = replay(feed, "1", "2")
    assert answer.code == 2
    assert "expected a start behind version" in answer.json["error"]["message"]


@pytest.mark.remedy("source_replaced", "run")
def test_a_table_that_was_replaced_is_left_to_a_run_first(make: Any) -> None:
    feed, upstream = make(source={"from": "earliest"}, **keyed())
    upstream.append((1, "a"))
    feed.load()
    shutil.rmtree(upstream.folder)
    upstream.append((7, "other"))
    answer = replay(feed, "0", "1")
    assert (answer.code, answer.json["error"]["code"]) == (4, "source_replaced")
    command = shlex.split(answer.json["error"]["choices"][0])[1:]
    assert feed.cli(*command).code == 4
    feed.decide("accept")
    feed.command(*command)
    assert rows_of(feed) == [(1, "a"), (7, "other")]


def test_a_rolled_back_table_is_replayed_along_its_present_history_into_a_table_alone(make: Any) -> None:
    feed, upstream = make(
        "iceberg", source={"from": "earliest", "on_change": "keep"}, target={"merge_keys": ["id"]}
    )
    upstream.append((1, "a"))
    upstream.append((2, "b"))
    upstream.append((3, "c"))
    feed.load()
    upstream.restore(1)
    answer = replay(feed, "2", "3", "--replace")
    assert (answer.code, answer.json["error"]["code"]) == (4, "source_replaced")
    feed.load()
    upstream.append((4, "d"))
    feed.load()
    expected = feed.rows(*OF_CHANGES)
    refused = replay(feed, "2", "9", "--replace")
    assert refused.code == 2
    assert "set back or replaced" in refused.error["message"]
    into, _ = refused.error["choices"]
    assert feed.cli(*into.split()[1:]).code == 0
    assert feed.rows(*OF_CHANGES) == expected


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--every", "1 day"), "expected no --every"),
        (("--column", "id"), "expected no --column"),
        (("--save-watermark",), "expected no --save-watermark"),
        (("--gone", "keep"), "expected no --gone"),
        (("--replace",), "expected no --replace with load: merge_upsert"),
    ],
)
def test_options_of_other_kinds_are_refused(make: Any, options: tuple[str, ...], text: str) -> None:
    feed, upstream = make(**keyed())
    upstream.append((1, "a"))
    feed.load()
    answer = replay(feed, "0", "1", *options)
    assert answer.code == 2
    assert text in answer.json["error"]["message"]


@pytest.mark.full
def test_the_job_of_dagster_replays_commits(make: Any) -> None:
    feed, upstream = make(source={"from": "earliest"}, **keyed())
    upstream.append((1, "a"))
    upstream.update(1, "x")
    feed.load()
    damage(feed)
    form = {"dataflow": "flow", "start": "0", "end": "1"}
    assert run_job(feed, "strandline_replay", form).success
    assert rows_of(feed) == [(1, "x")]
