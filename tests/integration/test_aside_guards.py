"""What others do to a replay that stands aside, and where one may begin; the table aside is Delta, and no promote is made (docs/reference/replay.md, Isolated)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from partitions.errors import ConfigurationError, NeedsDecision
from resources.outcome import Step
from resources.replay.chunk_runs import ReplayResult
from resources.replay.isolated import replaying
from resources.replay.isolated.dropping import drop_replay, preview_drop
from resources.replay.isolated.promoting import preview_promote
from resources.replay.isolated.replaying import replay_isolated
from resources.replay.isolated.standing import put_replay, stored_replays
from resources.replay.options import ReplayOptions
from resources.spark.engine import SparkEngine
from tests.support.asides import TABLE
from tests.support.feed import NOW, Feed, dies_after
from tests.support.foreign_acts import FOREIGN_ID, Others

pytestmark = pytest.mark.without_jvm


@pytest.fixture
def feed(tmp_path: Path, engine: SparkEngine) -> Feed:
    """Five days are loaded; then a file of the second holds what others delete."""
    feed = Feed(tmp_path, engine, {"watermark": {"type": "path", "checkpoint": {"interval_files": 1}}})
    for day in range(1, 6):
        feed.put(f"2026-01-0{day}/{day}.ndjson", day)
    feed.load()
    feed.put("2026-01-02/2.ndjson", 1)
    return feed


def replayed(feed: Feed, table: str = TABLE, after_first: Callable[[], object] | None = None) -> ReplayResult:
    """Read two days aside, each file a chunk; something may happen after the first."""

    def told(reports: Sequence[Mapping[str, Any]]) -> None:
        if after_first and [report["status"] for report in reports] == ["committed", "pending"]:
            after_first()

    asked = ReplayOptions("2026-01-02", "2026-01-04", table=table)
    done = replay_isolated(feed.platform, feed.dataflow, asked, NOW, on_progress=told)
    assert done.outcome.error is None
    return done


def others(feed: Feed, act: str) -> None:
    Others(feed, None, TABLE).do(act)


@pytest.mark.parametrize("act", ["delete", "append", "rollback", "made again"])
def test_a_table_aside_whose_rows_others_have_changed_is_not_promoted(feed: Feed, act: str) -> None:
    replayed(feed)
    assert preview_promote(feed.platform, feed.dataflow, TABLE)
    others(feed, act)
    with pytest.raises(NeedsDecision) as refused:
        preview_promote(feed.platform, feed.dataflow, TABLE)
    assert refused.value.code == "aside_changed"
    assert [choice.split()[1] for choice in refused.value.choices] == ["drop", "replay"]


@pytest.mark.parametrize("acts", [("compaction",), ("expiry",), ("compaction", "expiry")])
def test_files_of_a_table_aside_may_be_joined_and_old_ones_removed(feed: Feed, acts: Sequence[str]) -> None:
    replayed(feed)
    for act in acts:
        others(feed, act)
    assert preview_promote(feed.platform, feed.dataflow, TABLE)


def test_a_replay_stops_once_others_have_changed_rows_that_its_chunks_have_read(feed: Feed) -> None:
    with pytest.raises(NeedsDecision, match="another writer has changed it") as stopped:
        replayed(feed, after_first=lambda: others(feed, "delete"))
    assert stopped.value.code == "aside_changed"
    (shown,) = feed.cli("list").json[0]["replays"]
    assert (shown["chunks"], shown["done"], shown["complete"]) == (2, 1, False)


def test_a_replay_that_is_dropped_between_two_chunks_stops_and_leaves_nothing(feed: Feed) -> None:
    with pytest.raises(NeedsDecision) as stopped:
        replayed(feed, after_first=lambda: drop_replay(feed.platform, feed.dataflow, TABLE, "r", NOW))
    assert stopped.value.code == "replay_dropping"
    assert not (feed.folder / "lake" / TABLE).exists()
    assert list((feed.folder / "state").glob("*~*/*/*")) == []
    assert len(replayed(feed).outcome.committed) == 2


@pytest.mark.parametrize("step", [Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED, Step.APPENDED])
def test_what_a_chunk_that_died_has_written_is_no_change_by_others(feed: Feed, step: Step) -> None:
    platform, asked = feed.platform, ReplayOptions("2026-01-02", "2026-01-04", table=TABLE)
    with pytest.raises(KeyboardInterrupt):
        replay_isolated(platform, feed.dataflow, asked, NOW, observer=dies_after(step))
    replayed(feed)
    aside = DeltaTable(str(feed.folder / "lake" / TABLE)).to_pyarrow_table(columns=["id"])
    assert sorted(aside["id"].to_pylist()) == [1, 3]
    assert preview_promote(feed.platform, feed.dataflow, TABLE)


@pytest.mark.parametrize(
    ("table", "there"),
    [
        ("files/x", "files/x/theirs.csv"),
        ("files/x", "files/x/below/theirs.csv"),
        ("files/x", "files/x_bad_records/theirs.csv"),
    ],
)
def test_a_replay_begins_only_where_nothing_would_go_with_it(feed: Feed, table: str, there: str) -> None:
    file = feed.folder / "lake" / there
    file.parent.mkdir(parents=True)
    file.write_text("id\n")
    with pytest.raises(ConfigurationError, match="expected nothing at files/x"):
        replayed(feed, table)
    assert (file.exists(), feed.cli("list").json[0]["replays"]) == (True, [])


def test_a_replay_may_begin_in_an_empty_folder(feed: Feed) -> None:
    (feed.folder / "lake" / TABLE).mkdir(parents=True)
    assert len(replayed(feed).outcome.committed) == 2


@pytest.mark.parametrize(
    ("held", "table"), [(TABLE, f"{TABLE}_bad_records"), (f"{TABLE}_bad_records", TABLE)]
)
def test_a_replay_takes_no_place_of_records_set_aside(feed: Feed, held: str, table: str) -> None:
    replayed(feed, held)
    with pytest.raises(ConfigurationError, match="expected a table that no other replay has"):
        replayed(feed, table)


@pytest.mark.parametrize("command", ["promote", "drop"])
@pytest.mark.parametrize(
    "table", ["aside.rows", "../rows", "", ".", "x" * 5000, "aside\x00/rows", "aside/'rows\""]
)
def test_only_the_name_of_a_table_aside_is_promoted_or_dropped(feed: Feed, command: str, table: str) -> None:
    replayed(feed)
    answer = feed.cli(command, feed.name, table, "--reason", "r", "--yes")
    assert (answer.code, f"an isolated replay ({TABLE})" in answer.json["error"]["message"]) == (2, True)
    assert preview_promote(feed.platform, feed.dataflow, TABLE)


@pytest.mark.parametrize(
    "table", ["a/" + "b" * 300, "a/b/c", "/tmp/x", "_a/b", "a/_b", "a\x00/b", "a/b'c", "a"]
)
def test_a_table_aside_has_a_name_that_is_a_folder_of_the_lake(feed: Feed, table: str) -> None:
    answer = feed.cli("replay", feed.name, "--start", "2026-01-02", "--end", "2026-01-04", "--into", table)
    assert (answer.code, "expected <layer>/<name>" in answer.json["error"]["message"]) == (2, True)


def other_dataflow(feed: Feed) -> Feed:
    """A second dataflow of the project, with files of the same two days."""
    other = Feed(feed.folder, feed.engine, feed.definition, name="other")
    other.define(source={"path": "./landing_other"}, target={"table": "bronze/other"})
    for day in (2, 3):
        other.put(f"2026-01-0{day}/{day}.ndjson", 10 + day)
    other.load()
    return other


def test_of_two_replays_into_one_table_one_has_it(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    other = other_dataflow(feed)

    def checked(*given: Any) -> None:
        checks(*given)
        monkeypatch.undo()
        replayed(other)  # it begins and ends between the first one's check and its claim

    checks = replaying._check_places
    monkeypatch.setattr(replaying, "_check_places", checked)
    with pytest.raises(ConfigurationError, match="a table of the replay of other into aside/rows"):
        replayed(feed)
    assert [flow["replays"] != [] for flow in feed.cli("list").json] == [False, True]
    assert feed.cli("drop", feed.name, TABLE, "--reason", "r", "--yes").code == 2
    assert preview_promote(other.platform, other.dataflow, TABLE)
    drop_replay(other.platform, other.dataflow, TABLE, "r", NOW)
    assert len(replayed(feed).outcome.committed) == 2


def test_a_drop_leaves_the_table_of_a_replay_that_has_the_name_instead(feed: Feed) -> None:
    other = other_dataflow(feed)
    replayed(other)
    (theirs,) = stored_replays(other.platform.log, "other")
    put_replay(feed.platform.log, theirs.model_copy(update={"id": "f" * 32, "dataflow": feed.name}))
    assert "so what is at aside/rows stays" in preview_drop(feed.platform, feed.dataflow, TABLE)[0]
    drop_replay(feed.platform, feed.dataflow, TABLE, "r", NOW)
    assert preview_promote(other.platform, other.dataflow, TABLE)
    assert stored_replays(feed.platform.log, feed.name) == []


def test_a_drop_leaves_a_table_that_others_have_made_in_the_place_of_the_replays(feed: Feed) -> None:
    replayed(feed)
    others(feed, "made again")
    drop_replay(feed.platform, feed.dataflow, TABLE, "r", NOW)
    theirs = DeltaTable(str(feed.folder / "lake" / TABLE)).to_pyarrow_table(columns=["id"])
    assert theirs["id"].to_pylist() == [FOREIGN_ID]
    assert list((feed.folder / "state").glob("*~*/*/*")) == []


def test_a_replay_that_died_before_its_claim_goes_on_and_is_dropped(feed: Feed) -> None:
    replayed(feed)
    (aside,) = stored_replays(feed.platform.log, feed.name)
    drop_replay(feed.platform, feed.dataflow, TABLE, "r", NOW)
    put_replay(feed.platform.log, aside)
    assert len(replayed(feed).outcome.committed) == 2
    drop_replay(feed.platform, feed.dataflow, TABLE, "r", NOW)
    assert not (feed.folder / "lake" / TABLE).exists()


@pytest.mark.remedy("nothing_to_promote", "drop")
def test_a_replay_without_chunks_is_only_to_be_dropped(feed: Feed) -> None:
    answer = feed.cli("replay", feed.name, "--start", "2025-01-01", "--end", "2025-02-01", "--into", TABLE)
    assert (answer.code, answer.json[0]["chunks"]) == (0, [])
    refused = feed.cli("promote", feed.name, TABLE, "--reason", "r", "--yes")
    assert (refused.code, refused.json["error"]["code"]) == (4, "nothing_to_promote")
    assert "the source had no files or windows in this range" in refused.json["error"]["message"]
    (way,) = refused.json["error"]["choices"]
    feed.command(*way.split()[1:], "--yes")
    assert len(replayed(feed).outcome.committed) == 2


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        (
            {"target": {"load": "merge_upsert", "merge_keys": ["id"], "origin_columns": True}},
            "(load, merge_keys, origin_columns)",
        ),
        (
            {
                "target": {
                    "load": "scd2",
                    "merge_keys": ["id"],
                    "effective_column": "day",
                    "origin_columns": True,
                }
            },
            "effective_column",
        ),
        ({"target": {"partition_by": ["id"]}}, None),
    ],
)
def test_a_replay_of_a_changed_definition_ends(
    feed: Feed, changes: dict[str, Any], named: str | None
) -> None:
    replayed(feed)
    feed.define(**changes)
    if named is None:
        assert preview_promote(feed.platform, feed.dataflow, TABLE)
        return
    with pytest.raises(NeedsDecision) as refused:
        preview_promote(feed.platform, feed.dataflow, TABLE)
    assert refused.value.code == "definition_changed"
    assert named in refused.value.message
    with pytest.raises((NeedsDecision, ConfigurationError)):
        replayed(feed)
    feed.command("drop", feed.name, TABLE, "--reason", "r", "--yes")
