"""`strandline state copy`: the state in another store, from which runs go on where they were."""

from __future__ import annotations

import pytest
import yaml

from resources.outcome import Step
from scripts.postgres import Postgres
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed, dies_after

pytestmark = pytest.mark.without_jvm


def move_to(feed: Feed, state: str) -> None:
    """Set another ``state`` in platform.yaml."""
    file = feed.folder / "platform.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"state": state}))


def test_runs_go_on_from_a_copy_and_the_old_state_stops_before_it_doubles_a_row(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    feed.put("2.ndjson", 2)
    number = feed.load().newest
    answer = feed.command("state", "copy", "--to", "elsewhere").json
    assert answer["to"] == str(feed.folder / "elsewhere")
    assert [(log["dataflow"], log["number"]) for log in answer["dataflows"]] == [
        (NAME, number and number.number)
    ]
    before = feed.entries
    move_to(feed, "./elsewhere")
    assert feed.entries == before
    feed.put("3.ndjson", 3)
    feed.load()
    assert feed.ids == [1, 2, 3]
    move_to(feed, "./state")
    feed.put("4.ndjson", 4)
    assert feed.fail().code == "other_writer"
    assert feed.ids == [1, 2, 3]


@pytest.mark.needs_spark
def test_late_and_quarantined_files_are_the_same_in_a_copy(make_feed: MakeFeed) -> None:
    feed = make_feed(on_bad_file="quarantine")
    feed.put("2.ndjson", 2)
    feed.put_text("3.ndjson", '{"id": "no number"}\n')
    feed.load()
    feed.put("1.ndjson", 1)
    feed.command("state", "copy", NAME, "--to", str(feed.folder / "elsewhere"))
    move_to(feed, "./elsewhere")
    assert list(feed.quarantined) == ["3.ndjson"]
    assert feed.command("late", NAME).json["ingested"] == 1
    feed.put("3.ndjson", 3)
    feed.command("files", "release", NAME, "3.ndjson", "--reason", "mended")
    feed.load()
    assert feed.ids == [1, 2, 3]


@pytest.mark.parametrize("step", [Step.INTENT_PUT, Step.WRITTEN], ids=["before its write", "after its write"])
def test_a_slice_that_a_dead_run_left_open_is_finished_once_from_the_copy(feed: Feed, step: Step) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    feed.put("2.ndjson", 2)
    with pytest.raises(KeyboardInterrupt):
        feed.run(dies_after(step))
    feed.command("state", "copy", "--to", "./elsewhere")
    move_to(feed, "./elsewhere")
    feed.load()
    assert feed.ids == [1, 2]


@pytest.mark.postgres
def test_a_state_moves_into_postgresql_and_back_by_an_address_from_a_variable(
    feed: Feed, postgres: Postgres
) -> None:
    feed.environment["STATE_URL"] = f"{postgres.url()}?schema=moved"
    feed.put("1.ndjson", 1)
    feed.load()
    feed.command("state", "copy", "--to", "env:STATE_URL")
    entries = feed.entries
    file = feed.folder / "platform.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"state": {"env": "STATE_URL"}}))
    assert feed.entries == entries
    feed.put("2.ndjson", 2)
    feed.load()
    feed.command("state", "copy", "--to", "./back")
    move_to(feed, "./back")
    feed.put("3.ndjson", 3)
    feed.load()
    assert feed.ids == [1, 2, 3]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("./state", "expected another store than the project's own"),
        ("env:NO_SUCH", "expected the variable NO_SUCH"),
        ("postgresql://me:geheim@localhost/db", "expected an address without a password"),
        ("ftp://host/x", "expected a folder or s3://bucket/prefix"),
    ],
)
def test_an_address_that_cannot_take_a_copy_is_refused(feed: Feed, address: str, message: str) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    answer = feed.cli("state", "copy", "--to", address)
    assert answer.code == 2
    assert message in answer.error["message"]
    assert "geheim" not in answer.err + answer.out


def test_a_dataflow_without_a_state_cannot_be_copied(feed: Feed) -> None:
    answer = feed.cli("state", "copy", NAME, "--to", "./elsewhere")
    assert (answer.code, answer.error["message"].split(",")[0]) == (
        2,
        f"dataflow {NAME}: expected a state in {feed.folder / 'state'}",
    )
