"""Rules of rows beside decisions, replays and damage (docs/how-to/rules-for-rows.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dagster import AssetCheckSeverity, DagsterInstance

from resources.alerts.scan import AlertScan
from resources.outcome import Step
from tests.integration.conftest import MakeFeed
from tests.integration.test_dagster import run as dagster_run
from tests.integration.test_rules import POSITIVE, SOURCE, release
from tests.support.crash_runner import crash
from tests.support.feed import NAME, NOW, Feed, dies_after, rows_in
from tests.support.window_feed import LakeTable, event

Rows = list[tuple[Any, ...]]


def waiting(feed: Feed, table: Path | None = None) -> Rows:
    """The id and the rule of each rejected row."""
    return rows_in(Path(f"{table or feed.table}_rejected"), ("id", "_rejected_by"))


@pytest.mark.full
def test_an_abandoned_slice_takes_its_rejected_rows_back(make_feed: MakeFeed) -> None:
    feed = make_feed(source=SOURCE, rules=[POSITIVE])
    feed.put("1.ndjson", {"id": 1, "v": -1}, {"id": 2, "v": 2})
    feed.load()
    feed.put("2.ndjson", {"id": 3, "v": -3}, {"id": 4, "v": 4})
    with pytest.raises(KeyboardInterrupt):
        feed.run(dies_after(Step.SET_ASIDE))
    assert waiting(feed) == [(1, "positive"), (3, "positive")]
    feed.put("2.ndjson", {"id": 3, "v": 3}, {"id": 4, "v": -4}, {"id": 5, "v": 5})  # a file of another size
    feed.load()
    assert (feed.ids, waiting(feed)) == ([2, 3, 5], [(1, "positive"), (4, "positive")])
    feed.put("3.ndjson", {"id": 6, "v": -6})
    with pytest.raises(KeyboardInterrupt):
        feed.run(dies_after(Step.SET_ASIDE))
    feed.decide("accept")  # which ends the open slice
    assert waiting(feed) == [(1, "positive"), (4, "positive")]
    feed.load()
    assert (feed.ids, waiting(feed)) == ([2, 3, 5], [(1, "positive"), (4, "positive"), (6, "positive")])


@pytest.mark.full
@pytest.mark.parametrize("table_format", ["delta", "iceberg", "parquet"])
@pytest.mark.parametrize("whom", ["client", "group"])
def test_a_killed_process_leaves_each_row_once(make_feed: MakeFeed, table_format: str, whom: str) -> None:
    feed = make_feed(source=SOURCE, target={"format": table_format}, rules=[POSITIVE])
    feed.put("1.ndjson", {"id": 1, "v": 1}, {"id": 2, "v": -2})
    feed.load()
    for number, step in enumerate((Step.SET_ASIDE, Step.WRITTEN, Step.VERIFIED), 2):
        feed.put(f"{number}.ndjson", {"id": 10 * number, "v": 1}, {"id": 10 * number + 1, "v": -1})
        crash(feed, step, whom=whom)
        feed.load()
        assert feed.ids == [1, *range(20, 10 * number + 1, 10)]
        assert waiting(feed) == [
            (2, "positive"),
            *((id_, "positive") for id_ in range(21, 10 * number + 2, 10)),
        ]
    assert sum(entry.rejected for entry in feed.entries) == 4


@pytest.mark.full
def test_a_reset_that_replaces_empties_the_table_of_rejected_rows(make_feed: MakeFeed) -> None:
    feed = make_feed(source=SOURCE, rules=[POSITIVE])
    feed.put("1.ndjson", {"id": 1, "v": -1}, {"id": 2, "v": 2})
    feed.load()
    feed.define(rules=[POSITIVE | {"expect": "v > -10"}])
    feed.decide("reset", "--replace")
    feed.load()
    assert (feed.ids, waiting(feed)) == ([1, 2], [])


@pytest.mark.full
def test_a_promote_swaps_the_rejected_rows_of_its_range(make_feed: MakeFeed) -> None:
    source = {**SOURCE, "path": "./landing", "schema": "id long, v long, s string, d date"}
    feed = make_feed(source=source, rules=[POSITIVE])
    feed.put("d=2026-01-01/1.ndjson", {"id": 1, "v": -1}, {"id": 2, "v": 2})
    feed.put("d=2026-01-02/2.ndjson", {"id": 3, "v": -3}, {"id": 4, "v": 4})
    feed.load()
    feed.define(rules=[POSITIVE | {"expect": "v > -2"}])
    replay = ("--start", "2026-01-01", "--end", "2026-01-02", "--column", "d", "--into", "bronze/again")
    feed.command("replay", NAME, *replay)
    assert waiting(feed) == [(1, "positive"), (3, "positive")]
    feed.command("promote", NAME, "bronze/again", "--reason", "because", "--yes")
    assert (feed.ids, waiting(feed)) == ([1, 2, 4], [(3, "positive")])
    assert not Path(f"{feed.table.parent}/again_rejected").exists()


@pytest.mark.full
def test_a_delete_reaches_rejected_rows_by_purge_and_keeps_them_out_of_a_release(make_feed: MakeFeed) -> None:
    feed = make_feed(source=SOURCE, rules=[POSITIVE])
    rows = [{"id": number, "v": -number, "s": "a"} for number in (1, 2, 3)]
    feed.put("1.ndjson", *rows, {"id": 9, "v": 9, "s": "a"})
    feed.load()
    feed.command("delete", NAME, "--where", "id = 1", "--reason", "because", "--yes")
    assert [row[0] for row in waiting(feed)] == [1, 2, 3]
    feed.command("delete", NAME, "--where", "id = 2", "--purge", "--reason", "because", "--yes")
    assert [row[0] for row in waiting(feed)] == [3]
    feed.put("2.ndjson", {"id": 1, "v": -1, "s": "a"})
    assert feed.load().rejected == 0  # the delete holds it back first
    feed.define(rules=[POSITIVE | {"expect": "v > -10"}])
    assert release(feed, "positive")["released"] == 1
    assert feed.ids == [3, 9]


@pytest.mark.full
def test_a_renamed_dataflow_keeps_its_rejected_rows(make_feed: MakeFeed) -> None:
    feed = make_feed(source=SOURCE, rules=[POSITIVE])
    feed.put("1.ndjson", {"id": 1, "v": -1})
    feed.load()
    feed.command("rename", NAME, "other", "--move-table")
    listed = feed.command("rejected", "other").json
    assert (listed["table"], listed["rows"]) == ("bronze/other_rejected", 1)


@pytest.mark.full
def test_a_condition_that_fails_on_a_row_is_named(make_feed: MakeFeed) -> None:
    feed = make_feed(source=SOURCE, rules=[{"name": "ratio", "expect": "10 / v > 0"}])
    feed.put("1.ndjson", {"id": 1, "v": 0})
    error = feed.fail()
    assert (error.code, "ratio (10 / v > 0)" in error.message) == ("query", True)
    feed.define(rules=[{"name": "ratio", "expect": "try_divide(10, v) > 0"}])
    feed.load()
    assert feed.ids == [1]
    feed.define(rules=[{"name": "gone", "expect": "w > 0"}])
    feed.put("2.ndjson", {"id": 2, "v": 1})
    assert "none of them in 'w > 0'" in feed.fail().message


@pytest.mark.full
def test_each_rule_is_a_check_and_an_alert(make_feed: MakeFeed) -> None:
    feed = make_feed(source=SOURCE, rules=[POSITIVE, {"not_null": ["id"], "on_fail": "fail"}])
    feed.put("1.ndjson", {"id": 1, "v": -1}, {"id": 2, "v": 2})
    checks = {each.check_name: each for each in dagster_run(feed).get_asset_check_evaluations()}
    positive, not_null = checks["rule_positive"], checks["rule_not_null_id"]
    assert (positive.passed, positive.severity, not_null.passed) == (False, AssetCheckSeverity.WARN, True)
    assert {
        name: positive.metadata[name].value for name in ("rows_failed", "rows_checked", "share_failed")
    } == {"rows_failed": 1, "rows_checked": 2, "share_failed": 0.5}
    counted = checks["rows_accounted"]
    assert (counted.passed, counted.metadata["rows_rejected"].value) == (True, 1)
    with DagsterInstance.ephemeral() as instance:
        scan = AlertScan(feed.platform, ("rejected",), instance, NOW, 2)
        (verdict,) = scan.verdicts(feed.dataflow)
    assert verdict.alert is not None
    assert verdict.alert.text == (
        "1 row failed a rule, and is in table bronze/flow_rejected\n  strandline rejected flow"
    )
    assert feed.cli("list").json[0]["rejected"] == 1
    feed.put("2.ndjson", {"id": None, "v": 2})
    with DagsterInstance.ephemeral() as instance:
        failed = dagster_run(feed, instance=instance)
        checks = {each.check_name: each for each in failed.get_asset_check_evaluations()}
    broken = checks["rule_not_null_id"]
    assert (broken.passed, broken.severity) == (False, AssetCheckSeverity.ERROR)
    assert broken.description == "1 row failed; nothing of their slice was loaded"


@pytest.mark.full
def test_rows_that_changed_before_a_slice_was_finished_are_judged_again(make_feed: MakeFeed) -> None:
    source = {"type": "python", "function": "rows:read", "schema": "id long, v long"}
    watermark = {"type": "column", "columns": ["id"]}
    feed = make_feed(source=source, watermark=watermark, rules=[POSITIVE])
    code = "def read(request):\n    return [{'id': 1, 'v': 1}, {'id': 2, 'v': %d}, {'id': 3, 'v': %d}]\n"
    (feed.folder / "rows.py").write_text(code % (-2, 3))
    crash(feed, Step.SET_ASIDE)
    assert waiting(feed) == [(2, "positive")]
    (feed.folder / "rows.py").write_text(code % (2, -3))
    feed.load()
    assert (feed.ids, waiting(feed)) == ([1, 2], [(3, "positive")])
    assert [entry.why for entry in feed.entries] == ["abandon", "run"]


@pytest.mark.full
def test_a_look_back_replaces_the_rejected_rows_of_its_range(make_feed: MakeFeed) -> None:
    feed = make_feed(
        source={"type": "table", "table": "bronze/events", "path": None, "format": None},
        watermark={"type": "column", "columns": ["at"], "backward": {"days": 2}},
        target={"load": "merge_upsert", "merge_keys": ["id"]},
        rules=[{"name": "small", "expect": "value < 10"}],
    )
    events = LakeTable(feed.folder / "lake" / "bronze" / "events")
    events.put(*[event(day, f"2020-01-0{day}", value=day * (1 if day % 2 else 10)) for day in range(1, 5)])
    feed.load()
    assert (feed.ids, waiting(feed)) == ([1, 3], [(2, "small"), (4, "small")])
    events.put(event(4, "2020-01-04", value=4), event(5, "2020-01-05", value=50))
    feed.load()
    assert (feed.ids, waiting(feed)) == ([1, 3, 4], [(2, "small"), (5, "small")])


@pytest.mark.full
def test_keys_that_are_replaced_together_release_no_single_row(make_feed: MakeFeed) -> None:
    files = {"late_files": "ignore"}
    target = {"load": "merge_overwrite", "merge_keys": ["id"]}
    feed = make_feed(source=SOURCE, target=target, rules=[POSITIVE], **files)
    feed.put("1.ndjson", {"id": 1, "v": 1}, {"id": 1, "v": -1}, {"id": 2, "v": 2})
    feed.load()
    assert (feed.rows("id", "v"), waiting(feed)) == ([(1, 1), (2, 2)], [(1, "positive")])
    refused = feed.cli("rejected", NAME, "--release", "positive", "--reason", "because", "--yes")
    assert (refused.code, "replaces all rows of a key" in refused.error["message"]) == (2, True)


@pytest.mark.full
def test_dataflows_that_share_a_table_have_rejected_rows_of_their_own(make_feed: MakeFeed) -> None:
    target = {"table": "bronze/all", "shared": True}
    feed = make_feed(source=SOURCE, target=target, rules=[POSITIVE])
    other = Feed(
        feed.folder, feed.engine, {"source": SOURCE, "target": target, "rules": [POSITIVE]}, name="other"
    )
    for number, loading in enumerate((feed, other), 1):
        loading.put(f"{number}.ndjson", {"id": number, "v": 1}, {"id": -number, "v": -1})
        loading.load()
    lake = feed.folder / "lake/bronze"
    assert rows_in(lake / "all", ("id", "_dataflow")) == [(1, NAME), (2, "other")]
    assert waiting(feed, lake / NAME) == [(-1, "positive")]
    assert waiting(feed, lake / "other") == [(-2, "positive")]


@pytest.mark.full
def test_a_stream_on_sparks_engine_rejects_rows(make_feed: MakeFeed) -> None:
    feed = make_feed(
        source={"schema": "id long, v long, ts timestamp"},
        watermark={"type": "stream", "engine": "structured_streaming", "event_time": "ts", "timeout": "PT5M"},
        rules=[POSITIVE],
    )
    feed.put(
        "1.ndjson",
        {"id": 1, "v": 1, "ts": "2026-01-01T00:00:00Z"},
        {"id": 2, "v": -2, "ts": "2026-01-01T00:01:00Z"},
    )
    feed.load()
    feed.put("2.ndjson", {"id": 3, "v": -3, "ts": "2026-01-01T00:02:00Z"})
    feed.load()
    assert (feed.ids, waiting(feed)) == ([1], [(2, "positive"), (3, "positive")])
