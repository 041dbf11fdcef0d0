"""The sensor requests a run if and only if the committed state leaves files to load."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dagster import DagsterInstance, DagsterRun, DagsterRunStatus
from dagster._core.test_utils import create_run_for_test

from partitions.errors import SourceError
from platform_assets.factory.cursor import SensorCursor
from platform_assets.factory.jobs import dataflow_job
from platform_assets.factory.kinds.path import new_files_sensor
from platform_assets.factory.kinds.path.new_files_sensor import files_sensor
from resources.dagster.run_holder import HOLDER_TAG
from resources.dagster.run_tags import DATAFLOW_TAG
from resources.listing import Budget
from resources.watermarks.holder import current_holder
from tests.support.ticks import Ticker, flow_of, requested_run, ticks

RUN = "12345678-0000-4000-8000-000000000000"


@pytest.fixture
def make_ticker(tmp_path: Path) -> Iterator[Callable[..., Ticker]]:
    with DagsterInstance.ephemeral() as instance:

        def make(**definition: Any) -> Ticker:
            return Ticker(
                tmp_path,
                instance,
                flow_of(**definition),
                lambda flow, platform, names, now: files_sensor(
                    flow, platform, names, dataflow_job(flow, names), now
                ),
            )

        yield make


@pytest.fixture
def ticker(make_ticker: Callable[..., Ticker]) -> Ticker:
    return make_ticker()


def test_an_empty_landing_zone_asks_for_nothing(ticker: Ticker) -> None:
    assert ticker.tick() == "no file is above the watermark (1 listing call)"


def test_a_tick_says_that_settle_holds_new_files_back(make_ticker: Callable[..., Ticker]) -> None:
    ticker = make_ticker(watermark={"type": "path", "settle": "P3650D"})
    ticker.put("a.ndjson", "b.ndjson")
    assert ticker.tick() == "2 new files are held back by settle (1 listing call)"


def test_one_run_is_asked_for_any_number_of_new_files(ticker: Ticker) -> None:
    ticker.put("a.ndjson", "b.ndjson", "c.ndjson")
    assert requested_run(ticker.tick()).tags[DATAFLOW_TAG] == "arrivals"


def test_files_at_or_below_the_committed_watermark_ask_for_nothing(ticker: Ticker) -> None:
    ticker.put("a.ndjson", "b.ndjson")
    ticker.commit("b.ndjson")
    assert ticker.tick() == "no file is above the watermark (1 listing call)"


@pytest.mark.parametrize(
    "status",
    [
        DagsterRunStatus.NOT_STARTED,
        DagsterRunStatus.STARTING,
        DagsterRunStatus.STARTED,
        DagsterRunStatus.CANCELING,
    ],
)
def test_a_run_in_flight_asks_for_no_other(ticker: Ticker, status: DagsterRunStatus) -> None:
    ticker.put("a.ndjson")
    run = create_run_for_test(
        ticker.instance, job_name="load_arrivals", status=status, tags={DATAFLOW_TAG: "arrivals"}
    )
    assert ticker.tick() == f"run {run.run_id[:8]} is in flight"


def in_flight_with_a_process_that_is_gone(ticker: Ticker, of: str, status: DagsterRunStatus) -> DagsterRun:
    """A run that has the tag of a run, whose process is gone."""
    gone = current_holder(of).model_copy(update={"started": 1})  # the pid is another process's now
    tags = {DATAFLOW_TAG: "arrivals", HOLDER_TAG: gone.model_dump_json()}
    made: DagsterRun = create_run_for_test(
        ticker.instance, job_name="load_arrivals", run_id=RUN, status=status, tags=tags
    )
    return made


def test_a_run_that_is_executed_again_is_not_judged_by_the_process_of_the_run_before(ticker: Ticker) -> None:
    ticker.put("a.ndjson")
    run = in_flight_with_a_process_that_is_gone(ticker, "the one before", DagsterRunStatus.STARTING)
    assert ticker.tick() == f"run {run.run_id[:8]} is in flight"
    left = ticker.instance.get_run_by_id(run.run_id)
    assert left is not None
    assert left.status == DagsterRunStatus.STARTING


def test_a_run_without_process_is_reported_and_the_next_asked_for(ticker: Ticker) -> None:
    ticker.put("a.ndjson")
    run = in_flight_with_a_process_that_is_gone(ticker, RUN, DagsterRunStatus.STARTED)
    requested_run(ticker.tick())
    left = ticker.instance.get_run_by_id(run.run_id)
    assert left is not None
    assert left.status == DagsterRunStatus.FAILURE


def test_uncommitted_requests_are_repeated_after_doubling_pauses(ticker: Ticker) -> None:
    ticker.put("a.ndjson")
    first = requested_run(ticker.tick())
    ticker.now += 59
    assert ticker.tick() == "attempt 1 did not commit; the next one is in 1 s"
    ticker.now += 1
    second = requested_run(ticker.tick())
    assert second.run_key != first.run_key  # a run key counts once for ever, for failed runs too
    ticker.now += 119
    assert ticker.tick() == "attempt 2 did not commit; the next one is in 1 s"
    ticker.now += 1
    requested_run(ticker.tick())


def test_an_abandoned_bad_file_starts_7_runs_in_two_hours(ticker: Ticker) -> None:
    ticker.put("bad.ndjson")
    keys = ticks(ticker, 120, ticker.abandon)
    assert (len(keys), len(set(keys))) == (7, 7)
    assert ticker.abandon().number == 8


def test_a_good_file_behind_the_bad_changes_nothing_and_before_asks(ticker: Ticker) -> None:
    ticker.put("m.ndjson")
    ticks(ticker, 60, ticker.abandon)
    ticker.put("z.ndjson")
    assert isinstance(ticker.tick(), str)
    ticker.put("c.ndjson")
    requested_run(ticker.tick())


def test_earlier_files_without_commits_are_asked_for_twice_in_a_pause(ticker: Ticker) -> None:
    """Of many partitions each file may be the first; when the engine is down none of them is loaded."""
    times = list[float]()
    for number in range(120):
        ticker.put(f"{500 - number}.ndjson")
        if not isinstance(ticker.tick(), str):
            times.append(ticker.now)
        ticker.now += 60
    assert len(times) <= 10


def test_a_bad_file_that_is_repaired_is_asked_for_at_once(ticker: Ticker) -> None:
    ticker.put("a.ndjson")
    ticks(ticker, 60, ticker.abandon)
    (ticker.landing / "a.ndjson").write_text("{}")
    requested_run(ticker.tick())


def test_a_run_that_commits_files_before_the_bad_one_resets_the_pause(ticker: Ticker) -> None:
    ticker.put("a.ndjson", "bad.ndjson")
    requested_run(ticker.tick())
    ticker.commit("a.ndjson")
    ticker.abandon()
    ticker.now += 1
    requested_run(ticker.tick())
    ticker.abandon()
    ticker.now += 59
    assert ticker.tick() == "attempt 1 did not commit; the next one is in 1 s"


def test_a_decision_resets_the_pause(ticker: Ticker) -> None:
    ticker.put("a.ndjson")
    ticks(ticker, 60, ticker.abandon)
    assert isinstance(ticker.tick(), str)
    ticker.commit(why="accept")
    requested_run(ticker.tick())


def test_a_listing_of_several_ticks_keeps_attempts(ticker: Ticker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_files_sensor, "_BUDGET", Budget(pages=1))
    ticker.put("d=1/a.ndjson", "d=2/b.ndjson", "d=3/c.ndjson")
    ticker.commit("d=2/b.ndjson")
    keys = ticks(ticker, 60, ticker.abandon)
    assert len(set(keys)) == len(keys) <= 7


def test_files_that_are_gone_end_the_attempts(ticker: Ticker) -> None:
    ticker.put("a.ndjson")
    requested_run(ticker.tick())
    (ticker.landing / "a.ndjson").unlink()
    ticker.now += 30
    ticker.tick()
    ticker.put("a.ndjson")
    requested_run(ticker.tick())


def test_a_commit_makes_the_next_file_due_at_once(ticker: Ticker) -> None:
    ticker.put("a.ndjson")
    requested_run(ticker.tick())
    ticker.commit("a.ndjson")
    ticker.put("b.ndjson")
    requested_run(ticker.tick())


def test_a_state_that_was_deleted_and_made_again_gets_run_keys_of_its_own(ticker: Ticker) -> None:
    ticker.put("a.ndjson")
    first = requested_run(ticker.tick())
    ticker.now += 86_400
    ticker.cursor = None
    assert requested_run(ticker.tick()).run_key != first.run_key


def test_a_listing_that_fails_fails_the_tick(ticker: Ticker) -> None:
    ticker.landing.rmdir()
    with pytest.raises(SourceError):
        ticker.tick()


def test_the_cursor_stays_under_a_kilobyte_and_one_that_does_not_read_starts_empty(ticker: Ticker) -> None:
    ticker.put(f"{'x' * 200}.ndjson")
    requested_run(ticker.tick())
    assert len(ticker.cursor or "") < 1000
    assert SensorCursor.read("not JSON") == SensorCursor.read('{"unknown": 1}') == SensorCursor()


def test_a_file_that_was_released_asks_for_a_run_and_one_in_quarantine_does_not(ticker: Ticker) -> None:
    ticker.put("a.ndjson", "b.ndjson")
    ticker.commit("b.ndjson")
    ticker.set_aside("a.ndjson", released=False)
    assert ticker.tick() == "no file is above the watermark (1 listing call)"
    ticker.set_aside("a.ndjson", released=True)
    requested_run(ticker.tick())


def test_only_unloaded_files_ask_for_a_run_with_tracking_set(make_ticker: Callable[..., Ticker]) -> None:
    ticker = make_ticker(watermark={"type": "path", "tracking": "set"})
    ticker.put("a.ndjson", "m.ndjson")
    first = requested_run(ticker.tick())
    ticker.commit("a.ndjson", "m.ndjson")
    assert ticker.tick() == "no file is above the watermark (1 listing call)"
    ticker.put("b.ndjson")
    assert requested_run(ticker.tick()).run_key != first.run_key


def test_names_that_no_run_loads_are_told_on_the_page_once_they_change(ticker: Ticker) -> None:
    (ticker.landing / "b.csv").write_text("id")
    told = "skipped 'b.csv': names of this source's files end in"
    assert told in ticker.tick()
    (check,) = ticker.events
    assert told in check.description
    assert told in ticker.tick()
    assert ticker.events == []
    (ticker.landing / "c.csv").write_text("id")
    assert "skipped 'b.csv', 'c.csv'" in ticker.tick()
    (check,) = ticker.events
    assert "skipped 'b.csv', 'c.csv'" in check.description
