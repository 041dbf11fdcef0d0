"""The sensor asks for a run exactly when the committed watermark says that there is something to load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import (
    DagsterInstance,
    DagsterRunStatus,
    RunRequest,
    SensorResult,
    SkipReason,
    build_sensor_context,
)
from dagster._core.test_utils import create_run_for_test

from partitions.dataflow import Dataflow
from partitions.errors import SourceError
from platform_assets.factory.jobs import dataflow_job
from platform_assets.factory.sensors import Cursor, dataflow_sensor
from resources.io_managers import DATAFLOW_TAG, HOLDER_TAG
from resources.loop.holder import this_process
from resources.places import Place
from resources.platform import Platform
from resources.spark import SparkEngine
from resources.watermarks.entry import Entry, new_id, utc_now

FLOW = Dataflow.model_validate(
    {
        "name": "arrivals",
        "source": {"type": "files", "path": "landing", "format": "ndjson"},
        "watermark": {"type": "path"},
    }
)


class Ticker:
    """A sensor with its landing zone, its clock and the cursor that Dagster would keep."""

    def __init__(self, root: Path, instance: DagsterInstance) -> None:
        self.landing = root / "landing"
        self.landing.mkdir()
        self.instance = instance
        self.now = 1_700_000_000.0
        self.cursor: str | None = None
        self.platform = Platform(
            Place(str(root / "state")),
            Place(str(root / "lake")),
            SparkEngine(),
            lambda flow: Place(str(self.landing)),
        )
        self.sensor = dataflow_sensor(FLOW, self.platform, dataflow_job(FLOW), lambda: self.now)

    def tick(self) -> RunRequest | str:
        """The run that is asked for, or why none is."""
        result = self.sensor(build_sensor_context(instance=self.instance, cursor=self.cursor))
        assert isinstance(result, SensorResult)
        self.cursor = result.cursor
        if result.run_requests:
            (request,) = result.run_requests
            return request
        assert isinstance(result.skip_reason, SkipReason)
        return str(result.skip_reason.skip_message)

    def commit(self, path: str) -> None:
        """What a run that succeeded leaves."""
        last = self.platform.log.newest(FLOW.name)
        number = last.number if last else 0
        entry = Entry(
            id=new_id(),
            number=number + 1,
            watermark=json.dumps({"path": path}),
            why="run",
            time=utc_now(),
            fingerprint=FLOW.fingerprint,
            kind="path",
            app_id="a",
        )
        self.platform.log.append(FLOW.name, entry, expected=number)


@pytest.fixture
def ticker(tmp_path: Path) -> Iterator[Ticker]:
    with DagsterInstance.ephemeral() as instance:
        yield Ticker(tmp_path, instance)


def asked(answer: RunRequest | str) -> RunRequest:
    assert isinstance(answer, RunRequest), answer
    return answer


def test_an_empty_landing_zone_asks_for_nothing(ticker: Ticker) -> None:
    assert ticker.tick() == "no file is above the watermark (1 listing calls)"


def test_one_run_is_asked_for_however_many_files_are_new_and_it_carries_the_dataflow_s_tag(
    ticker: Ticker,
) -> None:
    for name in "abc":
        (ticker.landing / f"{name}.ndjson").touch()
    assert asked(ticker.tick()).tags[DATAFLOW_TAG] == "arrivals"


def test_files_at_or_below_the_committed_watermark_ask_for_nothing(ticker: Ticker) -> None:
    (ticker.landing / "a.ndjson").touch()
    (ticker.landing / "b.ndjson").touch()
    ticker.commit("b.ndjson")
    assert ticker.tick() == "no file is above the watermark (1 listing calls)"


@pytest.mark.parametrize(
    "status",
    [
        DagsterRunStatus.NOT_STARTED,
        DagsterRunStatus.STARTING,
        DagsterRunStatus.STARTED,
        DagsterRunStatus.CANCELING,
    ],
)
def test_while_a_run_of_the_dataflow_is_in_flight_no_other_is_asked_for(
    ticker: Ticker, status: DagsterRunStatus
) -> None:
    (ticker.landing / "a.ndjson").touch()
    run = create_run_for_test(
        ticker.instance, job_name="load_arrivals", status=status, tags={DATAFLOW_TAG: "arrivals"}
    )
    assert ticker.tick() == f"run {run.run_id[:8]} is in flight"


def test_a_run_whose_process_is_gone_is_reported_as_failed_and_the_next_one_asked_for(ticker: Ticker) -> None:
    (ticker.landing / "a.ndjson").touch()
    gone = this_process("x").model_copy(update={"started": 1})  # the pid is another process's now
    tags = {DATAFLOW_TAG: "arrivals", HOLDER_TAG: gone.model_dump_json()}
    run = create_run_for_test(
        ticker.instance, job_name="load_arrivals", status=DagsterRunStatus.STARTED, tags=tags
    )
    asked(ticker.tick())
    left = ticker.instance.get_run_by_id(run.run_id)
    assert left is not None
    assert left.status == DagsterRunStatus.FAILURE


def test_what_was_asked_for_and_not_committed_is_asked_for_again_after_a_pause_that_doubles(
    ticker: Ticker,
) -> None:
    (ticker.landing / "a.ndjson").touch()
    first = asked(ticker.tick())
    ticker.now += 59
    assert ticker.tick() == "attempt 1 did not commit; the next one is in 1 s"
    ticker.now += 1
    second = asked(ticker.tick())
    assert second.run_key != first.run_key  # a run key counts once for ever, for failed runs too
    ticker.now += 119
    assert ticker.tick() == "attempt 2 did not commit; the next one is in 1 s"
    ticker.now += 1
    asked(ticker.tick())


def test_the_pause_between_attempts_never_exceeds_an_hour(ticker: Ticker) -> None:
    cursor = Cursor()
    for _ in range(30):
        cursor = cursor.next_attempt("same", 0.0)
    assert (cursor.attempt, cursor.pause_until) == (30, 3600.0)


def test_a_commit_makes_the_next_file_due_at_once(ticker: Ticker) -> None:
    (ticker.landing / "a.ndjson").touch()
    asked(ticker.tick())
    ticker.commit("a.ndjson")
    (ticker.landing / "b.ndjson").touch()
    asked(ticker.tick())


def test_a_state_that_was_deleted_and_made_anew_gets_run_keys_of_its_own(ticker: Ticker) -> None:
    (ticker.landing / "a.ndjson").touch()
    first = asked(ticker.tick())
    ticker.now += 86_400
    ticker.cursor = None
    assert asked(ticker.tick()).run_key != first.run_key


def test_a_listing_that_fails_fails_the_tick(ticker: Ticker) -> None:
    ticker.landing.rmdir()
    with pytest.raises(SourceError):
        ticker.tick()


def test_the_cursor_stays_under_a_kilobyte_and_one_that_does_not_read_starts_anew(ticker: Ticker) -> None:
    (ticker.landing / f"{'x' * 200}.ndjson").touch()
    asked(ticker.tick())
    assert len(ticker.cursor or "") < 1000
    assert Cursor.read("not JSON") == Cursor.read('{"unknown": 1}') == Cursor()
