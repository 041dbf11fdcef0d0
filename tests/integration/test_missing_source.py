"""A source that is missing or empty after loads: nobody is told to create it (docs/how-to/moving-and-restoring.md)."""

from __future__ import annotations

import shutil

import pytest

from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed

pytestmark = pytest.mark.without_jvm

COMMANDS = [("run", NAME), ("plan", NAME), ("late", NAME), ("ledger", NAME, "--compare"), ("list", NAME)]


@pytest.fixture
def loaded(feed: Feed) -> Feed:
    """Two files are loaded."""
    feed.put("1.ndjson", 1)
    feed.put("2.ndjson", 2)
    feed.load()
    return feed


@pytest.mark.parametrize("command", COMMANDS, ids=[command[0] for command in COMMANDS])
def test_a_missing_source_says_what_was_loaded_and_not_to_create_it(
    loaded: Feed, command: tuple[str, ...]
) -> None:
    loaded.landing.rename(loaded.folder / "elsewhere")
    answer = " ".join(loaded.text(*command).split())
    assert f"{loaded.landing}: expected a folder, found none." in answer
    assert "It was there when the last load read 2 files (" in answer
    assert "may have moved. Correct source.path in the dataflow's file, or restore the folder" in answer
    assert "Create it" not in answer


def test_doctor_does_not_say_to_create_a_source_that_was_loaded(loaded: Feed) -> None:
    loaded.landing.rename(loaded.folder / "elsewhere")
    answer = " ".join(loaded.text("doctor", "--no-spark").split())
    assert ("restore the folder" in answer, "Create it" in answer) == (True, False)


def test_accepting_a_path_that_does_not_exist_names_the_earlier_loads(loaded: Feed) -> None:
    loaded.define(source={"path": "./nowhere"})
    answer = loaded.cli("state", "accept", NAME, "--reason", "moved", "--yes")
    assert answer.error["code"] == "source_missing"
    assert "The last load read 2 files from another definition of the source (" in answer.error["message"]
    assert "Create it" not in answer.error["message"]


def test_a_missing_source_of_a_new_dataflow_may_be_created(feed: Feed) -> None:
    feed.landing.rmdir()
    assert feed.fail().message.endswith("expected a folder, found none. Create it, or correct the path")


@pytest.mark.parametrize("tracking", ["watermark", "set"])
def test_an_emptied_source_is_a_warning_of_plan_and_run(make_feed: MakeFeed, tracking: str) -> None:
    feed = make_feed(watermark={"tracking": tracking})
    assert feed.command("plan", NAME).json[0]["warnings"] == [], "nothing was loaded yet"
    feed.put("1.ndjson", 1)
    feed.put("2.ndjson", 2)
    feed.load()
    assert feed.load().warnings == []
    shutil.rmtree(feed.landing)
    feed.landing.mkdir()
    expected = (
        f"{feed.landing} holds no file, although the dataflow has loaded 2 files from it. If it has moved, correct source.path;"
        " `strandline ledger flow --compare` names them"
    )
    assert feed.command("plan", NAME).json[0]["warnings"] == [expected]
    outcome = feed.load()
    assert (outcome.status, outcome.warnings) == ("nothing", [expected])


def test_a_source_with_one_loaded_file_warns_of_nothing(loaded: Feed) -> None:
    (loaded.landing / "2.ndjson").unlink()
    assert loaded.load().warnings == []


def test_an_emptied_source_after_a_reset_is_no_news(loaded: Feed) -> None:
    shutil.rmtree(loaded.landing)
    loaded.landing.mkdir()
    loaded.decide("reset", "--replace")
    assert loaded.load().warnings == []
