"""Rows below the retention go, in whole files where statistics prove it, and no load brings them back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dagster import DagsterInstance, RunRequest, build_schedule_context
from deltalake import DeltaTable

from partitions.instants import milliseconds
from partitions.maintenance_periods import RETENTION
from platform_assets.build import build_definitions
from platform_assets.project import load_project
from resources.decisions.maintenance import MaintenanceReport, due_tasks, maintain
from resources.loop import deleting
from resources.watermarks.expiry import Expiry
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, NOW, Feed

DAYS = {day: f"2026-05-{day:02}T12:00:00Z" for day in range(20, 32)}


def put(feed: Feed, name: str, *days: int) -> None:
    feed.put(name, *({"id": day, "at": DAYS[day]} for day in days))


def made(make_feed: MakeFeed, **target: Any) -> Feed:
    """A file of old days, one of old and new days, and one of new days, each a file of the table."""
    retention = {"column": "at", "keep": "P5D"}
    return make_feed(
        source={"schema": "id long, at timestamp"},
        watermark={"checkpoint": {"interval_files": 1}},
        target={"retention": retention, "origin_columns": True, **target},
    )


def load_before_the_limit(feed: Feed) -> None:
    """Load days 20 to 30 on day 24, when all of them stay."""
    for name, days in {"1": (20, 21), "2": (26, 27), "3": (29, 30)}.items():
        put(feed, f"{name}.ndjson", *days)
    outcome = feed.run(now=NOW - timedelta(8))
    assert outcome.error is None, outcome.error


def expire(feed: Feed, now: datetime = NOW) -> MaintenanceReport:
    return maintain(feed.platform, feed.dataflow, [RETENTION], now=now)


@pytest.mark.parametrize(
    "table_format", ["delta", pytest.param("iceberg", marks=pytest.mark.full), "parquet"]
)
def test_old_rows_go_in_one_commit_and_others_stay(make_feed: MakeFeed, table_format: str) -> None:
    feed = made(make_feed, format=table_format)
    load_before_the_limit(feed)
    report = expire(feed)
    ids = feed.rows_by_spark("id") if table_format == "parquet" else feed.rows("id")
    assert ids == [(27,), (29,), (30,)]
    assert report.as_json() == {"retention: rows expired": 3}
    entry = feed.entries[-1]
    assert (entry.why, entry.deleted, entry.total_rows, entry.reason) == (
        "expire",
        3,
        3,
        "at older than 5 days",
    )
    limit = milliseconds(datetime(2026, 5, 27, tzinfo=UTC))
    assert Expiry.of(entry) == Expiry(entry.number, entry.id, {"at": limit})
    (ledger,) = feed.command("ledger", feed.name, "--now", NOW.isoformat()).json
    assert (ledger["retention"]["expired_rows"], ledger["retention"]["before"][:10]) == (3, "2026-05-27")
    assert expire(feed).entry is None, "nothing is left to expire"
    put(feed, "4.ndjson", 31)
    assert feed.load().rows == 1


@pytest.mark.parametrize(
    "table_format",
    [
        "delta",
        pytest.param("iceberg", marks=pytest.mark.full),
        pytest.param("parquet", marks=pytest.mark.full),
    ],
)
def test_whole_files_go_without_a_new_one(make_feed: MakeFeed, table_format: str) -> None:
    feed = made(make_feed, format=table_format)
    load_before_the_limit(feed)
    before = {file.name for file in feed.table.rglob("*.parquet")}
    expire(feed, NOW - timedelta(2))
    assert {file.name for file in feed.table.rglob("*.parquet")} <= before, "no data file is written"
    if table_format == "delta":
        assert (len(DeltaTable(str(feed.table)).file_uris()), feed.ids) == (2, [26, 27, 29, 30])
    assert feed.entries[-1].total_rows == 4


def test_rows_below_it_are_dropped_from_each_slice_and_counted(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    put(feed, "1.ndjson", 20, 26, 27, 31)
    outcome = feed.load()
    assert feed.ids == [27, 31]
    assert "2 rows withheld by the retention" in outcome.warnings
    assert feed.entries[-1].withheld == {0: 2}
    expiry = Expiry.of(feed.entries[-1])
    assert expiry is not None
    assert expiry.before == {"at": milliseconds(datetime(2026, 5, 27, tzinfo=UTC))}
    feed.decide("rewind", "--to", "0", "--replace")
    feed.run(now=NOW + timedelta(1))
    assert feed.ids == [31]


@pytest.mark.full
def test_a_replay_after_an_expiry_asks_for_nothing_and_brings_nothing_back(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    load_before_the_limit(feed)
    expire(feed)
    bounds = ("--start", "2026-05-20", "--end", "2026-05-30", "--column", "at")
    answer = feed.command("replay", feed.name, *bounds, "--replace", "--now", NOW.isoformat())
    assert (answer.json[0]["error"], feed.ids) == (None, [27, 29, 30])


def test_an_expiry_of_the_whole_table_does_not_stop_the_next_run(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    load_before_the_limit(feed)
    expire(feed, NOW + timedelta(20))
    assert feed.ids == []
    put(feed, "4.ndjson", 31)
    assert feed.load().rows == 1


def test_a_removed_retention_brings_nothing_back_until_a_rewind(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    load_before_the_limit(feed)
    expire(feed)
    put(feed, "4.ndjson", 20, 31)
    assert feed.load().rows == 1, "row 20 is withheld"
    feed.define(target={"retention": None})
    assert feed.run().status == "nothing"
    put(feed, "5.ndjson", 22)
    assert feed.load().rows == 1, "later rows of any age are loaded"
    assert feed.ids == [22, 27, 29, 30, 31]
    assert feed.entries[-1].why == "run"
    feed.decide("rewind", "--to", "0", "--replace")
    assert feed.load().error is None
    assert feed.ids == [20, 20, 21, 22, 26, 27, 29, 30, 31]


@pytest.mark.parametrize(
    "dies_at",
    ["_write", pytest.param("verified_commit", marks=pytest.mark.full), "append"],
)
def test_an_expiry_that_dies_is_finished_by_the_next_run(
    make_feed: MakeFeed, monkeypatch: pytest.MonkeyPatch, dies_at: str
) -> None:
    feed = made(make_feed)
    load_before_the_limit(feed)

    def die(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(deleting, dies_at, die)
        with pytest.raises(KeyboardInterrupt):
            expire(feed)
    assert feed.load().status == "nothing"
    assert feed.ids == [27, 29, 30]
    assert [(entry.why, entry.deleted) for entry in feed.entries[3:]] == [("expire", 3)]


def test_a_column_without_a_time_is_refused_by_name(make_feed: MakeFeed) -> None:
    feed = made(make_feed, retention={"column": "id", "keep": "P5D"})
    put(feed, "1.ndjson", 27)
    error = feed.fail()
    assert (
        "target.retention: expected a column of type date, timestamp, timestamp_ntz, found id of type bigint"
        in error.message
    )
    assert feed.newest is None


def test_expiry_is_due_once_a_day(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    load_before_the_limit(feed)
    clock = datetime.now().astimezone()
    assert due_tasks(feed.platform, feed.dataflow, clock) == (RETENTION,)
    expire(feed)
    assert due_tasks(feed.platform, feed.dataflow, clock) == ()
    assert due_tasks(feed.platform, feed.dataflow, clock + timedelta(1, 60)) == (RETENTION,)


def test_files_of_old_days_are_named_and_hold_no_row(make_feed: MakeFeed) -> None:
    feed = make_feed(
        source={"schema": "id long, day date"}, target={"retention": {"column": "day", "keep": "P5D"}}
    )
    feed.put("day=2026-05-26/a.ndjson", 1)
    feed.put("day=2026-05-27/a.ndjson", 2)
    outcome = feed.load()
    assert feed.ids == [2]
    told = "below the retention, so no row of 1 file is loaded: day=2026-05-26/a.ndjson"
    assert told in outcome.warnings
    feed.put("day=2026-05-25/a.ndjson", 3)
    assert feed.command("late", feed.name, "--now", NOW.isoformat()).json["ingested"] == 1
    assert (feed.ids, feed.entries[-1].withheld) == ([2], {0: 1})


def test_a_replay_below_it_is_refused_by_name(make_feed: MakeFeed) -> None:
    feed = make_feed(
        source={"schema": "id long, day date"}, target={"retention": {"column": "day", "keep": "P5D"}}
    )
    feed.put("day=2026-05-27/a.ndjson", 2)
    feed.load()
    for options in (("--column", "day"), ()):
        start, end = ("2026-05-01", "2026-05-27") if options else ("day=2026-05-01", "day=2026-05-27")
        bounds = ("--start", start, "--end", end, *options, "--replace", "--now", NOW.isoformat())
        answer = feed.cli("replay", feed.name, *bounds)
        assert (answer.code, answer.error["code"]) == (2, "below_retention"), answer.out
        assert "(day from 2026-05-27 on, UTC)" in answer.error["message"]


def test_a_retention_alone_has_a_job_and_a_schedule_that_let_rows_expire(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    load_before_the_limit(feed)
    definitions = build_definitions(load_project(feed.folder), feed.platform)
    with DagsterInstance.ephemeral() as instance:
        schedule = definitions.resolve_schedule_def(f"{NAME}_maintenance")
        context = build_schedule_context(instance, scheduled_execution_time=datetime.now(UTC))
        (asked,) = schedule.evaluate_tick(context).run_requests or ()
        assert isinstance(asked, RunRequest)
        job = definitions.resolve_job_def(f"maintain_{NAME}")
        assert job.execute_in_process(run_config=asked.run_config, instance=instance).success
    assert (feed.ids, feed.entries[-1].why) == ([], "expire")


def test_forced_windows_below_it_are_refused(make_feed: MakeFeed) -> None:
    window = {
        "type": "window",
        "definition": [{"name": "day", "type": "datetime", "range": {"from": "2026-05-01", "to": "-"}}],
        "window": "daily",
    }
    retention = {"column": "_window_start", "keep": "P5D"}
    feed = make_feed(
        source={"path": "./landing/{start:%Y-%m-%d}", "schema": "id long", "missing": "empty"},
        watermark=window,
        target={"load": "merge_overwrite", "replace_by_watermark": True, "retention": retention},
    )
    for command in (
        ("run", NAME, "--force", "2026-05-01..2026-05-27"),
        ("replay", NAME, "--start", "2026-05-01", "--end", "2026-05-27", "--replace"),
    ):
        answer = feed.cli(*command, "--now", NOW.isoformat())
        assert (answer.code, answer.error["code"]) == (2, "below_retention"), answer.out


@pytest.mark.parametrize("table_format", ["delta", pytest.param("iceberg", marks=pytest.mark.full)])
def test_rows_of_others_in_a_shared_table_stay(make_feed: MakeFeed, table_format: str) -> None:
    shared = {"shared": True, "table": "bronze/both", "format": table_format}
    feed = made(make_feed, **shared)
    load_before_the_limit(feed)
    source = {"schema": "id long, at timestamp"}
    target = {"load": "append", **shared}
    other = Feed(feed.folder, feed.engine, {"source": source, "target": target}, name="other")
    put(other, "1.ndjson", 20, 31)
    other.load()
    expire(feed)
    assert feed.rows("_dataflow", "id") == [
        ("flow", 27),
        ("flow", 29),
        ("flow", 30),
        ("other", 20),
        ("other", 31),
    ]


def test_rows_without_a_value_stay_in_a_table_partitioned_by_the_column(make_feed: MakeFeed) -> None:
    feed = make_feed(
        source={"schema": "id long, at date"},
        target={
            "format": "iceberg",
            "partition_by": ["at"],
            "retention": {"column": "at", "keep": "P5D"},
        },
    )
    feed.put("1.ndjson", {"id": 1, "at": "2026-05-26"}, {"id": 2, "at": "2026-05-27"}, {"id": 3})
    feed.run(now=NOW - timedelta(10))
    expire(feed)
    assert (feed.rows("id"), feed.entries[-1].deleted) == ([(2,), (3,)], 1)


def test_the_command_lets_rows_expire_by_its_own_now(make_feed: MakeFeed) -> None:
    feed = made(make_feed)
    load_before_the_limit(feed)
    feed.command("maintain", NAME, "--now", NOW.isoformat())
    assert feed.rows("id") == [(27,), (29,), (30,)]
