"""The shell that all sensors share; a kind only supplies the look."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from dagster import AddDynamicPartitionsRequest, DagsterInstance, RunRequest

from partitions.checks import UP_TO_DATE
from partitions.errors import ProviderError, SourceError, StrandlineError
from partitions.instants import time_text
from platform_assets.factory.asset_checks import up_to_date_key
from platform_assets.factory.check_results import CheckFinding, DataflowChecks
from platform_assets.factory.cursor import SensorCursor
from platform_assets.factory.jobs import dataflow_job
from platform_assets.factory.sensors import SensorShell
from platform_assets.factory.ticks import NoWork, Tick, Work
from resources.connections.places import Place
from resources.notes.last_run import AttemptNote, last_attempt, note_attempt, note_failed_start
from resources.outcome import Outcome
from tests.support.ticks import Ticker, flow_of, requested_run


@dataclass
class Toy:
    """A kind whose ticks find the work that a test sets."""

    result: NoWork | Work = field(default_factory=lambda: NoWork("nothing"))
    resumed: list[str] = field(default_factory=list)
    error: StrandlineError | None = None

    def look(self, tick: Tick) -> NoWork | Work:
        self.resumed.append(tick.resume)
        if self.error is not None:
            raise self.error
        return self.result


@pytest.fixture
def toy() -> Toy:
    return Toy()


@pytest.fixture
def ticker(tmp_path: Path, toy: Toy) -> Iterator[Ticker]:
    with DagsterInstance.ephemeral() as instance:
        yield Ticker(
            tmp_path,
            instance,
            flow_of(),
            lambda flow, platform, names, now: SensorShell("toys", "For tests.", clock=now).build(
                flow, platform, names, dataflow_job(flow, names), toy.look
            ),
        )


def work(ticker: Ticker, digest: str = "x", runs: int = 1, keys: tuple[str, ...] = ()) -> Work:
    def requests(attempt: str) -> list[RunRequest]:
        return [ticker.names.run_request(f"{number}:{attempt}") for number in range(runs)]

    new = [AddDynamicPartitionsRequest("arrivals_units", list(keys))] if keys else []
    return Work(ticker.platform.log.newest(ticker.flow.name), digest, requests, new)


def test_the_name_and_the_interval_are_the_shells(ticker: Ticker) -> None:
    sensor = ticker.sensor.definition()
    assert (sensor.name, sensor.minimum_interval_seconds) == ("arrivals_toys", 30)


def test_a_look_continues_where_the_last_look_stopped(ticker: Ticker, toy: Toy) -> None:
    toy.result = NoWork("more", resume="page 2")
    assert [ticker.tick(), ticker.tick()] == ["more", "more"]
    toy.result = NoWork("nothing")
    ticker.tick()
    ticker.tick()
    assert toy.resumed == ["", "page 2", "page 2", ""]


def test_a_tick_that_only_adds_keys_to_dagster_is_no_attempt(ticker: Ticker, toy: Toy) -> None:
    toy.result = work(ticker, runs=0, keys=("a",))
    assert ticker.tick() == "partitions are added; the next tick requests runs over them"
    assert SensorCursor.read(ticker.cursor).attempts.count == 0
    toy.result = work(ticker)
    requested_run(ticker.tick())
    assert SensorCursor.read(ticker.cursor).attempts.count == 1


def test_entries_that_made_no_progress_keep_the_pause_and_any_other_ends_it(ticker: Ticker, toy: Toy) -> None:
    toy.result = work(ticker)
    requested_run(ticker.tick())
    ticker.abandon()
    toy.result = work(ticker)
    assert ticker.tick() == "attempt 1 did not commit; the next one is in 60 s"
    ticker.commit("a.ndjson")
    toy.result = work(ticker)
    requested_run(ticker.tick())


def test_the_page_says_once_for_each_pause_why_nothing_runs(ticker: Ticker, toy: Toy) -> None:
    toy.result = work(ticker)
    requested_run(ticker.tick())
    assert ticker.events == []
    ticker.tick()
    told, check = ticker.events
    assert (check.check_name, check.passed) == ("up_to_date", False)
    assert check.description.startswith("New data waits: attempt 1 did not commit")
    shown = {name: value.value for name, value in told.metadata.items()}
    assert check.metadata["next_attempt"].value == shown["next_attempt"]
    assert told.asset_key.path == ["bronze", "arrivals"]
    assert shown["why_nothing_runs"].startswith("attempt 1 did not commit")
    assert shown["next_attempt"] > ticker.now
    ticker.tick()
    assert ticker.events == []
    ticker.now += 60
    requested_run(ticker.tick())
    ticker.tick()
    told, check = ticker.events
    assert "attempt 2" in told.metadata["why_nothing_runs"].value
    assert "attempt 2" in check.description


def test_the_check_names_what_is_not_loaded_and_why(ticker: Ticker, toy: Toy) -> None:
    log = ticker.platform.log
    note_attempt(log, Outcome("arrivals", None, {}, 0, error=StrandlineError("file b.ndjson is bad")))
    note = AttemptNote.read(log, "arrivals").run
    assert note is not None
    since = time_text(note.time)
    toy.result = NoWork("no toy is above the watermark")
    ticker.tick()
    (check,) = ticker.events
    assert check.metadata["why"].value == (
        f"runs fail since {since}\n• the last attempt failed: file b.ndjson is bad, since {since}"
    )


def test_nothing_new_is_told_as_a_check_when_it_begins_and_once_a_day(ticker: Ticker, toy: Toy) -> None:
    toy.result = NoWork("no toy is above the watermark")
    ticker.tick()
    (check,) = ticker.events
    assert (check.check_name, check.passed) == ("up_to_date", True)
    assert check.description == "Checked, nothing new: no toy is above the watermark"
    for _ in range(23):
        ticker.now += 3600
        ticker.tick()
        assert ticker.events == []
    ticker.now += 3600
    ticker.tick()
    assert [event.check_name for event in ticker.events] == ["up_to_date"]


def test_after_a_run_that_loaded_something_nothing_new_is_told_again(ticker: Ticker, toy: Toy) -> None:
    ticker.tick()
    toy.result = work(ticker)
    requested_run(ticker.tick())
    ticker.instance.report_runless_asset_event(
        DataflowChecks(ticker.flow, ticker.names).evaluation(
            CheckFinding(UP_TO_DATE, passed=True, description="Loaded: watermark a.ndjson")
        )
    )
    toy.result = NoWork("nothing")
    ticker.tick()
    assert [event.description for event in ticker.events] == ["Checked, nothing new: nothing"]


def test_a_code_server_that_starts_again_tells_nothing_that_dagster_has(ticker: Ticker, toy: Toy) -> None:
    ticker.tick()
    for event in ticker.events:
        ticker.instance.report_runless_asset_event(event)
    again = SensorShell("toys", "For tests.", clock=lambda: ticker.now)
    ticker.sensor = again.build(
        ticker.flow, ticker.platform, ticker.names, dataflow_job(ticker.flow, ticker.names), toy.look
    )
    ticker.tick()
    assert ticker.events == []


def test_a_look_that_has_not_seen_everything_tells_nothing(ticker: Ticker, toy: Toy) -> None:
    toy.result = NoWork("more", resume="page 2")
    ticker.tick()
    assert ticker.events == []


def test_that_event_says_how_the_last_attempt_failed_and_since_when_too(ticker: Ticker, toy: Toy) -> None:
    error = StrandlineError("a file is torn", choices=("strandline plan arrivals",))
    note_failed_start(ticker.platform.log, "arrivals", error)
    toy.result = work(ticker)
    requested_run(ticker.tick())
    ticker.tick()
    told, _ = ticker.events
    assert told.metadata["error"].value == "a file is torn"
    assert told.metadata["what_to_do"].value == "- `strandline plan arrivals`"
    assert told.metadata["failing_since"].value


def failed_checks(ticker: Ticker) -> list[tuple[bool, str]]:
    """Results of ``up_to_date`` that Dagster keeps, newest first."""
    history = ticker.instance.event_log_storage.get_asset_check_execution_history(
        up_to_date_key(ticker.names), limit=10
    )
    evaluations = [record.event.dagster_event.asset_check_evaluation_data for record in history]  # type: ignore[union-attr]
    return [(evaluation.passed, evaluation.description or "") for evaluation in evaluations]


def test_a_look_that_fails_turns_the_check_red_once_until_one_succeeds(ticker: Ticker, toy: Toy) -> None:
    toy.error = SourceError("wrong password", choices=("strandline doctor",))
    for _ in range(3):
        ticker.now += 30
        with pytest.raises(SourceError, match="wrong password"):
            ticker.tick()
    ((passed, description),) = failed_checks(ticker)
    assert not passed
    assert re.fullmatch(r"Looking for new data has failed since .*UTC: wrong password", description)
    attempt = last_attempt(ticker.platform.log, "arrivals")
    assert attempt
    assert (attempt.status, attempt.failed_looks) == ("failed", 3)
    toy.error = None
    ticker.tick()
    assert [(event.passed, event.description) for event in ticker.events] == [
        (True, "Checked, nothing new: nothing")
    ]
    assert last_attempt(ticker.platform.log, "arrivals") is None


@pytest.mark.parametrize("error", [ProviderError("the store is away"), SourceError("no password")])
def test_while_the_store_takes_no_note_the_check_turns_red_once_all_the_same(
    ticker: Ticker, toy: Toy, error: StrandlineError
) -> None:
    ticker.tick()
    assert isinstance(ticker.platform.state, Place)
    state = ticker.platform.state.local
    assert state is not None
    state.write_text("a file, not a folder")
    toy.error = error
    for _ in range(3):
        ticker.now += 30
        with pytest.raises(type(error)):
            ticker.tick()
    ((passed, description),) = failed_checks(ticker)
    assert not passed
    assert re.fullmatch(f"Looking for new data has failed since .*UTC: {error.message}", description)
    state.unlink()
    toy.error = None
    ticker.tick()
    assert [event.passed for event in ticker.events] == [True]


def test_a_failed_look_says_when_the_next_one_is_and_what_to_do(ticker: Ticker, toy: Toy) -> None:
    toy.error = SourceError("wrong password", choices=("strandline doctor",))
    with pytest.raises(SourceError):
        ticker.tick()
    record = ticker.instance.get_latest_asset_check_evaluation_record(up_to_date_key(ticker.names))
    assert record
    assert record.event
    metadata = record.event.dagster_event.asset_check_evaluation_data.metadata  # type: ignore[union-attr]
    assert metadata["what_to_do"].value == "- `strandline doctor`"
    assert metadata["next_attempt"].value == ticker.now + 30
