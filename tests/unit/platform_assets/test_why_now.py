"""``strandline why NAME``: from the log, and the plan of the next run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from partitions.errors import BadFile, SourceError, StrandlineError, TargetError
from partitions.instants import time_text
from partitions.plan import Plan, Slice
from partitions.why_answer import Reason, WhyAnswer
from platform_assets.cli.gathering import StatusGathering
from platform_assets.cli.list import attempt_in_words
from platform_assets.why_now import NextRun, look_ahead, why_now
from resources.dagster.run_history import RunHistory
from resources.notes.last_run import Attempt, last_attempt, note_attempt, noted_look
from resources.outcome import Outcome
from tests.support.arrivals import NOW, Arrivals

AT = "2026-06-02T00:00:00+00:00"


@pytest.fixture
def arrivals(tmp_path: Path) -> Arrivals:
    return Arrivals(tmp_path)


def why(arrivals: Arrivals) -> WhyAnswer:
    platform, flow = arrivals.platform, arrivals.flow
    return why_now(platform, flow, NOW, RunHistory(platform.log), look_ahead(platform, flow, NOW))


def test_of_a_source_that_was_emptied_not_everything_is_loaded(arrivals: Arrivals) -> None:
    arrivals.put("a.ndjson", "b.ndjson")
    arrivals.commit(["a.ndjson", "b.ndjson"], files=2, total_files=2)
    assert why(arrivals).lines == ["arrivals: everything is loaded: no file is above the watermark"]
    for file in arrivals.landing.iterdir():
        file.unlink()
    answer = why(arrivals)
    warning = (
        f"{arrivals.landing} holds no file, although the dataflow has loaded 2 files from it. If it has moved, correct source.path;"
        " `strandline ledger arrivals --compare` names them"
    )
    assert answer.status == "waits"
    assert answer.summary == "nothing to load now: no file is above the watermark"
    assert [(reason.what, reason.why) for reason in answer.reasons] == [("the source", warning)]


def failed_run(arrivals: Arrivals, error: StrandlineError) -> Attempt:
    """Note a run that has planned to load files, and failed."""
    plan: Plan[Slice] = Plan("arrivals", "path", 1, NOW, "1 file above a.ndjson")
    note_attempt(arrivals.platform.log, Outcome("arrivals", "run-1", {}, 0, plan, error=error))
    attempt = last_attempt(arrivals.platform.log, "arrivals")
    assert attempt
    return attempt


BAD = BadFile("file b.ndjson, line 1: no JSON", path="b.ndjson", choices=["fix it or remove it"])


def test_a_bad_file_that_was_removed_is_a_failure_until_now(arrivals: Arrivals) -> None:
    arrivals.put("a.ndjson")
    arrivals.commit(["a.ndjson"], files=1, total_files=1)
    attempt = failed_run(arrivals, BAD)
    answer = why(arrivals)
    assert (answer.status, answer.choices) == ("up_to_date", ())
    until_now = f"failed until now (since {time_text(attempt.time)}): the source answers now; the next look or run ends it"
    assert answer.lines == [
        "arrivals: everything is loaded: no file is above the watermark",
        f"the last attempt: {until_now}",
    ]
    listed = StatusGathering(arrivals.platform, NOW).status(arrivals.flow)
    assert (listed["last_attempt"]["status"], listed["last_attempt"]["source_answers"]) == ("failed", True)
    assert attempt_in_words(listed["last_attempt"], NOW) == "failed until now"
    assert last_attempt(arrivals.platform.log, "arrivals") == attempt  # neither of them notes anything


def test_a_bad_file_that_is_still_to_be_loaded_fails(arrivals: Arrivals) -> None:
    arrivals.put("a.ndjson")
    arrivals.commit(["a.ndjson"], files=1, total_files=1)
    arrivals.put("b.ndjson")
    failed_run(arrivals, BAD)
    assert why(arrivals).summary.startswith("runs fail since ")
    listed = StatusGathering(arrivals.platform, NOW).status(arrivals.flow)
    assert listed["last_attempt"]["source_answers"] is False


@pytest.mark.parametrize("by_look", [True, False])
@pytest.mark.parametrize(("files", "status"), [([], "up_to_date"), (["a.ndjson"], "due")])
def test_a_source_that_answers_again_failed_until_now(
    arrivals: Arrivals, by_look: bool, files: Sequence[str], status: str
) -> None:
    def look() -> bool:
        raise SourceError("password authentication failed")

    log = arrivals.platform.log
    if by_look:
        note_attempt(log, Outcome("arrivals", None, {}, 0))
        with suppress(SourceError):
            noted_look(log, "arrivals", look, lambda found: found)
    else:
        note_attempt(log, Outcome("arrivals", None, {}, 0, error=SourceError("password")))
    arrivals.put(*files)
    answer = why(arrivals)
    assert answer.status == status
    assert answer.reasons[-1].why.startswith("failed until now (since ")
    listed = StatusGathering(arrivals.platform, NOW).status(arrivals.flow)
    assert listed["last_attempt"]["source_answers"] is True


def test_a_failed_run_counts_again_once_the_looks_after_it_succeed(arrivals: Arrivals) -> None:
    def look() -> bool:
        raise SourceError("password authentication failed")

    attempt = failed_run(arrivals, TargetError("the table is gone"))
    with suppress(SourceError):
        noted_look(arrivals.platform.log, "arrivals", look, lambda found: found)
    answer = why(arrivals)
    assert answer.summary == f"runs fail since {time_text(attempt.time)}"
    assert answer.reasons[0].why == "the table is gone"
    listed = StatusGathering(arrivals.platform, NOW).status(arrivals.flow)
    assert listed["last_attempt"]["error"]["message"] == "the table is gone"


@pytest.mark.parametrize(("idle", "next_try"), [((), AT), (("arrivals_files",), None)])
def test_no_time_is_promised_while_a_sensor_is_off(
    arrivals: Arrivals, idle: Sequence[str], next_try: str | None
) -> None:
    platform, flow = arrivals.platform, arrivals.flow
    note_attempt(platform.log, Outcome("arrivals", None, {}, 0, error=SourceError("no answer")))
    next_run = NextRun(tried_at=AT, idle_sensors=idle)
    failure = why_now(platform, flow, NOW, RunHistory(platform.log), next_run).reasons[0]
    assert (failure.why, failure.next_try) == ("no answer", next_try)
    promise = "; Dagster's sensor, if it is on, tries it again at 2026-06-02 00:00:00 UTC"
    assert failure.line.endswith(promise) == (next_try is not None)


def test_a_long_reason_keeps_its_end_and_is_cut_between_words() -> None:
    line = Reason("a file", f"{'many words ' * 200}the cause").line
    assert line.endswith("many words the cause")
    assert " words … " in line or " many … " in line
    assert Reason("a file", "word " * 150 + "the cause").line.endswith("the cause")
    assert "…" not in Reason("a file", "word " * 150).line
