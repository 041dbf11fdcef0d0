"""Files that come late: found by the sweep, dealt with once and as the policy says, and the watermark never moves for them."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from resources.kinds.path.late import find_late, late_step
from resources.listing import Budget
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from resources.watermarks.compaction import RetentionPolicy
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, NOW, Feed, dies_after

pytestmark = pytest.mark.without_jvm


def sweep(feed: Feed, pages: int | None = None) -> dict[str, Any]:
    """One step of the sweep, with its policy."""
    return late_step(feed.platform, feed.dataflow, NOW, Budget(pages=pages)).as_json()


@pytest.fixture(scope="module")
def loaded_once(tmp_path_factory: pytest.TempPathFactory, engine: SparkEngine) -> Feed:
    """Two files are loaded, and one has come late."""
    made = Feed(tmp_path_factory.mktemp("loaded") / "project", engine)
    made.put("d=1/b.ndjson", 1)
    made.put("d=2/b.ndjson", 2)
    made.load()
    made.put("d=1/a.ndjson", 3)
    return made


@pytest.fixture
def loaded(loaded_once: Feed, tmp_path: Path) -> Feed:
    """A copy of one's own."""
    return loaded_once.copy(tmp_path / "loaded")


class TestIngest:
    def test_a_late_file_is_loaded_once_and_the_watermark_stays(self, loaded: Feed) -> None:
        assert loaded.load().status == "nothing", "a listing above the watermark does not see it"
        step = sweep(loaded)
        assert (step["listed"], step["late"], step["ingested"]) == (3, ["d=1/a.ndjson"], 1)
        assert (loaded.ids, loaded.path) == ([1, 2, 3], "d=2/b.ndjson")
        newest = loaded.entries[-1]
        assert (newest.why, newest.rows, newest.files, newest.total_rows) == ("late", 1, 1, 3)
        again = sweep(loaded)
        assert (again["listed"], again["late"], again["ingested"]) == (3, [], 0)
        assert loaded.ids == [1, 2, 3]

    def test_a_round_that_is_over_says_up_to_where_and_when_nothing_is_missing(self, loaded: Feed) -> None:
        step = sweep(loaded)
        assert (step["complete"], step["verified_up_to"]) == (True, "d=2/b.ndjson")
        assert step["verified_at"] == NOW.isoformat()

    def test_what_the_sweep_has_found_is_also_loaded_by_the_next_run(self, loaded: Feed) -> None:
        assert find_late(loaded.platform, loaded.dataflow, NOW).late[0].path == "d=1/a.ndjson"
        loaded.put("d=3/a.ndjson", 4)
        outcome = loaded.load()
        assert (outcome.late, outcome.files, outcome.rows) == (1, 2, 2)
        assert [entry.why for entry in loaded.entries] == ["run", "late", "run"]
        assert (loaded.ids, loaded.path) == ([1, 2, 3, 4], "d=3/a.ndjson")
        assert outcome.as_json()["late"] == 1

    def test_a_late_file_that_is_gone_again_is_no_late_file(self, loaded: Feed) -> None:
        find_late(loaded.platform, loaded.dataflow, NOW)
        (loaded.landing / "d=1/a.ndjson").unlink()
        assert loaded.load().status == "nothing"

    def test_steps_go_on_where_the_last_one_stopped_and_find_everything(self, make_feed: MakeFeed) -> None:
        feed = make_feed()
        for day in range(6):
            feed.put(f"d={day}/b.ndjson", day)
        feed.load()
        for day in range(5):
            feed.put(f"d={day}/a.ndjson", 10 + day)
        steps: list[dict[str, Any]] = []
        while not steps or not steps[-1]["complete"]:
            steps.append(sweep(feed, pages=2))
        assert len(steps) > 2
        assert sorted(path for step in steps for path in step["late"]) == [
            f"d={day}/a.ndjson" for day in range(5)
        ]
        assert sum(step["listed"] for step in steps) == 11
        assert feed.ids == [0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14]

    def test_a_step_that_died_before_it_was_noted_is_done_again(self, loaded: Feed) -> None:
        loaded.put("d=1/0.ndjson", 4)

        class Died(BaseException):
            pass

        def observer(step: Step, line: str) -> None:
            if step is Step.INTENT_PUT:
                raise Died

        with pytest.raises(Died):
            late_step(loaded.platform, loaded.dataflow, NOW, observer=observer)
        assert loaded.load().status == "recovered"
        assert loaded.ids == [1, 2, 3, 4]
        assert sweep(loaded)["ingested"] == 0

    def test_files_before_a_filtered_cold_start_are_not_late(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"partition_filter": {"prefix_template": "date=%Y-%m-%d", "lookback": 1}})
        for day in ("05-01", "05-31", "06-01"):
            feed.put(f"date=2026-{day}/b.ndjson", int(day[-2:]))
        feed.load()
        assert feed.ids == [1, 31]
        feed.put("date=2026-05-31/a.ndjson", 77)
        assert sweep(feed)["late"] == ["date=2026-05-31/a.ndjson"]
        assert feed.ids == [1, 31, 77]

    @pytest.mark.full
    @pytest.mark.parametrize("scope", ["global", "partition"])
    @pytest.mark.needs_spark
    def test_files_before_a_filtered_start_are_not_late(self, make_feed: MakeFeed, scope: str) -> None:
        filtered = {"prefix_template": "date=%Y-%m-%d", "lookback": 1}
        feed = make_feed(watermark={"scope": scope, "partition_filter": filtered})
        feed.put("date=2026-05-01/b.ndjson", 77)
        feed.put("date=2026-05-31/b.ndjson", 1)
        feed.put_text("date=2026-06-01/b.ndjson", '{"id": "bad"}\n')
        with pytest.raises(KeyboardInterrupt):
            feed.run(dies_after(Step.INTENT_PUT))
        error = feed.run().error
        assert (error and error.code, feed.ids) == ("bad_record", [1])
        feed.put("date=2026-06-01/b.ndjson", 2)
        feed.load()
        assert sweep(feed)["late"] == []
        assert feed.ids == [1, 2]

    @pytest.mark.parametrize("scope", ["global", "partition"])
    def test_files_of_the_first_day_are_late_when_adopted(self, make_feed: MakeFeed, scope: str) -> None:
        filtered = {"prefix_template": "date=%Y-%m-%d", "lookback": 1}
        feed = make_feed(watermark={"scope": scope, "partition_filter": filtered})
        for day in ("05-01", "05-31", "06-01"):
            feed.put(f"date=2026-{day}/b.ndjson", int(day[-2:]))
        feed.load()
        feed.put("date=2026-05-31/a.ndjson", 77)
        shutil.rmtree(feed.state)
        feed.decide("adopt")
        assert sweep(feed)["late"] == ["date=2026-05-31/a.ndjson"]
        assert feed.ids == [1, 31, 77]

    def test_files_of_a_closed_partition_are_late(self, make_feed: MakeFeed) -> None:
        feed = make_feed(
            watermark={"scope": "partition", "time_template": "date=%Y-%m-%d", "close_after": "P2D"}
        )
        feed.put("date=2026-05-20/b.ndjson", 1)
        feed.put("date=2026-06-01/b.ndjson", 2)
        feed.load()
        feed.put("date=2026-05-20/c.ndjson", 3)
        feed.put("date=2026-06-01/a.ndjson", 4)
        feed.put("date=2026-05-19/a.ndjson", 5)
        assert feed.load().status == "nothing"
        before = feed.watermark
        assert sweep(feed)["ingested"] == 3
        assert (feed.ids, feed.watermark) == ([1, 2, 3, 4, 5], before)

    def test_what_was_ingested_is_remembered_over_many_merges(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"checkpoint": {"interval_files": 1}})
        small = RetentionPolicy(merge_every=2)
        for number in range(7):
            feed.put(f"{number}-b.ndjson", number)
            assert feed.run(retention=small).error is None
        feed.put("3-a.ndjson", 33)
        feed.put("0.ndjson", 44)
        step = sweep(feed)
        assert (step["listed"], step["late"]) == (9, ["0.ndjson", "3-a.ndjson"])
        assert sweep(feed)["late"] == []
        assert feed.ids == [0, 1, 2, 3, 4, 5, 6, 33, 44]
        lists = list((feed.state / "files").iterdir())
        assert len(lists) < 6, "lists that were merged two rounds ago are gone"

    def test_a_reset_forgets_what_was_ingested_before(self, loaded: Feed) -> None:
        sweep(loaded)
        loaded.decide("reset")
        loaded.load()
        assert loaded.ids == [1, 1, 2, 2, 3, 3]
        assert sweep(loaded)["late"] == []


class TestOtherPolicies:
    def test_quarantine_sets_a_late_file_aside_until_it_is_released(self, loaded: Feed) -> None:
        loaded.define(late_files="quarantine")
        step = sweep(loaded)
        assert (step["late"], step["ingested"], step["quarantined"]) == (["d=1/a.ndjson"], 0, 1)
        (listed,) = loaded.cli("list").json
        assert listed["quarantined"] == {
            "count": 1,
            "files": [{"path": "d=1/a.ndjson", "reason": "came late"}],
        }
        assert listed["late"]["count"] == 0
        assert sweep(loaded)["late"] == []
        assert loaded.ids == [1, 2]
        loaded.command("files", "release", NAME, "d=1/a.ndjson")
        assert loaded.load().rows == 1
        assert (loaded.ids, loaded.path) == ([1, 2, 3], "d=2/b.ndjson")
        assert loaded.load().status == "nothing"

    @pytest.mark.parametrize("policy", ["alert", "ignore"])
    def test_alert_and_ignore_leave_it_alone_and_list_it(self, loaded: Feed, policy: str) -> None:
        loaded.define(late_files=policy)
        for _ in range(2):
            assert sweep(loaded)["late"] == ["d=1/a.ndjson"]
        assert loaded.load().status == "nothing"
        assert loaded.ids == [1, 2]
        (listed,) = loaded.cli("list").json
        assert listed["late"] == {"count": 1, "paths": ["d=1/a.ndjson"]}


def test_the_command_goes_one_step_and_tells_it_as_json(loaded: Feed) -> None:
    answer = loaded.command("late", NAME)
    shown = {
        key: answer.json[key]
        for key in ("dataflow", "listed", "late", "ingested", "verified_up_to", "complete")
    }
    assert shown == {
        "dataflow": NAME,
        "listed": 3,
        "late": ["d=1/a.ndjson"],
        "ingested": 1,
        "verified_up_to": "d=2/b.ndjson",
        "complete": True,
    }


def test_a_dataflow_without_state_has_nothing_late(feed: Feed) -> None:
    feed.put("a.ndjson", 1)
    step = sweep(feed)
    assert (step["listed"], step["late"], step["complete"], step["verified_up_to"]) == (0, [], True, None)


def test_the_sweep_does_not_look_above_the_watermark(loaded: Feed) -> None:
    loaded.put("d=2/c.ndjson", 9)
    loaded.put("e/a.ndjson", 10)
    assert sweep(loaded)["late"] == ["d=1/a.ndjson"]
    assert loaded.run(now=NOW + timedelta(days=1)).rows == 2
    assert Path(loaded.path or "").parts[0] == "e"
