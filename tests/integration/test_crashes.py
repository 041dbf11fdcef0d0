"""kill -9 at every step of the protocol, with a real process: every row exactly once, and the right watermark.

Most cells kill the client of a warm Connect server, whose write goes on; one cell a step kills an embedded JVM, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.integration.conftest import MakeFeed
from tests.support.crash_runner import WRITING, crash
from tests.support.feed import Feed
from tests.support.window_feed import event, on_lake, watermark

STEPS = (Step.PLANNED, Step.LIST_KEPT, Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED, Step.APPENDED)
OPEN = (Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED)
"""After these an intent is there and its entry is not, so the next run finishes it."""

SLOW_ROWS = "SELECT * FROM input WHERE coalesce(java_method('java.lang.Thread', 'sleep', 300L), '') <> 'x'"
SLOW = "SELECT id FROM input WHERE coalesce(java_method('java.lang.Thread', 'sleep', 250L), '') <> 'x'"
ONE_A_SLICE = {"type": "path", "checkpoint": {"interval_files": 1}}
BY_PARTITION = {
    "type": "path",
    "scope": "partition",
    "time_template": "date=%Y-%m-%d",
    "close_after": "P30D",
    "checkpoint": {"interval_files": 1},
}


def fill(feed: Feed) -> None:
    feed.put("date=2026-05-30/1.ndjson", 1, 2)
    feed.put("date=2026-05-31/2.ndjson", 3)


def assert_loaded_once(feed: Feed, *more: int) -> None:
    assert feed.ids == sorted([1, 2, 3, *more])
    assert [entry.number for entry in feed.entries] == list(range(1, len(feed.entries) + 1))
    assert feed.entries[-1].total_rows == 3 + len(more)
    assert feed.open_intent is None


@pytest.mark.full
def test_a_write_that_outlives_its_client_lands_once(make_feed: MakeFeed) -> None:
    feed = make_feed(sql=SLOW, target={"origin_columns": False})
    feed.put("1.ndjson", *range(30))
    crash(feed, WRITING)
    assert feed.load().status == "recovered"
    assert feed.ids == list(range(30))
    feed.put("2.ndjson", *range(30, 60))  # as slow again: by then the first writer is over
    feed.load()
    assert feed.ids == list(range(60))


@pytest.mark.parametrize("step", [Step.FENCED, Step.ABANDONED])
def test_a_client_killed_giving_up_keeps_the_files_before_once(make_feed: MakeFeed, step: Step) -> None:
    feed = make_feed(source={"format": "parquet"})
    feed.put_parquet("1.parquet", 1)
    feed.put_damaged("2.parquet")
    crash(feed, step)
    outcome = feed.run()
    assert (outcome.error and outcome.error.code) == "bad_file"
    assert (feed.ids, feed.path) == ([1], "1.parquet")
    feed.put_parquet("2.parquet", 2)
    feed.load()
    assert feed.ids == [1, 2]


@pytest.mark.full
def test_two_runs_that_find_the_same_dead_intent_finish_it_once(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    crash(feed, Step.INTENT_PUT)
    both = [feed.start("run", "flow") for _ in range(2)]
    codes = sorted((process.communicate(timeout=180), process.returncode)[1] for process in both)
    assert codes in ([0, 0], [0, 3])
    assert feed.ids == [1]


@pytest.mark.full
@pytest.mark.parametrize(
    "step",
    [
        Step.ABANDONED,
        *(pytest.param(step, marks=pytest.mark.full) for step in (*STEPS, WRITING, Step.FENCED)),
    ],
)
def test_a_client_killed_as_a_window_fails_records_it(tmp_path: Path, engine: SparkEngine, step: str) -> None:
    """After ABANDONED its number is given up, and nobody has begun the slice without it."""
    made = on_lake(
        tmp_path / "project",
        engine,
        watermark=watermark("2026-05-31", "2026-06-01"),
        target={"load": "append"},
        sql=SLOW_ROWS if step == WRITING else None,
    )
    made.table.add(event(1, "2026-05-31", "a"))
    made.table.add(event(2, "2026-05-31", "b"))
    with made.table.spoilt(2):
        crash(made.feed, step)
        assert made.fail("2026-06-01").code == "failed_units"
        assert (made.feed.ids, list(made.feed.watermark["failed"])) == ([1], ['{"u":"b"}'])
    assert made.run("2026-06-01") == [("2026-05-31", '{"u":"b"}')]
    assert made.feed.ids == [1, 2]
    entries = made.feed.entries
    assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
    assert entries[-1].total_rows == 2


def _cells() -> list[Any]:
    """The client at each step, which `make test` has, then in each slice and scope; and the JVM with it."""
    quick = [pytest.param(step, 1, ONE_A_SLICE, "client", id=f"{step}") for step in STEPS]
    others = [
        pytest.param(step, slice_, scope, whom, id=f"{step}, {name}", marks=pytest.mark.full)
        for step in (*STEPS, WRITING)
        for name, slice_, scope, whom in (
            ("second slice", 2, ONE_A_SLICE, "client"),
            ("partition", 1, BY_PARTITION, "client"),
            ("partition, second slice", 2, BY_PARTITION, "client"),
            ("JVM", 1, ONE_A_SLICE, "group"),
        )
    ]
    return [
        *quick,
        *others,
        pytest.param(WRITING, 1, ONE_A_SLICE, "client", id=WRITING, marks=pytest.mark.full),
    ]


@pytest.mark.each_case
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("step", "slice_", "scope", "whom"), _cells())
def test_a_run_killed_at_any_step_leaves_every_row_once(
    make_feed: MakeFeed, step: str, slice_: int, scope: dict[str, Any], whom: str
) -> None:
    feed = make_feed(watermark=scope, sql=SLOW if step == WRITING else None)
    fill(feed)
    crash(feed, step, slice_, whom)
    feed.put("date=2026-06-01/3.ndjson", 4)
    assert feed.load().status == ("recovered" if step in (*OPEN, WRITING) else "committed")
    assert scope is BY_PARTITION or feed.path == "date=2026-06-01/3.ndjson"
    assert_loaded_once(feed, 4)
    assert feed.load().status == "nothing"


@pytest.mark.full
@pytest.mark.timeout(600)
def test_matrix_a_chain_whose_every_run_is_killed_has_each_row_once(make_feed: MakeFeed) -> None:
    feed = make_feed(watermark=ONE_A_SLICE)
    fill(feed)
    for step in (Step.LIST_KEPT, Step.INTENT_PUT, Step.VERIFIED, Step.INTENT_PUT, Step.WRITTEN):
        crash(feed, step)
    feed.load()
    assert_loaded_once(feed)
