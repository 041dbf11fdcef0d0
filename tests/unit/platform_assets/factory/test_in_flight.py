"""A run on another machine keeps its dataflow quiet as long as its lease is renewed, and no longer, whatever Dagster believes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dagster import DagsterInstance, DagsterRun, DagsterRunStatus
from dagster._core.test_utils import create_run_for_test

from platform_assets.factory.jobs import dataflow_job
from platform_assets.factory.kinds.path.new_files_sensor import files_sensor
from resources.dagster.run_holder import HOLDER_TAG
from resources.dagster.run_tags import DATAFLOW_TAG
from resources.loop import lease
from resources.watermarks.entry import Holder, Intent, new_id, utc_now
from resources.watermarks.holder import is_alive, process_is_alive
from resources.watermarks.stored_objects import LEASES
from tests.support.ticks import Ticker, flow_of, requested_run

MakeRun = Callable[..., DagsterRun]


def elsewhere(run_id: str) -> Holder:
    return Holder(host="worker-7/boot/space", pid=42, started=1, run_id=run_id)


@pytest.fixture
def ticker(tmp_path: Path) -> Iterator[Ticker]:
    with DagsterInstance.ephemeral() as instance:
        made = Ticker(
            tmp_path,
            instance,
            flow_of(),
            lambda flow, platform, names, now: files_sensor(
                flow, platform, names, dataflow_job(flow, names), now
            ),
        )
        made.put("a.ndjson")
        yield made


@pytest.fixture
def run(ticker: Ticker) -> DagsterRun:
    """A run on another machine that Dagster has as in flight."""
    run_id = "12345678-0000-4000-8000-000000000000"
    tags = {DATAFLOW_TAG: "arrivals", HOLDER_TAG: elsewhere(run_id).model_dump_json()}
    made: DagsterRun = create_run_for_test(
        ticker.instance, job_name="load_arrivals", run_id=run_id, status=DagsterRunStatus.STARTED, tags=tags
    )
    return made


@pytest.fixture
def intent(ticker: Ticker, run: DagsterRun) -> Intent:
    """The intent of number 1, which the run holds."""
    return ticker.platform.log.put_intent(
        Intent(
            id=new_id(),
            number=1,
            dataflow="arrivals",
            kind="path",
            app_id="a",
            before="{}",
            watermark="{}",
            definition={},
            fingerprint="f",
            pinned="p",
            file_list="l",
            holder=elsewhere(run.run_id),
            run_id=run.run_id,
            time=utc_now(),
        )
    )


def renew(ticker: Ticker, intent: Intent, count: int) -> None:
    name = f"{intent.number:010d}-{intent.id}"
    ticker.platform.log.put_over("arrivals", LEASES, name, f"{count} {utc_now()}".encode())


def status(ticker: Ticker, run: DagsterRun) -> DagsterRunStatus:
    stored = ticker.instance.get_run_by_id(run.run_id)
    assert stored is not None
    return stored.status


def test_a_renewed_lease_tells_run_place_and_time(ticker: Ticker, run: DagsterRun, intent: Intent) -> None:
    for count in range(5):
        renew(ticker, intent, count)
        said = str(ticker.tick())
        assert said.startswith("run 12345678 is in flight on worker-7 (process 42), since 20")
        assert ("its lease was renewed (number 1)" in said) == (count > 0)
        ticker.now += 30
    assert status(ticker, run) == DagsterRunStatus.STARTED


def test_a_dead_lease_reports_the_run_and_asks_on(ticker: Ticker, run: DagsterRun, intent: Intent) -> None:
    renew(ticker, intent, 1)
    assert isinstance(ticker.tick(), str)
    ticker.now += lease.PATIENCE_SECONDS - 1
    assert str(ticker.tick()).endswith("its lease (number 1) was not renewed for 19 s")
    ticker.now += 1
    requested_run(ticker.tick())
    assert status(ticker, run) == DagsterRunStatus.FAILURE


def test_an_intent_without_lease_is_watched_too(ticker: Ticker, run: DagsterRun, intent: Intent) -> None:
    assert isinstance(ticker.tick(), str)
    ticker.now += lease.PATIENCE_SECONDS
    requested_run(ticker.tick())


def test_a_run_without_number_has_no_lease_and_says_what_to_do(ticker: Ticker, run: DagsterRun) -> None:
    for _ in range(3):
        said = str(ticker.tick())
        assert said.endswith("If that machine is gone, mark the run as failed in the UI")
        assert "on worker-7" in said
        ticker.now += 3600
    assert status(ticker, run) == DagsterRunStatus.STARTED


def test_a_clock_put_back_begins_to_watch_anew(ticker: Ticker, run: DagsterRun, intent: Intent) -> None:
    renew(ticker, intent, 1)
    ticker.tick()
    ticker.now -= 86_400
    assert isinstance(ticker.tick(), str)
    ticker.now += lease.PATIENCE_SECONDS
    requested_run(ticker.tick())


def test_dagster_decides_only_that_a_run_elsewhere_is_over_never_that_it_is_alive() -> None:
    holder = elsewhere("r")
    assert process_is_alive(holder) is None
    assert is_alive(holder, "i", lambda run_id: True) is None
    assert is_alive(holder, "i", lambda run_id: None) is None
    assert is_alive(holder, "i", lambda run_id: False) is False


def test_list_says_who_holds_since_and_renewed_when(ticker: Ticker, run: DagsterRun, intent: Intent) -> None:
    log = ticker.platform.log
    held = {
        "number": 1,
        "run_id": run.run_id,
        "host": "worker-7",
        "process": 42,
        "since": intent.time,
        "alive": None,
        "renewed": None,
    }
    assert lease.describe_holder(log, "arrivals", None) == held
    log.put_over("arrivals", LEASES, f"0000000001-{intent.id}", b"7 2024-01-01T00:00:00+00:00")
    assert lease.describe_holder(log, "arrivals", None) == held | {"renewed": "2024-01-01T00:00:00+00:00"}
    assert lease.describe_holder(log, "arrivals", ticker.commit("a.ndjson")) is None
