"""Each command that an error about an isolated replay names leads on; none here needs a promote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from partitions.errors import NeedsDecision
from resources.outcome import Step
from resources.replay.isolated.dropping import drop_replay
from resources.replay.isolated.replaying import replay_isolated
from resources.replay.isolated.standing import mark, stored_replays
from resources.replay.options import ReplayOptions
from resources.spark.engine import SparkEngine
from resources.watermarks.log import WatermarkLog
from tests.integration.test_aside_guards import others, replayed
from tests.support.asides import TABLE
from tests.support.feed import NAME, NOW, Feed, dies_after

pytestmark = pytest.mark.without_jvm

RANGE = ("--start", "2026-01-02", "--end", "2026-01-04")


@pytest.fixture
def feed(tmp_path: Path, engine: SparkEngine) -> Feed:
    """Five days are loaded; then a file of the second holds what others delete."""
    feed = Feed(tmp_path, engine, {"watermark": {"type": "path", "checkpoint": {"interval_files": 1}}})
    for day in range(1, 6):
        feed.put(f"2026-01-0{day}/{day}.ndjson", day)
    feed.load()
    feed.put("2026-01-02/2.ndjson", 1)
    return feed


def refused(feed: Feed, *words: str) -> dict[str, Any]:
    """The error of a command that is refused."""
    answer = feed.cli(*words)
    assert answer.code, answer.out
    return answer.error


def promote(feed: Feed) -> dict[str, Any]:
    return refused(feed, "promote", NAME, TABLE, "--reason", "x", "--yes")


def follow(feed: Feed, choice: str) -> None:
    words = choice.replace("TEXT", "because").split()[1:]
    feed.command(*words, *(["--yes"] if words[0] == "drop" else []))


def dropped_and_replayed(feed: Feed, error: dict[str, Any], ids: Sequence[int] = (1, 2, 3, 4, 5)) -> None:
    """Follow both commands of an error, in their order: the replay is whole again, and the live rows are as before."""
    drop, replay = error["choices"]
    follow(feed, drop)
    assert feed.cli("list").json[0]["replays"] == []
    assert not (feed.folder / "lake" / TABLE).exists()
    follow(feed, replay)
    (isolated,) = feed.cli("list").json[0]["replays"]
    assert (isolated["chunks"], isolated["complete"]) == (2, True)
    assert feed.ids == [*ids]


@pytest.mark.remedy("aside_changed", "drop", "replay")
@pytest.mark.parametrize("act", ["delete", "append", "rollback"])
def test_a_changed_isolated_table_is_dropped_and_replayed(feed: Feed, act: str) -> None:
    replayed(feed)
    others(feed, act)
    error = promote(feed)
    assert error["code"] == "aside_changed"
    dropped_and_replayed(feed, error)


@pytest.mark.needs_spark
@pytest.mark.full
@pytest.mark.remedy("definition_changed", "drop", "replay")
def test_a_replay_of_a_changed_definition_is_dropped_and_replayed(feed: Feed) -> None:
    replayed(feed)
    feed.define(target={"load": "merge_upsert", "merge_keys": ["id"]})
    error = promote(feed)
    assert error["code"] == "definition_changed"
    dropped_and_replayed(feed, error)


@pytest.mark.remedy("range_loaded_again", "drop", "replay")
def test_a_range_that_was_loaded_again_is_dropped_and_replayed(feed: Feed) -> None:
    replayed(feed)
    feed.decide("rewind", "--to", "1", "--replace")
    feed.load()
    error = promote(feed)
    assert error["code"] == "range_loaded_again"
    dropped_and_replayed(feed, error, [1, 1, 3, 4, 5])


@pytest.mark.remedy("replay_dropping", "drop")
@pytest.mark.parametrize("command", ["promote", "replay"])
def test_a_drop_that_died_is_finished_by_the_command_that_is_named(feed: Feed, command: str) -> None:
    replayed(feed)
    (isolated,) = stored_replays(feed.platform.log, NAME)
    mark(feed.platform.log, isolated, "dropping")
    error = promote(feed) if command == "promote" else refused(feed, "replay", NAME, *RANGE, "--into", TABLE)
    assert error["code"] == "replay_dropping"
    (drop,) = error["choices"]
    follow(feed, drop)
    assert feed.cli("list").json[0]["replays"] == []
    assert len(replayed(feed).outcome.committed) == 2


@pytest.mark.remedy("replay_dropping", "replay")
def test_a_replay_that_was_dropped_while_it_ran_is_made_by_the_command_that_is_named(feed: Feed) -> None:
    with pytest.raises(NeedsDecision) as stopped:
        replayed(feed, after_first=lambda: drop_replay(feed.platform, feed.dataflow, TABLE, "r", NOW))
    assert stopped.value.code == "replay_dropping"
    (replay,) = stopped.value.choices
    follow(feed, replay)
    (isolated,) = feed.cli("list").json[0]["replays"]
    assert (isolated["chunks"], isolated["complete"]) == (2, True)


@pytest.mark.remedy("replay_unfinished", "replay", "drop")
@pytest.mark.parametrize("choice", ["replay", "drop"])
def test_each_choice_about_an_unfinished_replay_leads_on(feed: Feed, choice: str) -> None:
    options = ReplayOptions("2026-01-02", "2026-01-04", table=TABLE)
    with pytest.raises(KeyboardInterrupt):
        replay_isolated(feed.platform, feed.dataflow, options, NOW, observer=dies_after(Step.APPENDED))
    error = promote(feed)
    assert error["code"] == "replay_unfinished"
    follow(feed, error["choices"][["replay", "drop"].index(choice)])
    assert [isolated["complete"] for isolated in feed.cli("list").json[0]["replays"]] == (
        [True] if choice == "replay" else []
    )
    assert feed.ids == [1, 2, 3, 4, 5]


@pytest.mark.remedy("promote_unknown", "drop", "replay")
def test_a_promote_that_nobody_remembers_is_dropped_and_replayed(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed(feed)
    (isolated,) = stored_replays(feed.platform.log, NAME)
    mark(feed.platform.log, isolated, "promoting")
    with monkeypatch.context() as patch:
        patch.setattr(WatermarkLog, "floor", lambda *_: 100)
        error = promote(feed)
    assert error["code"] == "promote_unknown"
    dropped_and_replayed(feed, error)


@pytest.mark.remedy("configuration", "drop")
@pytest.mark.parametrize("command", ["rename", "replay"])
def test_a_replay_in_the_way_is_dropped_by_the_command_that_is_named(feed: Feed, command: str) -> None:
    replayed(feed)
    words = {
        "rename": ("rename", NAME, "orders"),
        "replay": ("replay", NAME, "--start", "2026-01-01", "--end", "2026-01-04", "--into", TABLE),
    }[command]
    (drop,) = refused(feed, *words)["choices"]
    follow(feed, drop)
    feed.command(*words)


@pytest.mark.remedy("configuration", "state history")
def test_a_table_that_is_no_replay_names_the_history_that_shows_promotes(feed: Feed) -> None:
    error = promote(feed)
    (history,) = error["choices"]
    assert [entry["why"] for entry in feed.command(*history.split()[1:]).json] == ["run"] * 5
