"""Tables that keep what a table above went through: versions, change rows, keys (docs/reference/offsets.md)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from partitions.offset.state import OffsetState
from resources.kinds.offset.planning import OffsetPlanning
from resources.spark.engine import SparkEngine
from tests.support.commits import OF_CHANGES, UPSTREAMS, Upstream, copying, replayed, rows_of
from tests.support.feed import Feed
from tests.support.iceberg import foreign_table

pytestmark = pytest.mark.usefixtures("engine")

EFFECTIVE = "SELECT *, timestamp '2026-01-01' + make_interval(0, 0, 0, int(substr(v, 2))) AS at FROM input"
"""A row holds from the day that its value names: v3 from the fourth of January."""
VERSIONS = ("id", "v", "_is_current", "_is_deleted")


@pytest.fixture
def make(tmp_path: Path, engine: SparkEngine) -> Any:
    def made(kind: str = "delta", **keys: Any) -> tuple[Feed, Upstream]:
        feed = Feed(tmp_path / "project", engine, copying(**keys))
        return feed, UPSTREAMS[kind](feed.folder / "lake", engine)

    return made


def keeping_versions() -> dict[str, Any]:
    return {"sql": EFFECTIVE, **keyed("scd2", effective_column="at")}


def keyed(load: str = "merge_upsert", **target: Any) -> dict[str, Any]:
    return {"target": {"load": load, "merge_keys": ["id"], **target}}


def current(feed: Feed) -> list[tuple[Any, ...]]:
    return [row[:2] for row in feed.rows(*VERSIONS) if row[2]]


@pytest.mark.full
@pytest.mark.parametrize("is_read_between", [True, False])
@pytest.mark.parametrize("kind", UPSTREAMS)
def test_a_table_that_goes_back_to_an_older_row_withdraws_the_versions_after_it(
    make: Any, kind: str, is_read_between: bool
) -> None:
    feed, upstream = make(kind, **keeping_versions())
    upstream.append((1, "v1"), (2, "v1"))
    feed.load()
    upstream.update(1, "v2")
    upstream.update(1, "v3")
    if is_read_between:
        feed.load()
    upstream.restore(2)
    feed.load()
    assert current(feed) == upstream.rows() == [(1, "v1"), (2, "v1")]
    assert [row[:2] for row in feed.rows(*VERSIONS)] == [(1, "v1"), (2, "v1")]
    upstream.update(1, "v4")
    feed.load()
    assert feed.rows(*VERSIONS) == [
        (1, "v1", False, False),
        (1, "v4", True, False),
        (2, "v1", True, False),
    ]


@pytest.mark.parametrize("is_read_between", [True, False])
def test_a_row_that_comes_back_as_it_was_takes_its_delete_back(make: Any, is_read_between: bool) -> None:
    feed, upstream = make(**keeping_versions())
    upstream.append((1, "v1"), (2, "v1"))
    feed.load()
    upstream.update(1, "v2")
    feed.load()
    upstream.delete(1)
    if is_read_between:
        feed.load()
        assert feed.rows(*VERSIONS) == [
            (1, "v1", False, False),
            (1, "v2", False, True),
            (2, "v1", True, False),
        ]
    upstream.restore(1)
    feed.load()
    assert current(feed) == upstream.rows()
    assert feed.rows(*VERSIONS) == [(1, "v1", False, False), (1, "v2", True, False), (2, "v1", True, False)]


def test_a_row_that_comes_late_is_a_version_before_the_current_one(make: Any) -> None:
    feed, upstream = make(**keeping_versions())
    upstream.append((1, "v1"), (2, "v5"))
    feed.load()
    upstream.append((1, "v4"))
    upstream.append((1, "v2"))
    feed.load()
    upstream.append((2, "v3"))
    feed.load()
    assert [row[:3] for row in feed.rows(*VERSIONS)] == [
        (1, "v1", False),
        (1, "v2", False),
        (1, "v4", True),
        (2, "v3", False),
        (2, "v5", True),
    ]


def test_a_source_may_not_have_the_column_of_deletes_of_versions(make: Any) -> None:
    feed, upstream = make(
        sql=f"SELECT *, true AS _is_deleted FROM ({EFFECTIVE})", **keyed("scd2", effective_column="at")
    )
    upstream.append((1, "v1"))
    error = feed.fail()
    assert "expected rows without _valid_from, _valid_to, _is_current, _is_deleted" in error.message
    feed.define(source={"on_change": "skip"})
    feed.load()
    assert feed.rows("id", "_is_deleted") == [(1, True)]


def test_change_rows_of_a_table_that_was_set_back_and_forward_have_one_order(
    make: Any, engine: SparkEngine
) -> None:
    feed, upstream = make("iceberg", source={"on_change": "keep"})
    spark = engine.session()
    name = foreign_table(spark, upstream.folder)
    upstream.append((1, "a"))
    feed.load()
    upstream.append((2, "b"))
    upstream.update(1, "x")
    feed.load()
    history = spark.sql(f"SELECT snapshot_id FROM {name}.history ORDER BY made_current_at DESC").collect()
    newest = history[0][0]
    upstream.restore(2)
    feed.load()
    upstream.set_to(newest)
    feed.load()
    upstream.restore(1)
    feed.load()
    upstream.append((3, "c"))
    feed.load()
    changes = feed.rows(*OF_CHANGES)
    assert replayed(changes) == upstream.rows()
    for number in {change[3] for change in changes}:
        assert len({change[4] for change in changes if change[3] == number}) == 1
    assert len({change[3] for change in changes}) == 8
    assert OffsetState.of(feed.watermark).last_number == max(change[3] for change in changes)


@pytest.mark.remedy("source_keys_not_unique", "state reset --replace", "state accept")
@pytest.mark.parametrize("kind", UPSTREAMS)
def test_a_delete_of_a_key_of_which_other_rows_stay_stops_and_both_ways_out_work(
    make: Any, kind: str
) -> None:
    feed, upstream = make(kind, **keyed())
    upstream.append((1, "a"), (2, "b"))
    upstream.append((1, "c"))
    feed.load()
    assert [id_ for id_, _ in rows_of(feed)] == [1, 2]
    upstream.update(2, "x")
    feed.load()
    remove_row(upstream, "v = 'a'")
    error = feed.fail()
    assert (error.code, error.exit_code) == ("source_keys_not_unique", 4)
    assert "expected one row of each id (target.merge_keys) in table bronze/events" in error.message
    feed.define(source={"on_change": "skip"})
    feed.decide("accept")
    feed.load()
    assert rows_of(feed) == [(1, "c"), (2, "x")]
    feed.define(source={"on_change": "apply"})
    feed.decide("reset", "--replace")
    feed.load()
    assert rows_of(feed) == upstream.rows() == [(1, "c"), (2, "x")]


def remove_row(upstream: Upstream, condition: str) -> None:
    """Delete rows by another column than their key."""
    if (upstream.folder / "metadata").is_dir():
        spark = upstream.engine.session()
        spark.sql(f"DELETE FROM {foreign_table(spark, upstream.folder)} WHERE {condition}").collect()
    else:
        upstream._table.delete(condition)


def test_the_rows_of_a_key_are_those_of_its_last_commit_wherever_slices_are_cut(make: Any) -> None:
    rows: list[Any] = []
    for commits in (1, 50):
        feed, upstream = make(
            watermark={"checkpoint": {"commits": commits, "files": commits}}, **keyed("merge_overwrite")
        )
        if not rows:
            upstream.append((1, "a"), (2, "a"))
            upstream.append((2, "b"))
            feed.load()
            rows.append(rows_of(feed))
            upstream.append((1, "b"), (1, "c"))
            upstream.append((1, "d"), (1, "e"), (2, "d"))
            upstream.append((2, "e"))
        else:
            feed.define(source={"from": 1})
            feed.decide("reset", "--replace")
        feed.load()
        rows.append(rows_of(feed))
    assert rows[0] == [(1, "a"), (2, "a"), (2, "b")]
    assert rows[1] == rows[2] == [(1, "d"), (1, "e"), (2, "e")]


def test_readable_commits_between_unreadable_ones_are_read_after_accept(make: Any) -> None:
    feed, upstream = make()
    upstream.append((0, "first"))
    feed.load()
    for number in (1, 2, 3, 4):
        upstream.append((number, "row"))
    for version in (1, 3):
        upstream.remove_files(version)
    assert feed.fail().code == "versions_gone"
    feed.decide("accept")
    outcome = feed.load()
    assert feed.ids == [0, 2, 4]
    assert any(
        "whose files are gone; it is passed over (accepted)" in warning for warning in outcome.warnings
    )
    assert "unreadable" not in feed.watermark


def test_a_start_by_a_time_that_has_not_come_is_refused(make: Any) -> None:
    feed, upstream = make(source={"from": {"time": "2099-01-01T00:00:00Z"}})
    upstream.append((1, "a"))
    error = feed.fail(now=datetime(2026, 6, 1, tzinfo=UTC))
    assert "expected a time that has come (source.from), found 2099-01-01T00:00:00+00:00" in error.message
    assert feed.entries == []


def test_why_says_what_a_commit_behind_a_stopped_change_waits_for(make: Any) -> None:
    feed, upstream = make()
    upstream.append((1, "a"))
    feed.load()
    upstream.delete(1)
    upstream.append((2, "b"))
    answer = feed.command("why", "flow", "2").json
    assert answer["status"] == "stopped"
    assert "expected commits of table bronze/events that only add rows" in answer["reasons"][0]["why"]
    assert [choice.split()[2] for choice in answer["choices"]] == ["accept", "reset"]


def test_why_tells_a_commit_without_rows_from_one_that_the_table_does_not_have(make: Any) -> None:
    feed, upstream = make()
    upstream.append((1, "a"))
    upstream.append((2, "b"))
    feed.load()
    upstream.compact()
    answer = feed.command("why", "flow", "2").json
    assert (answer["status"], answer["summary"]) == (
        "waits",
        "not loaded yet: it changes no row, so it is passed with the next one that does",
    )
    answer = feed.command("why", "flow", "99").json
    assert answer["status"] == "unknown"
    assert "table bronze/events has no such commit behind the position" in answer["summary"]


@pytest.mark.remedy("would_rise", "run", "state reset --replace")
def test_a_set_within_a_first_read_is_refused_since_its_rest_would_never_be_read(make: Any) -> None:
    feed, upstream = make(watermark={"checkpoint": {"files": 1}, "max_slices": 1})
    for number in range(3):
        upstream.append((number, "first"))
    feed.load()
    answer = feed.cli("state", "set", "flow", "2", "--reason", "x", "--yes")
    assert (answer.code, answer.error["code"]) == (4, "would_rise")
    assert "found 1 of 3 files of version 2" in answer.error["message"]
    feed.load()
    feed.decide("reset", "--replace")
    for _ in range(3):
        feed.load()
    assert len(rows_of(feed)) == 3
    feed.decide("set", "2")


def test_a_slice_reads_the_log_once(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from resources.tables.delta.commit_log import DeltaCommits

    feed, upstream = make()
    upstream.append((1, "a"))
    feed.load()
    upstream.append((2, "b"))
    ranges: list[Any] = []
    since = DeltaCommits.since

    def counted(self: DeltaCommits, position: Any, until: Any = None, **options: Any) -> Any:
        ranges.append((position, until))
        return since(self, position, until, **options)

    monkeypatch.setattr(DeltaCommits, "since", counted)
    feed.load()
    assert len([until for _, until in ranges if until is not None]) == 1


def test_a_reset_that_keeps_the_table_says_that_its_rows_stay(make: Any) -> None:
    feed, upstream = make(**keyed())
    upstream.append((1, "a"), (2, "b"))
    feed.load()
    upstream.delete(1)
    assert "2 rows of table silver/copy stay" in feed.decide("reset").err
    feed.decide("reset", "--replace")
    feed.load()
    assert rows_of(feed) == [(2, "b")]


@pytest.mark.remedy("would_fall", "state reset --replace")
def test_a_slice_below_the_position_names_the_reset_since_an_offset_cannot_go_back(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, upstream = make()
    upstream.append((1, "a"))
    feed.load()
    upstream.append((2, "b"))
    with monkeypatch.context() as patch:
        patch.setattr(OffsetPlanning, "covers", lambda *_: False)
        error = feed.fail()
    assert (error.code, feed.open_intent) == ("would_fall", None)
    assert [choice.split()[2:5] for choice in error.choices] == [["reset", "flow", "--replace"]]
    feed.decide("reset", "--replace")
    feed.load()
    assert rows_of(feed) == upstream.rows()
