"""A table knows the state that writes it: a copy of that state stops before its first write."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from resources.outcome import Step
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed, dies_after
from tests.support.moves import set_place, tree

pytestmark = pytest.mark.without_jvm


def copied_over_the_same_lake(feed: Feed, folder: Path) -> Feed:
    """A copy of the project that loads into the original's lake."""
    set_place(feed, lake=str(feed.folder / "lake"))
    return feed.copy(folder)


def loaded(feed: Feed) -> Feed:
    """The dataflow with rows 1 and 2, each by a file and a commit of its own."""
    for number in (1, 2):
        feed.put(f"{number}.ndjson", number)
        feed.load()
    return feed


@pytest.mark.needs_spark
@pytest.mark.parametrize("table_format", ["delta", "iceberg", "parquet"])
def test_a_copy_of_a_project_stops_before_it_writes_into_the_lake_of_the_original(
    make_feed: MakeFeed, tmp_path: Path, table_format: str
) -> None:
    feed = loaded(make_feed(target={"format": table_format}))
    copy = copied_over_the_same_lake(feed, tmp_path / "copy")
    copy.put("9.ndjson", 9)
    before = tree(feed.folder / "lake")
    error = copy.fail()
    assert error.code == "other_writer"
    assert error.choices[0] == f"strandline state accept {NAME} --reason TEXT"
    for address in (feed.folder, feed.folder / "state", copy.folder / "state"):
        assert str(address) in error.message
    assert copy.cli("plan", NAME).error["code"] == "other_writer"
    assert copy.cli("state", "rewind", NAME, "--to", "0", "--reason", "x", "--yes").error["code"] == (
        "other_writer"
    )
    checks = {check["check"]: check for check in copy.cli("doctor", "--no-spark").json["checks"]}
    assert "expected commits of this project's state" in checks[f"table {NAME}"]["found"]
    assert tree(feed.folder / "lake") == before
    feed.put("3.ndjson", 3)
    feed.load()
    assert [row[0] for row in feed.rows("id")] == [1, 2, 3]


@pytest.mark.remedy("other_writer", "state accept", "state adopt", "state reset --replace")
@pytest.mark.parametrize("commits_meanwhile", [False, True])
def test_each_choice_of_a_moved_state_leads_on(feed: Feed, tmp_path: Path, commits_meanwhile: bool) -> None:
    loaded(feed)
    copy = copied_over_the_same_lake(feed, tmp_path / "copy")
    if commits_meanwhile:
        feed.put("3.ndjson", 3)
        feed.load()
    copy.put("3.ndjson", 3)
    copy.put("4.ndjson", 4)
    choices = copy.fail().choices
    assert [choice.split()[2] for choice in choices] == (
        ["adopt", "reset"] if commits_meanwhile else ["accept", "adopt"]
    )
    for number, choice in enumerate(choices):
        lake = tmp_path / f"lake{number}"
        shutil.copytree(feed.folder / "lake", tmp_path / "saved", dirs_exist_ok=True)
        trial = copy.copy(tmp_path / f"trial{number}")
        trial.command(*choice.replace("TEXT", "moved").split()[1:], "--yes")
        trial.load()
        assert [row[0] for row in feed.rows("id")] == [1, 2, 3, 4], choice
        assert trial.load().status == "nothing"
        # the state that it was copied from has lost the table now
        feed.put("5.ndjson", 5)
        assert feed.fail().code == "other_writer"
        (feed.landing / "5.ndjson").unlink()
        shutil.rmtree(feed.folder / "lake")
        shutil.copytree(tmp_path / "saved", feed.folder / "lake")
        assert not lake.exists()


def test_a_copy_with_a_lake_of_its_own_loads_everything_there(feed: Feed, tmp_path: Path) -> None:
    loaded(feed)
    copy = copied_over_the_same_lake(feed, tmp_path / "copy")
    assert copy.fail().code == "other_writer"
    set_place(copy, lake="./own")
    assert copy.fail().code == "table_missing"
    copy.decide("reset")
    copy.load()
    assert copy.platform.table(copy.dataflow).contents.count_rows() == 2
    feed.load()
    assert feed.ids == [1, 2]


@pytest.mark.parametrize("step", [Step.INTENT_PUT, Step.WRITTEN])
def test_a_copy_does_not_finish_the_slice_of_the_original(feed: Feed, tmp_path: Path, step: Step) -> None:
    loaded(feed)
    set_place(feed, lake=str(feed.folder / "lake"))
    feed.put("3.ndjson", 3)
    with pytest.raises(KeyboardInterrupt):
        feed.run(dies_after(step))
    copy = feed.copy(tmp_path / "copy")
    before = tree(feed.folder / "lake")
    assert copy.fail().code == "other_writer"
    assert copy.cli("state", "rewind", NAME, "--to", "0", "--reason", "x", "--yes").error["code"] == (
        "other_writer"
    )
    assert tree(feed.folder / "lake") == before
    feed.load()
    assert feed.ids == [1, 2, 3]


def test_a_state_that_two_addresses_reach_is_accepted_once(feed: Feed, tmp_path: Path) -> None:
    """As a folder that a container mounts elsewhere: a bind mount has another path, and no link tells it."""
    loaded(feed)
    set_place(feed, lake=str(feed.folder / "lake"))
    copy = feed.copy(tmp_path / "copy")
    shutil.rmtree(copy.folder / "state")
    assert copy.fail().code == "state_lost"

    def mount(there: Path, here: Path) -> None:
        shutil.rmtree(here, ignore_errors=True)
        shutil.copytree(there, here)

    mount(feed.folder / "state", copy.folder / "state")
    assert copy.fail().code == "other_writer"
    copy.decide("accept")
    for number, (first, second) in enumerate([(copy, feed), (feed, copy), (copy, feed)], start=3):
        first.put(f"{number}.ndjson", number)
        first.load()
        second.put(f"{number}.ndjson", number)
        mount(first.folder / "state", second.folder / "state")
    assert feed.ids == [1, 2, 3, 4, 5]


def test_a_link_to_the_state_is_the_same_state(feed: Feed, tmp_path: Path) -> None:
    loaded(feed)
    (tmp_path / "link").symlink_to(feed.folder)
    set_place(feed, state=str(tmp_path / "link" / "state"), lake=str(tmp_path / "link" / "lake"))
    feed.put("3.ndjson", 3)
    feed.load()
    assert feed.ids == [1, 2, 3]


@pytest.mark.needs_spark
@pytest.mark.full
def test_dataflows_of_two_projects_share_a_table(make_feed: MakeFeed, tmp_path: Path) -> None:
    target: dict[str, Any] = {"table": "bronze/both", "shared": True}
    feed = make_feed(target=target)
    other = Feed(
        tmp_path / "other", feed.engine, {"target": target}, {"lake": str(feed.folder / "lake")}, name="other"
    )
    for number in (1, 2):
        for loading in (feed, other):
            loading.put(f"{number}.ndjson", number)
            loading.load()
    assert feed.rows("_dataflow", "id") == [(NAME, 1), (NAME, 2), ("other", 1), ("other", 2)]


@pytest.mark.needs_spark
@pytest.mark.parametrize("table_format", ["delta", "iceberg", "parquet"])
@pytest.mark.parametrize("code", ["other_writer", "state_lost"])
def test_a_state_changed_by_mistake_is_the_first_thing_that_the_error_names(
    make_feed: MakeFeed, table_format: str, code: str
) -> None:
    feed = loaded(make_feed(target={"format": table_format}))
    other = feed.folder / "other"
    if code == "other_writer":
        shutil.copytree(feed.folder / "state", other)
    set_place(feed, state="./other")
    error = feed.fail()
    remedy = f"If `state` in platform.yaml was changed by mistake, set it back to {feed.folder / 'state'}."
    assert (error.code, remedy in error.message) == (code, True)
    assert "Run `" not in error.message.partition(remedy)[0], "it is the first remedy"
    set_place(feed, state=str(feed.folder / "state"))
    feed.put("3.ndjson", 3)
    feed.load()
    assert [row[0] for row in feed.rows("id")] == [1, 2, 3]


@pytest.mark.parametrize("decision", ["reset --replace", "reset", "adopt"])
@pytest.mark.parametrize("state", ["a copy", "an empty one"])
def test_the_preview_of_a_decision_that_takes_a_table_over_says_whose_it_is(
    feed: Feed, decision: str, state: str
) -> None:
    loaded(feed)
    if state == "a copy":
        shutil.copytree(feed.folder / "state", feed.folder / "other")
    set_place(feed, state="./other")
    command, *options = decision.split()
    preview = " ".join(feed.text("state", command, NAME, *options, "--reason", "x").split())
    deletes = " and deletes its rows" if options else ""
    assert (
        f"warning: the state {feed.folder / 'state'} of project {feed.folder} has written the table bronze/{NAME}. This decision takes "
        f"it over{deletes}. If that state still loads it, say no, and give this project a lake of its own"
    ) in preview


def test_the_preview_of_a_decision_about_a_table_of_one_s_own_names_no_other_state(feed: Feed) -> None:
    loaded(feed)
    assert "takes it over" not in feed.text("state", "reset", NAME, "--replace", "--reason", "x")
