"""Each command that a refused command names leads on: it is run, and does what the message says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.spark.engine import SparkEngine
from tests.integration.conftest import MakeFeed, loaded_one_by_one
from tests.support.feed import NAME, Feed
from tests.support.followed import follow

pytestmark = pytest.mark.without_jvm

DECIDED = ("--reason", "x", "--yes")


@pytest.fixture
def feed(tmp_path: Path, engine: SparkEngine) -> Feed:
    """A dataflow that has loaded the rows 1 to 3, each from its own file."""
    return loaded_one_by_one(tmp_path / "project", engine, 3)


def refused(feed: Feed, *words: str, code: str = "configuration") -> dict[str, Any]:
    """The error of a command that is refused."""
    answer = feed.cli(*words)
    error: dict[str, Any] = answer.error
    assert (answer.code != 0, error["code"]) == (True, code)
    return error


@pytest.mark.remedy("configuration", "files unprocess", "state reset --replace")
def test_a_set_that_cannot_be_rewound_is_unprocessed_or_reset(make_feed: MakeFeed) -> None:
    feed = make_feed(watermark={"tracking": "set"})
    for number in (1, 2):
        feed.put(f"{number}.ndjson", number)
    feed.load()
    error = refused(feed, "state", "rewind", NAME, "--to", "0", *DECIDED)
    follow(feed, error["choices"], [1, 2], instead={"files unprocess": [1, 1, 2]}, **{"PATH…": "1.ndjson"})


@pytest.mark.remedy("configuration", "state rewind")
def test_a_watermark_whose_files_cannot_be_unprocessed_is_rewound(feed: Feed) -> None:
    error = refused(feed, "files", "unprocess", NAME, "3.ndjson", "--reason", "x")
    follow(feed, error["choices"], [1, 2, 3, 3], NUMBER="2")


@pytest.mark.remedy("configuration", "replay")
def test_a_replay_that_would_double_rows_names_those_that_do_not(make_feed: MakeFeed) -> None:
    feed = make_feed()
    for day in (1, 2):
        feed.put(f"2026-01-0{day}/{day}.ndjson", day)
    feed.load()
    error = refused(feed, "replay", NAME, "--start", "2026-01-01", "--end", "2026-01-03")
    in_place, isolated = error["choices"]
    assert "--into" in isolated
    follow(feed, [in_place, isolated], [1, 2])


@pytest.mark.remedy("configuration", "run")
def test_a_decision_before_the_first_run_names_the_run(make_feed: MakeFeed) -> None:
    feed = make_feed()
    feed.put("1.ndjson", 1)
    error = refused(feed, "state", "accept", NAME, *DECIDED)
    assert f"`strandline run {NAME}`" in error["message"]
    feed.command("run", NAME)
    feed.decide("accept")
    assert feed.ids == [1]


@pytest.mark.remedy("configuration", "state export")
def test_a_file_that_is_no_export_names_the_command_that_makes_one(feed: Feed, tmp_path: Path) -> None:
    file = tmp_path / "export.jsonl"
    file.write_text('{"a": 1}\n')
    error = refused(feed, "state", "import", NAME, str(file), *DECIDED)
    assert "`strandline state export`" in error["message"]
    file.write_text(feed.command("state", "export", NAME).out)
    feed.decide("import", str(file))
    assert (feed.ids, feed.load().status) == ([1, 2, 3], "nothing")


@pytest.mark.remedy("configuration", "state history")
def test_a_number_of_no_entry_names_the_history(feed: Feed) -> None:
    error = refused(feed, "state", "rewind", NAME, "--to", "77", *DECIDED)
    (history,) = error["choices"]
    assert [entry["number"] for entry in feed.command(*history.split()[1:]).json] == [3, 2, 1]


@pytest.mark.remedy("not_quarantined", "list")
def test_a_file_that_is_not_in_quarantine_names_the_list(feed: Feed) -> None:
    error = refused(feed, "files", "release", NAME, "3.ndjson", "--reason", "x", code="not_quarantined")
    (shown,) = error["choices"]
    assert feed.command(*shown.split()[1:]).json[0]["quarantined"]["files"] == []


@pytest.mark.remedy("unknown_dataflow", "list")
def test_an_unknown_name_names_the_list_of_dataflows(feed: Feed) -> None:
    error = refused(feed, "run", "orders", code="unknown_dataflow")
    (shown,) = error["choices"]
    assert [flow["dataflow"] for flow in feed.command(*shown.split()[1:]).json] == [NAME]


@pytest.mark.remedy("no_delete", "state history")
def test_a_delete_that_is_not_in_force_names_the_history(feed: Feed) -> None:
    error = refused(feed, "delete", NAME, "--forget", "2", *DECIDED, code="no_delete")
    (history,) = error["choices"]
    assert [entry["why"] for entry in feed.command(*history.split()[1:]).json] == ["run"] * 3


@pytest.mark.remedy("nothing_to_delete", "run")
def test_a_delete_before_there_is_a_table_names_the_run(make_feed: MakeFeed) -> None:
    feed = make_feed()
    feed.decide("set", '{"path": "0.ndjson"}')
    feed.put("1.ndjson", 1)
    error = refused(feed, "delete", NAME, "--where", "id = 1", *DECIDED, code="nothing_to_delete")
    follow(feed, error["choices"], [1])


@pytest.mark.remedy("configuration", "init")
def test_a_folder_that_is_no_project_names_the_command_that_makes_one(feed: Feed, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    empty = Feed.__new__(Feed)
    empty.__dict__ |= feed.__dict__ | {"folder": tmp_path / "empty"}
    error = empty.cli("list").json["error"]
    assert "`strandline init DIR`" in error["message"]
    empty.command("init", str(tmp_path / "empty" / "new"))
    assert (tmp_path / "empty" / "new" / "platform.yaml").exists()


@pytest.mark.remedy("project", "validate")
def test_errors_of_a_project_name_the_command_that_shows_them(feed: Feed) -> None:
    feed.define(source={"format": "no format"})
    answer = feed.cli("run", NAME)
    assert answer.code == 2
    assert "strandline validate" in answer.error["choices"]
    assert feed.cli("validate").code == 2
    feed.define(source={"format": "ndjson"})
    assert feed.command("validate").code == 0


@pytest.mark.remedy("predicate", "state reset --replace")
def test_a_delete_of_every_row_names_the_reset_that_loads_the_table_again(feed: Feed) -> None:
    error = refused(feed, "delete", NAME, "--where", "true", *DECIDED, code="predicate")
    assert f"strandline state reset {NAME} --replace --reason TEXT" in error["message"]
    follow(feed, [f"strandline state reset {NAME} --replace --reason TEXT"], [1, 2, 3])


@pytest.mark.needs_spark
@pytest.mark.full
@pytest.mark.remedy("predicate", "state rewind --replace")
def test_a_delete_by_run_names_the_rewind_that_takes_a_run_back(feed: Feed) -> None:
    error = refused(feed, "delete", NAME, "--where", "_run_id = 'x'", *DECIDED, code="predicate")
    assert f"strandline state rewind {NAME} --to NUMBER --replace" in error["message"]
    follow(
        feed, [f"strandline state rewind {NAME} --to NUMBER --replace --reason TEXT"], [1, 2, 3], NUMBER="1"
    )


@pytest.mark.remedy("configuration", "state accept")
def test_a_changed_root_is_accepted_by_the_command_that_a_rename_names(feed: Feed) -> None:
    feed.define(source={"extensions": [".ndjson", ".jsonl"]})
    error = refused(feed, "rename", NAME, "orders", "--move-table")
    follow(feed, error["choices"], [1, 2, 3])
    feed.command("rename", NAME, "orders", "--move-table")
