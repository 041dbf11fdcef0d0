"""The last attempt, where Dagster keeps runs: what no note tells is asked there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import DagsterInstance, DagsterRunStatus, Failure, RunsFilter, job, op

from partitions.errors import SourceError
from resources.dagster.run_history import RunHistory
from resources.dagster.run_holder import HOLDER_TAG
from resources.dagster.run_tags import DATAFLOW_TAG
from resources.notes.last_run import last_attempt, note_attempt, noted_look
from resources.outcome import Outcome
from resources.watermarks.blobs.local import LocalBlobs
from resources.watermarks.holder import current_holder
from resources.watermarks.log import WatermarkLog
from tests.unit.platform_assets.cli.test_cli_list import intent

FLOW = "flow"
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@op
def fails() -> None:
    raise Failure("connections.erp.password: expected the environment variable PW to be set")


@op
def works() -> None:
    return


@job
def failing() -> None:
    fails()


@job
def working() -> None:
    works()


@pytest.fixture
def log(tmp_path: Path) -> WatermarkLog:
    return WatermarkLog(LocalBlobs(tmp_path))


@pytest.fixture
def dagster() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as instance:
        yield instance


def test_a_run_that_failed_early_is_known_from_dagster(log: WatermarkLog, dagster: DagsterInstance) -> None:
    note_attempt(log, Outcome(FLOW, "earlier", {}, 0))
    failing.execute_in_process(
        instance=dagster, raise_on_error=False, tags={DATAFLOW_TAG: FLOW}, run_config=QUIET
    )
    attempt = RunHistory(log, dagster).last(FLOW, None)
    assert attempt is not None
    assert (attempt.status, attempt.failing_since) == ("failed", attempt.time)
    assert attempt.error == {
        "code": "dagster",
        "message": "connections.erp.password: expected the environment variable PW to be set",
        "choices": ["strandline run flow"],
    }
    assert RunHistory(log, dagster).last("other", None) is None


def test_a_runs_note_wins_over_dagsters_record(log: WatermarkLog, dagster: DagsterInstance) -> None:
    run = failing.execute_in_process(
        instance=dagster, raise_on_error=False, tags={DATAFLOW_TAG: FLOW}, run_config=QUIET
    )
    note_attempt(log, Outcome(FLOW, run.run_id, {}, 0, error=SourceError("the bucket is gone")))
    attempt = RunHistory(log, dagster).last(FLOW, None)
    assert attempt is not None
    assert (attempt.status, attempt.error and attempt.error["message"]) == ("failed", "the bucket is gone")


def test_a_run_that_left_no_note_was_no_attempt(log: WatermarkLog, dagster: DagsterInstance) -> None:
    working.execute_in_process(instance=dagster, tags={DATAFLOW_TAG: FLOW}, run_config=QUIET)
    assert RunHistory(log, dagster).last(FLOW, None) is None


@pytest.mark.parametrize(("pid", "status"), [(None, "running"), (0, "running"), (2**22 + 1, "died")])
def test_a_run_in_progress_is_shown_and_a_run_whose_process_is_gone_has_died(
    log: WatermarkLog, dagster: DagsterInstance, pid: int | None, status: str
) -> None:
    run = dagster.create_run_for_job(working, tags={DATAFLOW_TAG: FLOW}, status=DagsterRunStatus.STARTED)
    if pid is not None:
        here = current_holder(run.run_id)
        holder = here.model_copy(update={"pid": pid}) if pid else here
        dagster.add_run_tags(run.run_id, {HOLDER_TAG: holder.model_dump_json()})
    assert dagster.get_runs(RunsFilter(tags={DATAFLOW_TAG: FLOW}))
    attempt = RunHistory(log, dagster).last(FLOW, None)
    assert attempt is not None
    assert (attempt.status, attempt.error is None) == (status, status != "died")


@pytest.mark.parametrize("status", [DagsterRunStatus.STARTING, DagsterRunStatus.STARTED])
@pytest.mark.parametrize(
    "before",
    ["a failed run without a note", "a note of a failure", "a slice that died", "a note of success", None],
)
def test_of_a_dataflow_with_a_run_in_flight_the_last_attempt_that_ended_counts(
    log: WatermarkLog, dagster: DagsterInstance, before: str | None, status: DagsterRunStatus
) -> None:
    if before == "a failed run without a note":
        failing.execute_in_process(
            instance=dagster, tags={DATAFLOW_TAG: FLOW}, raise_on_error=False, run_config=QUIET
        )
    elif before == "a slice that died":
        gone = current_holder(None).model_copy(update={"pid": 2**22 + 1})
        log.put_intent(intent(1, gone, "2026-05-31T00:00:00.000+00:00").model_copy(update={"dataflow": FLOW}))
    elif before is not None:
        error = SourceError("away") if before == "a note of a failure" else None
        note_attempt(log, Outcome(FLOW, "earlier", {}, 0, error=error))
    dagster.create_run_for_job(working, tags={DATAFLOW_TAG: FLOW}, status=status)
    history = RunHistory(log, dagster)
    assert (history.last(FLOW, None) or pytest.fail("none")).status in ("queued", "running")
    ended = history.last_ended(FLOW, None)
    expected = {"a slice that died": "died", "a note of success": "nothing", None: None}.get(before, "failed")
    assert (ended.status if ended else None) == expected


def test_a_run_in_flight_hides_no_failures(log: WatermarkLog, dagster: DagsterInstance) -> None:
    note_attempt(log, Outcome(FLOW, "earlier", {}, 0, error=SourceError("away")))
    note_attempt(log, Outcome(FLOW, "earlier", {}, 0, error=SourceError("away")))
    noted = last_attempt(log, FLOW) or pytest.fail("none")
    dagster.create_run_for_job(working, tags={DATAFLOW_TAG: FLOW}, status=DagsterRunStatus.STARTED)
    attempt = RunHistory(log, dagster).last(FLOW, None) or pytest.fail("none")
    assert (attempt.status, attempt.failures, attempt.failing_since) == ("running", 2, noted.failing_since)


def test_a_run_that_died_counts_as_one_more_failure(log: WatermarkLog) -> None:
    note_attempt(log, Outcome(FLOW, "earlier", {}, 0, error=SourceError("away")))
    gone = current_holder(None).model_copy(update={"pid": 2**22 + 1})
    died = intent(1, gone, "2999-05-31T00:00:00.000+00:00")
    log.put_intent(died.model_copy(update={"dataflow": FLOW}))
    attempt = RunHistory(log).last(FLOW, None) or pytest.fail("none")
    assert (attempt.status, attempt.failures) == ("died", 2)


def test_a_look_is_after_the_run_of_its_note_whatever_the_clocks_say(
    log: WatermarkLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_attempt(log, Outcome(FLOW, "earlier", {}, 0))
    monkeypatch.setattr("resources.notes.last_run.utc_now", lambda: "2020-01-01T00:00:00.000+00:00")

    def look() -> bool:
        raise SourceError("no password")

    with pytest.raises(SourceError):
        noted_look(log, FLOW, look, bool)
    attempt = RunHistory(log).last(FLOW, None) or pytest.fail("none")
    assert (attempt.status, attempt.failed_looks) == ("failed", 1)
