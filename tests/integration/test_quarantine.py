"""on_bad_file: quarantine: a run passes over what cannot be read, says so, and reads it exactly once when it is released."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed

pytestmark = pytest.mark.without_jvm


@pytest.fixture
def feed(make_feed: MakeFeed) -> Feed:
    return make_feed(on_bad_file="quarantine")


@pytest.mark.needs_spark
def test_the_run_goes_on_past_bad_files_and_the_watermark_moves(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    feed.put_bytes("2.ndjson.gz", b"not gzip")
    feed.put("3.ndjson", 3)
    feed.put_text("4.ndjson", '{"id": "no number"}\n')
    feed.put("5.ndjson", 5)
    outcome = feed.load()
    assert (outcome.status, outcome.rows, outcome.files, outcome.quarantined) == ("committed", 3, 3, 2)
    assert (feed.ids, feed.path) == ([1, 3, 5], "5.ndjson")
    assert [(entry.why, entry.quarantined) for entry in feed.entries] == [("run", 2)]
    release = "2 files in quarantine. Repair them, then `strandline files release flow PATH…`: the next run loads them"
    assert release in outcome.warnings
    assert feed.cli("plan").json[0]["warnings"] == [release]
    assert feed.load().status == "nothing"
    (listed,) = feed.cli("list").json
    assert [held["path"] for held in listed["quarantined"]["files"]] == ["2.ndjson.gz", "4.ndjson"]
    assert "line 1" in listed["quarantined"]["files"][1]["reason"]


@pytest.mark.needs_spark
def test_a_slice_of_nothing_but_bad_files_moves_the_watermark_too(make_feed: MakeFeed) -> None:
    feed = make_feed(on_bad_file="quarantine", watermark={"checkpoint": {"interval_files": 1}})
    feed.put("1.ndjson", 1)
    feed.put_bytes("2.ndjson.gz", b"not gzip")
    assert feed.load().quarantined == 1
    assert (feed.ids, feed.path) == ([1], "2.ndjson.gz")


@pytest.mark.needs_spark
def test_folders_of_bad_files_name_columns_where_nothing_else_is_loaded_first(feed: Feed) -> None:
    feed.define(max_bad_files=1)
    feed.put_text("day=1/a.ndjson", '{"id": "no number"}\n')
    assert feed.load().quarantined == 1
    feed.put("day=1/a.ndjson", 1)
    feed.put("day=2/b.ndjson", 2)
    feed.command("files", "release", NAME, "day=1/a.ndjson")
    feed.load()
    assert feed.rows("id", "day") == [(1, "1"), (2, "2")]


@pytest.mark.needs_spark
def test_a_released_file_is_loaded_once_as_it_is_then(feed: Feed) -> None:
    feed.put_bytes("1.ndjson.gz", b"not gzip")
    feed.put("2.ndjson", 2)
    feed.load()
    feed.put("1.ndjson.gz", 1, 11)
    assert feed.load().status == "nothing", "nobody has released it"
    answer = feed.cli("files", "release", NAME, "1.ndjson.gz")
    assert (answer.code, answer.json["released"]) == (0, ["1.ndjson.gz"])
    outcome = feed.load()
    assert (outcome.rows, outcome.files, feed.path) == (2, 1, "2.ndjson")
    assert [entry.why for entry in feed.entries][-2:] == ["release", "release"]
    assert feed.ids == [1, 2, 11]
    assert feed.load().status == "nothing"
    assert feed.cli("list").json[0]["quarantined"]["count"] == 0


@pytest.mark.needs_spark
def test_a_released_file_that_is_still_bad_goes_back(feed: Feed) -> None:
    feed.put_bytes("1.ndjson.gz", b"not gzip")
    feed.put("2.ndjson", 2)
    feed.load()
    feed.cli("files", "release", NAME, "1.ndjson.gz")
    assert feed.load().quarantined == 1
    assert feed.load().status == "nothing"
    assert (feed.ids, feed.cli("list").json[0]["quarantined"]["count"]) == ([2], 1)


@pytest.mark.needs_spark
def test_releasing_what_is_not_in_quarantine_is_refused_with_the_nearest_path(feed: Feed) -> None:
    feed.put_bytes("1.ndjson.gz", b"not gzip")
    feed.put("2.ndjson", 2)
    feed.load()
    answer = feed.cli("files", "release", NAME, "1.ndjson")
    assert (answer.code, answer.error["code"]) == (2, "not_quarantined")
    assert "did you mean 1.ndjson.gz" in answer.error["message"]
    assert len(feed.entries) == 1


@pytest.mark.needs_spark
def test_a_quarantined_file_is_not_late(feed: Feed) -> None:
    feed.put_bytes("1.ndjson.gz", b"not gzip")
    feed.put("2.ndjson", 2)
    feed.load()
    assert feed.cli("late", NAME).json["late"] == []


@pytest.mark.needs_spark
def test_with_a_schema_to_infer_a_bad_file_does_not_stand_in_the_way(make_feed: MakeFeed) -> None:
    feed = make_feed(on_bad_file="quarantine", source={"schema": None})
    feed.put_bytes("1.ndjson.gz", b"not gzip")
    feed.put("2.ndjson", 2)
    assert feed.load().quarantined == 1
    assert feed.ids == [2]


@pytest.mark.needs_spark
def test_files_with_bad_records_cost_no_number(feed: Feed) -> None:
    for number in range(6):
        text = '{"id": "no number"}\n' if number % 2 else f'{{"id": {number}}}\n'
        feed.put_text(f"d=x y%/{number}.ndjson", text)
    assert feed.load().quarantined == 3
    assert feed.ids == [0, 2, 4]
    assert [entry.why for entry in feed.entries] == ["run"]
    reasons = [held["reason"] for held in feed.cli("list").json[0]["quarantined"]["files"]]
    assert set(reasons) == {"line 1: field id: expected bigint, found text, 'no number'"}


@pytest.mark.full
@pytest.mark.parametrize("decision", ["adopt", "import", "reset"])
@pytest.mark.needs_spark
def test_a_decision_leads_on_where_the_list_of_the_quarantine_is_gone(feed: Feed, decision: str) -> None:
    feed.put("1.ndjson", 1)
    feed.put_text("2.ndjson", "{bad\n")
    feed.load()
    export = feed.folder / "export.jsonl"
    export.write_text(feed.cli("state", "export", NAME).out)
    for file in (feed.state / "quarantine").glob("*"):
        file.unlink()
    error = feed.fail()
    assert [choice.split()[2] for choice in error.choices] == ["adopt", "reset"]
    words = {"adopt": ["adopt"], "import": ["import", str(export)], "reset": ["reset", "--replace"]}[decision]
    feed.decide(*words)
    if decision == "adopt":
        assert feed.load().status == "nothing"
        feed.put("2.ndjson", 2)
        assert feed.cli("files", "release", NAME, "2.ndjson").code == 0, (
            "what a run has passed over still waits"
        )
        feed.load()
        assert feed.ids == [1, 2]
    else:
        feed.load()
        assert feed.ids == [1]


@pytest.mark.full
@pytest.mark.parametrize("decision", ["adopt", "import"])
@pytest.mark.needs_spark
def test_a_released_and_loaded_file_leaves_the_quarantine(feed: Feed, tmp_path: Path, decision: str) -> None:
    feed.put("1.ndjson", 1)
    feed.put_text("2.ndjson", "{bad\n")
    feed.put_text("3.ndjson", "{bad\n")
    feed.load()
    shutil.copytree(feed.state, tmp_path / "backup")
    feed.put("2.ndjson", 2)
    feed.cli("files", "release", NAME, "2.ndjson")
    feed.load()
    export = feed.folder / "export.jsonl"
    export.write_text(feed.cli("state", "export", NAME).out)
    shutil.rmtree(feed.state)
    shutil.copytree(tmp_path / "backup", feed.state)
    told = feed.decide(*(["adopt"] if decision == "adopt" else ["import", str(export)])).err
    released = "1 file of the quarantine with rows in the table: no longer in quarantine"
    assert (released in told) == (decision == "adopt")  # the export knows it
    assert [one["path"] for one in feed.cli("list").json[0]["quarantined"]["files"]] == ["3.ndjson"]
    assert feed.cli("files", "release", NAME, "2.ndjson").code == 2
    assert (feed.load().status, feed.ids) == ("nothing", [1, 2])


def test_a_release_names_files_that_the_source_lacks(make_feed: MakeFeed) -> None:
    feed = make_feed(late_files="quarantine")
    feed.put("2.ndjson", 2)
    feed.load()
    feed.put("1.ndjson", 1)
    feed.cli("late", NAME)
    (feed.landing / "1.ndjson").unlink()
    answer = feed.command("files", "release", NAME, "1.ndjson")
    assert (
        "missing at the source, so no run loads them until they are there again: 1 file (1.ndjson)"
        in answer.err
    )
    assert feed.load().status == "nothing"
    feed.put("1.ndjson", 1)
    feed.load()
    assert feed.ids == [1, 2]
