"""The late sensor makes one step of the sweep a tick, reports the result, and requests a run only if there is work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from dagster import AssetCheckEvaluation, AssetObservation, DagsterInstance, DagsterRunStatus
from dagster._core.test_utils import create_run_for_test

from partitions.errors import NeedsDecision
from partitions.instants import time_text
from platform_assets.factory.kinds.path.late import late_job, late_sensor
from resources.dagster.run_options import RunOptions
from resources.dagster.run_tags import DATAFLOW_TAG
from resources.kinds.path import sweep
from resources.listing import Budget
from tests.support.ticks import Ticker, flow_of, requested_run

BEGUN = datetime.fromtimestamp(1_700_000_000, UTC)
"""The clock of the first tick."""

MakeTicker = Callable[..., Ticker]


@pytest.fixture
def make_ticker(tmp_path: Path) -> Iterator[MakeTicker]:
    """``b`` of two days is loaded, and ``a`` of the first has come late."""
    with DagsterInstance.ephemeral() as instance:

        def make(**definition: Any) -> Ticker:
            ticker = Ticker(
                tmp_path,
                instance,
                flow_of(**definition),
                lambda flow, platform, names, now: late_sensor(
                    flow, platform, names, late_job(flow, platform, names, RunOptions()), now
                ),
            )
            ticker.put("d=1/b.ndjson", "d=2/b.ndjson")
            ticker.commit("d=1/b.ndjson", "d=2/b.ndjson")
            ticker.put("d=1/a.ndjson")
            return ticker

        yield make


def check(ticker: Ticker) -> AssetCheckEvaluation:
    """Return the evaluation of the last tick."""
    (evaluation,) = [event for event in ticker.events if isinstance(event, AssetCheckEvaluation)]
    assert (evaluation.asset_key.path, evaluation.check_name) == (["bronze", "arrivals"], "late_files")
    return evaluation


def values(event: AssetCheckEvaluation | AssetObservation) -> dict[str, Any]:
    return {key: value.value for key, value in event.metadata.items()}


def test_under_ingest_a_late_file_asks_for_a_run_with_the_dataflow_s_tag(make_ticker: MakeTicker) -> None:
    ticker = make_ticker()
    request = requested_run(ticker.tick())
    assert request.tags[DATAFLOW_TAG] == "arrivals"
    assert request.run_key is not None
    assert request.run_key.startswith("arrivals:late:")
    assert check(ticker).passed is False
    assert values(check(ticker)) == {
        "late_files": 1,
        "policy": "ingest: loaded by the next run",
        "paths": "d=1/a.ndjson",
        "completeness": f"all paths up to d=2/b.ndjson verified at {time_text(BEGUN)}",
    }


def test_a_round_without_late_files_passes_and_says_how_far(make_ticker: MakeTicker) -> None:
    ticker = make_ticker()
    (ticker.landing / "d=1/a.ndjson").unlink()
    assert ticker.tick() == "2 files checked (3 listing calls), 0 late"
    assert check(ticker).passed is True
    (observation,) = [event for event in ticker.events if isinstance(event, AssetObservation)]
    assert observation.asset_key.path == ["watermark", "arrivals"]
    assert values(observation) == {
        "completeness": f"all paths up to d=2/b.ndjson verified at {time_text(BEGUN)}"
    }


@pytest.mark.parametrize(("policy", "passed"), [("alert", False), ("ignore", True)])
def test_only_alert_fails_the_check_and_asks_not(make_ticker: MakeTicker, policy: str, passed: bool) -> None:
    ticker = make_ticker(late_files=policy)
    assert ticker.tick() == "3 files checked (3 listing calls), 1 late"
    assert (check(ticker).passed, values(check(ticker))["late_files"]) == (passed, 1)


def test_under_quarantine_a_run_is_asked_for_too(make_ticker: MakeTicker) -> None:
    requested_run(make_ticker(late_files="quarantine").tick())


def test_a_tick_goes_one_step_and_reports_nothing_in_the_middle_of_a_round(make_ticker: MakeTicker) -> None:
    ticker = make_ticker()
    with patch.object(sweep, "_FOLDER_BUDGET", Budget(pages=1)):
        assert ticker.tick() == "0 files checked (1 listing call), 0 late"
        assert ticker.events == []
        ticker.now += 300
        requested_run(ticker.tick())
        assert values(check(ticker))["completeness"] == "the sweep has not finished a round yet"
        ticker.commit("d=1/a.ndjson", why="late", watermark='{"path": "d=2/b.ndjson"}')
        ticker.now += 300
        assert ticker.tick() == "1 file checked (3 listing calls), 0 late"
    assert values(check(ticker))["completeness"].endswith(f" verified at {time_text(BEGUN)}"), (
        "as of the beginning of the round"
    )


def test_what_a_run_left_is_asked_for_after_a_doubling_pause(make_ticker: MakeTicker) -> None:
    ticker = make_ticker()
    first = requested_run(ticker.tick())
    ticker.now += 59
    assert (
        ticker.tick()
        == "3 files checked (3 listing calls), 1 late; attempt 1 did not handle them; the next one is in 1 s"
    )
    ticker.now += 1
    second = requested_run(ticker.tick())
    assert second.run_key != first.run_key  # a run key counts once for ever, for failed runs too
    ticker.now += 119
    assert isinstance(ticker.tick(), str)
    ticker.now += 1
    requested_run(ticker.tick())


def test_a_bad_late_file_is_tried_once_an_hour_beside_new_files(make_ticker: MakeTicker) -> None:
    ticker = make_ticker()
    numbers = count(3)
    keys = list[str]()
    for _ in range(36):  # three hours
        answer = ticker.tick()
        if not isinstance(answer, str):
            keys.append(str(answer.run_key))
            ticker.abandon()
        ticker.commit(f"d={next(numbers)}/b.ndjson")
        ticker.now += 300
    assert len(set(keys)) == len(keys) <= 8


def test_another_late_file_is_tried_at_once(make_ticker: MakeTicker) -> None:
    ticker = make_ticker()
    for _ in range(12):
        ticker.tick()
        ticker.now += 300
    assert isinstance(ticker.tick(), str)
    ticker.put("d=1/aa.ndjson")
    requested_run(ticker.tick())


def test_while_a_run_of_the_dataflow_is_in_flight_nothing_is_looked_at(make_ticker: MakeTicker) -> None:
    ticker = make_ticker()
    run = create_run_for_test(
        ticker.instance,
        job_name="load_arrivals",
        status=DagsterRunStatus.STARTED,
        tags={DATAFLOW_TAG: "arrivals"},
    )
    assert ticker.tick() == f"run {run.run_id[:8]} is in flight"
    assert ticker.events == []


def test_without_a_state_nothing_is_late(make_ticker: MakeTicker, tmp_path: Path) -> None:
    ticker = make_ticker()
    for file in sorted((tmp_path / "state").rglob("*.json")):
        file.unlink()
    assert ticker.tick() == "0 files checked (0 listing calls), 0 late"


def test_no_file_is_late_under_a_changed_definition(make_ticker: MakeTicker) -> None:
    ticker = make_ticker()
    ticker.commit("d=2/b.ndjson", fingerprint="another")
    with pytest.raises(NeedsDecision, match="its definition has changed"):
        ticker.tick()


def test_a_result_is_told_once_and_again_when_it_is_another_one_or_a_day_old(make_ticker: MakeTicker) -> None:
    ticker = make_ticker(late_files="alert")
    ticker.tick()
    assert values(check(ticker))["late_files"] == 1
    for _ in range(23):
        ticker.now += 3600
        ticker.tick()
        assert ticker.events == []
    ticker.now += 3600
    ticker.tick()
    assert values(check(ticker))["late_files"] == 1
    ticker.put("d=1/aa.ndjson")
    ticker.now += 300
    ticker.tick()
    assert values(check(ticker))["late_files"] == 2


def test_a_code_server_that_starts_again_tells_no_result_that_dagster_has(make_ticker: MakeTicker) -> None:
    ticker = make_ticker(late_files="alert")
    ticker.tick()
    for event in ticker.events:
        ticker.instance.report_runless_asset_event(event)
    job = late_job(ticker.flow, ticker.platform, ticker.names, RunOptions())
    ticker.sensor = late_sensor(ticker.flow, ticker.platform, ticker.names, job, lambda: ticker.now)
    ticker.tick()
    assert ticker.events == []


def test_the_interval_is_five_minutes(make_ticker: MakeTicker) -> None:
    assert timedelta(seconds=make_ticker().sensor.definition().minimum_interval_seconds or 0) == timedelta(
        minutes=5
    )
