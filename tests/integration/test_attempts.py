"""What is known of a run after it, whatever became of it: the note that it writes at its end."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from platform_assets.cli import running
from resources.outcome import Outcome, Step
from resources.watermarks import holder
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed, dies_after

pytestmark = pytest.mark.without_jvm


def _attempt(feed: Feed) -> dict[str, Any]:
    (listed,) = feed.cli("list").json
    found: dict[str, Any] = listed["last_attempt"]
    return found


@pytest.mark.needs_spark
def test_a_first_run_that_fails_is_listed_with_its_error_until_one_succeeds(feed: Feed) -> None:
    feed.put_text("1.ndjson", '{"id": "no number"}\n')
    assert feed.cli("run", NAME).code == 1
    first = _attempt(feed)
    assert (first["status"], first["error"]["code"], first["failing_since"]) == (
        "failed",
        "bad_record",
        first["time"],
    )
    assert feed.cli("run", NAME).code == 1
    again = _attempt(feed)
    assert again["time"] > first["time"]
    assert again["failing_since"] == first["time"]
    warning = feed.command("plan", NAME).json[0]["warnings"][-1]
    assert warning.startswith("runs have failed since 2")
    assert warning.endswith(f": {first['error']['message']}")
    feed.put("1.ndjson", 1)
    feed.command("run", NAME)
    assert feed.command("plan", NAME).json[0]["warnings"] == []
    assert {
        key: value for key, value in _attempt(feed).items() if key in ("status", "error", "failing_since")
    } == {
        "status": "committed",
        "error": None,
        "failing_since": None,
    }
    assert feed.ids == [1]


def test_a_failure_before_the_newest_decision_is_told_as_such_until_the_next_run(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    shutil.rmtree(feed.state)
    assert feed.fail().code == "state_lost"
    assert feed.cli("plan").error["code"] == "state_lost"
    assert _attempt(feed)["decided_since"] is None
    feed.decide("adopt")
    (warning,) = _failed_before(feed)
    number = feed.entries[-1].number
    assert warning.startswith(
        f"the last run failed before the adopt of entry {number}, which may have solved it: "
    )
    assert _attempt(feed)["decided_since"] == number
    feed.put("2.ndjson", 2)
    feed.load()
    assert (_failed_before(feed), _attempt(feed)["decided_since"]) == ([], None)


def _failed_before(feed: Feed) -> list[str]:
    warnings: list[str] = feed.cli("plan").json[0]["warnings"]
    return [warning for warning in warnings if "failed" in warning]


def test_a_run_whose_secret_is_not_set_is_noted_and_fails_with_what_is_missing(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"path": "s3://bucket/landing", "connection": "land"})
    land = "{type: s3, endpoint: 'http://127.0.0.1:1', region: r, access_key_id: {env: NO_SUCH_KEY}}"
    (feed.folder / "platform.yaml").write_text(
        f"state: ./state\nlake: ./lake\nconnections: {{land: {land}}}\n"
    )
    answer = feed.cli("run", NAME)
    assert (answer.code, answer.error["code"]) == (1, "configuration")
    message = "platform.yaml: connections.land.access_key_id: expected the environment variable NO_SUCH_KEY to be set, found it unset or empty: set it, or correct {env: NO_SUCH_KEY} there"
    assert answer.error["message"] == message
    attempt = _attempt(feed)
    assert (attempt["status"], attempt["error"]["message"]) == ("failed", message)


def test_late_files_that_are_loaded_do_not_hide_that_runs_fail(feed: Feed) -> None:
    feed.put("2.ndjson", 2)
    feed.load()
    feed.put_text("3.ndjson", '{"id": "no number"}\n')
    assert feed.run().error is not None
    feed.put("1.ndjson", 1)
    assert feed.cli("late", NAME).json["ingested"] == 1
    assert _attempt(feed)["status"] == "failed"


def test_a_replay_is_the_last_attempt_whatever_its_result(feed: Feed) -> None:
    range_ = ("--start", "1", "--end", "2", "--replace")
    feed.put("1/a.ndjson", 1)
    feed.load()
    feed.command("replay", NAME, *range_)
    replayed = _attempt(feed)
    assert (replayed["status"], replayed["failures"]) == ("committed", 0)
    feed.put_text("1/a.ndjson", '{"id": "no number"}\n')
    assert feed.cli("replay", NAME, *range_).code == 1
    failed = _attempt(feed)
    assert (failed["status"], failed["failures"], failed["failing_since"]) == ("failed", 1, failed["time"])
    assert failed["error"]["message"].startswith("chunk ")
    feed.put("1/a.ndjson", 2)
    feed.command("replay", NAME, *range_)
    assert (_attempt(feed)["status"], feed.ids) == ("committed", [2])


def test_a_warning_that_repeats_is_given_by_the_first_run_alone(feed: Feed) -> None:
    feed.put("b-x.ndjson", 1)
    first = feed.load()
    feed.put("c-y.ndjson", 2)
    feed.put("d-z.ndjson", 3)
    second = feed.load()
    assert [text.split(" names")[0] for text in (*first.new_warnings, *second.warnings)] == [
        "1 of 1",
        "2 of 2",
    ]
    assert second.new_warnings == []


def test_a_run_that_its_user_ends_is_listed_as_stopped_and_its_slice_is_finished(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end_by_hand(runner: running.Runner, step: Step, line: str) -> None:
        if step is Step.WRITTEN:
            raise KeyboardInterrupt

    feed.put("1.ndjson", 1)
    with monkeypatch.context() as patched:
        patched.setattr(running.Runner, "_show_step", end_by_hand)
        assert feed.cli("run", NAME).code == 130
    attempt = _attempt(feed)
    assert (attempt["status"], attempt["error"], attempt["failing_since"]) == ("stopped", None, None)
    (outcome,) = feed.command("run", NAME).json
    assert (outcome["status"], outcome["rows"]) == ("recovered", 1)
    assert _attempt(feed)["status"] == "recovered"
    assert feed.ids == [1]


@pytest.mark.parametrize("step", [Step.INTENT_PUT, Step.WRITTEN], ids=["before its write", "after its write"])
def test_of_two_runs_that_finish_a_slice_one_counts_it(feed: Feed, step: Step) -> None:
    feed.put("1.ndjson", 1)
    with pytest.raises(KeyboardInterrupt):
        feed.run(dies_after(step))
    others: list[Outcome] = []

    def beside_another(reached: Step, line: str) -> None:
        if reached is Step.VERIFIED and not others:
            intent = feed.open_intent
            assert intent is not None
            holder.mark_inactive(intent.id)  # the other run takes this one for dead
            others.append(feed.load())

    outcome = feed.run(beside_another)
    assert outcome.error is None
    assert [(run.status, run.rows, run.files) for run in (others[0], outcome)] == [
        ("recovered", 1, 1),
        ("nothing", 0, 0),
    ]
    assert (feed.ids, [entry.rows for entry in feed.entries]) == ([1], [1])
