"""Runs that nothing disturbs: what is loaded, in which slices, with which columns, and what is left for the next run."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta

import pytest
from deltalake import DeltaTable

from resources.outcome import Step
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed

pytestmark = pytest.mark.without_jvm

DAY = datetime(2026, 3, 10, tzinfo=UTC)


class TestRuns:
    def test_an_empty_landing_zone_is_fine_and_makes_no_table(self, feed: Feed) -> None:
        outcome = feed.load()
        assert (outcome.status, outcome.rows, feed.newest, feed.table.exists()) == ("nothing", 0, None, False)

    @pytest.mark.needs_spark
    def test_a_run_loads_what_is_above_the_watermark_and_nothing_else(self, feed: Feed) -> None:
        feed.put("date=2026-01-01/b.ndjson", 1, 2)
        feed.put("date=2026-01-02/a.ndjson.gz", 3)
        first = feed.load()
        feed.put("date=2026-01-02/b.ndjson.bz2", 4)
        feed.put("date=2026-01-01/a.ndjson", 99)
        second = feed.load()
        third = feed.load()
        assert [run.status for run in (first, second, third)] == ["committed", "committed", "nothing"]
        assert [(run.rows, run.files) for run in (first, second, third)] == [(3, 2), (1, 1), (0, 0)]
        assert feed.ids == [1, 2, 3, 4], "99 came below the watermark: it is late, not new"
        assert feed.path == "date=2026-01-02/b.ndjson.bz2"

    def test_every_number_is_one_commit_with_its_tag_and_its_entry(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"checkpoint": {"interval_files": 1}})
        for name in "abc":
            feed.put(f"{name}.ndjson", ord(name))
        feed.load()
        entries = feed.entries
        assert [(entry.number, entry.table_version, entry.rows, entry.total_rows) for entry in entries] == [
            (1, 0, 1, 1),
            (2, 1, 1, 2),
            (3, 2, 1, 3),
        ]
        assert {entry.committed_by for entry in entries} == {"Strandline (deltalake)"}
        assert [commit.tags for commit in feed.commits] == [
            {entries[0].app_id: number} for number in (1, 2, 3)
        ]
        assert [json.loads(entry.upper or "") for entry in entries] == [
            {"path": f"{name}.ndjson"} for name in "abc"
        ]

    def test_what_comes_while_a_run_goes_on_is_loaded_by_it(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1)

        def arrive(step: Step, line: str) -> None:
            if step is Step.WRITTEN and feed.path is None:
                feed.put("b.ndjson", 2)

        outcome = feed.run(arrive)
        assert (outcome.error, outcome.files, feed.ids, feed.path) == (None, 2, [1, 2], "b.ndjson")


class TestSlices:
    def test_interval_files_is_a_hard_limit(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"checkpoint": {"interval_files": 2}})
        for number in range(5):
            feed.put(f"{number}.ndjson", number)
        feed.load()
        assert [entry.files for entry in feed.entries] == [2, 2, 1]
        assert feed.ids == list(range(5))

    def test_interval_bytes_is_a_hard_limit_but_one_file_always_fits(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"checkpoint": {"interval_bytes": "100B"}})
        row = len('{"id": 10}\n')
        feed.put("a.ndjson", *range(10, 14))
        feed.put("b.ndjson", *range(20, 20 + 100 // row - 4))
        feed.put("c.ndjson", *range(30, 60))
        feed.put("d.ndjson", 70)
        feed.load()
        assert [entry.files for entry in feed.entries] == [2, 1, 1]
        assert len(feed.ids) == 4 + 5 + 30 + 1

    def test_max_slices_ends_a_run_and_the_next_goes_on(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"checkpoint": {"interval_files": 1}, "max_slices": 2})
        for number in range(3):
            feed.put(f"{number}.ndjson", number)
        assert (feed.load().files, feed.path, feed.ids) == (2, "1.ndjson", [0, 1])
        assert (feed.load().files, feed.path, feed.ids) == (1, "2.ndjson", [0, 1, 2])

    def test_a_young_file_and_all_after_it_in_order_are_left_to_settle(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"settle": "PT1H"})
        now = datetime.now(UTC)
        for name in ("a", "b", "c"):
            feed.put(f"{name}.ndjson", ord(name))
        assert feed.run(now=now).status == "nothing"
        outcome = feed.run(now=now + timedelta(hours=2))
        assert (outcome.status, feed.ids) == ("committed", [ord("a"), ord("b"), ord("c")])

    def test_a_future_file_is_named_by_plan_and_by_the_held_run(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"settle": "PT1M"})
        feed.put("1.ndjson", 1)
        feed.put("2.ndjson", 2)
        os.utime(feed.landing / "1.ndjson", (4e9, 4e9))
        (told,) = feed.load().warnings
        (planned,) = feed.cli("plan", NAME).json
        assert [warning.partition(" lies ")[0] for warning in (told, *planned["warnings"])] == [
            "1.ndjson: its modification time"
        ] * 2
        assert feed.ids == []


class TestColdStart:
    def test_a_filter_narrows_only_the_first_run(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"partition_filter": {"prefix_template": "date=%Y-%m-%d", "lookback": 1}})
        for day in ("08", "09", "10"):
            feed.put(f"date=2026-03-{day}/a.ndjson", int(day))
        assert feed.run(now=DAY).error is None
        assert feed.ids == [9, 10], "look-back 1 is two prefixes"
        for day in ("11", "15", "20"):
            feed.put(f"date=2026-03-{day}/a.ndjson", int(day))
        assert feed.run(now=DAY + timedelta(days=10)).error is None
        assert feed.ids == [9, 10, 11, 15, 20]


class TestScopePartition:
    def test_each_open_partition_has_its_own_watermark(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"scope": "partition"})
        feed.put("region=eu/2.ndjson", 1)
        feed.put("region=us/1.ndjson", 2)
        feed.load()
        feed.put("region=eu/3.ndjson", 3)
        feed.put("region=us/0.ndjson", 99)
        feed.put("region=ap/0.ndjson", 4)
        feed.load()
        assert feed.ids == [1, 2, 3, 4], "99 is late"
        assert feed.watermark == {
            "paths": {"region=ap": "0.ndjson", "region=eu": "3.ndjson", "region=us": "1.ndjson"},
            "closed_before": None,
        }

    def test_the_root_is_a_partition_like_any_other(self, make_feed: MakeFeed) -> None:
        feed = make_feed(
            watermark={
                "scope": "partition",
                "partition_filter": {"prefix_template": "date=%Y-%m-%d", "lookback": 0},
                "close_after": "P1D",
            }
        )
        feed.put("date=2026-03-10/b.ndjson", 1)
        feed.put("date=2026-03-09/b.ndjson", 99)
        feed.put("b.ndjson", 2)
        outcome = feed.run(now=DAY)
        assert (outcome.error, feed.ids) == (None, [1, 2]), "99 lies before the filter"
        assert "1 partition does not fit the time template and never closes: the root" in outcome.warnings
        feed.put("c.ndjson", 3)
        feed.put("date=2026-03-12/b.ndjson", 4)
        later = DAY + timedelta(days=30)
        assert feed.run(now=later).error is None
        names = {"": "c.ndjson", "date=2026-03-12": "b.ndjson"}
        assert feed.watermark == {"paths": names, "closed_before": datetime(2026, 3, 12, tzinfo=UTC)}
        feed.put("a.ndjson", 5)
        answer = feed.cli("late", NAME)
        assert (answer.json["late"], answer.json["verified_up_to"]["paths"]) == (["a.ndjson"], names)
        assert feed.ids == [1, 2, 3, 4, 5]
        assert feed.cli("list").json[0]["watermark"]["paths"] == names
        feed.put("d.ndjson", 6)
        text = '{"paths": {"": "d.ndjson", "date=2026-03-12": "b.ndjson"}, "closed_before": {"__datetime__": "2026-03-12T00:00:00+00:00"}}'
        feed.decide("set", text)
        assert feed.run(now=later).status == "nothing"
        assert feed.cli("late", NAME).json["late"] == []

    def test_a_partition_closes_in_time_and_its_files_are_late(self, make_feed: MakeFeed) -> None:
        feed = make_feed(
            watermark={"scope": "partition", "time_template": "date=%Y-%m-%d", "close_after": "P2D"}
        )
        for day in ("08", "09", "10"):
            feed.put(f"date=2026-03-{day}/a.ndjson", int(day))
        outcome = feed.run(now=DAY + timedelta(hours=12))
        assert outcome.error is None
        assert feed.watermark == {
            "paths": {f"date=2026-03-{day}": "a.ndjson" for day in ("08", "09", "10")},
            "closed_before": datetime(2026, 3, 8, tzinfo=UTC),
        }
        feed.put("date=2026-03-07/z.ndjson", 99)
        feed.put("date=2026-03-08/b.ndjson", 18)
        feed.put("date=2026-03-12/a.ndjson", 12)
        assert feed.run(now=DAY + timedelta(days=2)).error is None
        assert feed.ids == [8, 9, 10, 12, 18]
        assert feed.watermark == {
            "paths": {f"date=2026-03-{day}": "a.ndjson" for day in ("10", "12")},
            "closed_before": datetime(2026, 3, 10, tzinfo=UTC),
        }

    def test_slices_of_partitions_keep_earlier_commits(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"scope": "partition", "checkpoint": {"interval_files": 2}})
        for number, path in enumerate(("p=1/a", "p=1/b", "p=1/c", "p=2/a", "p=3/a")):
            feed.put(f"{path}.ndjson", number)
        feed.load()
        assert feed.ids == [0, 1, 2, 3, 4]
        assert [entry.state()["paths"] for entry in feed.entries] == [
            {"p=1": "b.ndjson"},
            {"p=1": "c.ndjson", "p=2": "a.ndjson"},
            {"p=1": "c.ndjson", "p=2": "a.ndjson", "p=3": "a.ndjson"},
        ]


class TestColumns:
    @pytest.mark.needs_spark
    def test_rows_tell_their_file_their_run_and_when(self, feed: Feed) -> None:
        feed.put("date=2026-01-01/a.ndjson", 1)
        feed.put("date=2026-01-02/b.ndjson.gz", 2)
        before = datetime.now(UTC) - timedelta(milliseconds=1)
        feed.run(run_id="run-7")
        assert feed.rows("id", "_source_file", "_run_id") == [
            (1, "date=2026-01-01/a.ndjson", "run-7"),
            (2, "date=2026-01-02/b.ndjson.gz", "run-7"),
        ]
        assert all(before <= when <= datetime.now(UTC) for (when,) in feed.rows("_ingested_at"))

    @pytest.mark.needs_spark
    def test_without_origin_columns_there_are_only_the_source_s_own(self, make_feed: MakeFeed) -> None:
        feed = make_feed(target={"origin_columns": False})
        feed.put("a.ndjson", 1)
        feed.load()
        assert [column.name for column in DeltaTable(str(feed.table)).schema().fields] == ["id"]

    @pytest.mark.needs_spark
    def test_partition_by_lays_the_table_out_by_these_columns(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": "id long, day date"}, target={"partition_by": ["day"]})
        feed.put("day=2026-01-01/a.ndjson", 1)
        feed.put("day=2026-01-02/a.ndjson", 2)
        feed.load()
        assert DeltaTable(str(feed.table)).metadata().partition_columns == ["day"]
        assert sorted(path.name for path in feed.table.glob("*/day=*")) == [
            "day=2026-01-01",
            "day=2026-01-02",
        ]
        assert feed.ids == [1, 2]

    @pytest.mark.needs_spark
    def test_a_query_may_follow_the_read(self, make_feed: MakeFeed) -> None:
        feed = make_feed(
            source={"schema": "id long, text string"},
            sql="select id, upper(text) as text, _source_file from input where id > 1",
        )
        feed.put("a.ndjson", {"id": 1, "text": "a"}, {"id": 2, "text": "b"})
        feed.load()
        assert feed.rows("id", "text", "_source_file") == [(2, "B", "a.ndjson")]

    @pytest.mark.needs_spark
    def test_a_function_may_follow_the_read_and_is_told_its_batch(self, make_feed: MakeFeed) -> None:
        feed = make_feed(
            transform="tests.support.steps:with_batch", watermark={"checkpoint": {"interval_files": 1}}
        )
        feed.put("a.ndjson", 1)
        feed.put("b.ndjson", 2)
        feed.load()
        assert feed.rows("id", "dataflow", "number", "lower", "upper") == [
            (1, "flow", "1", None, '{"path": "a.ndjson"}'),
            (2, "flow", "2", '{"path": "a.ndjson"}', '{"path": "b.ndjson"}'),
        ]
