"""The note of the last attempt: how a run ended, since when runs fail, and which warnings were given already."""

from __future__ import annotations

from pathlib import Path

import pytest

from partitions.errors import (
    DataflowHeld,
    NeedsDecision,
    ProviderError,
    SourceError,
    StrandlineError,
    UpstreamNotLoaded,
)
from resources.notes.last_run import last_attempt, note_attempt, note_failed_start, repeated_warnings
from resources.outcome import Outcome
from resources.watermarks.blobs.local import LocalBlobs
from resources.watermarks.log import WatermarkLog

FLOW = "flow"


@pytest.fixture
def log(tmp_path: Path) -> WatermarkLog:
    return WatermarkLog(LocalBlobs(tmp_path / "state"))


def ended(log: WatermarkLog, error: StrandlineError | None = None) -> None:
    note_attempt(log, Outcome(FLOW, "run-1", {}, 0, error=error))


def test_without_any_run_nothing_is_known(log: WatermarkLog) -> None:
    assert last_attempt(log, FLOW) is None


def test_a_run_that_failed_before_any_entry_is_known_with_its_error(log: WatermarkLog) -> None:
    ended(log, SourceError("no such bucket", choices=["strandline doctor"]))
    found = last_attempt(log, FLOW)
    assert found is not None
    assert (found.status, found.failing_since, found.run_id) == ("failed", found.time, "run-1")
    assert found.error == {"code": "source", "message": "no such bucket", "choices": ["strandline doctor"]}
    assert log.newest(FLOW) is None


def test_runs_fail_since_the_first_of_those_that_failed_one_after_the_other(log: WatermarkLog) -> None:
    ended(log, SourceError("down"))
    first = last_attempt(log, FLOW)
    for error in (DataflowHeld("another run"), UpstreamNotLoaded("above"), NeedsDecision("lost")):
        ended(log, error)
        found = last_attempt(log, FLOW)
        assert first
        assert found
        assert found.failing_since == first.time
    ended(log)
    found = last_attempt(log, FLOW)
    assert found
    assert (found.status, found.error, found.failing_since) == ("nothing", None, None)


def test_a_run_that_was_held_or_skipped_has_not_failed(log: WatermarkLog) -> None:
    for error, status in ((DataflowHeld("another run"), "held"), (UpstreamNotLoaded("above"), "skipped")):
        ended(log, error)
        found = last_attempt(log, FLOW)
        assert found
        assert (found.status, found.failing_since) == (status, None)


def test_a_store_that_refuses_the_note_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file, not a folder")
    log = WatermarkLog(LocalBlobs(tmp_path / "state"))
    ended(log)
    ended(log, SourceError("down"))
    assert repeated_warnings(log, FLOW, ["a warning"]) == frozenset()


def test_a_store_that_has_just_failed_is_not_asked_again(log: WatermarkLog) -> None:
    ended(log)
    ended(log, ProviderError("down"))
    found = last_attempt(log, FLOW)
    assert found
    assert found.status == "nothing"


@pytest.mark.parametrize("text", ['{"x": 1}', "[]", "no JSON", '{"time": 1}'])
def test_a_note_that_does_not_read_is_none(log: WatermarkLog, text: str) -> None:
    log.put_over(FLOW, "notes", "attempt.json", text.encode())
    assert last_attempt(log, FLOW) is None


def test_a_run_that_never_came_to_its_loop_is_noted_with_the_state_as_it_is(log: WatermarkLog) -> None:
    outcome = note_failed_start(log, FLOW, SourceError("a variable is not set"))
    assert (outcome.status, outcome.newest, outcome.before) == ("failed", None, {})
    found = last_attempt(log, FLOW)
    assert found
    assert found.error
    assert found.error["message"] == "a variable is not set"


def test_a_warning_is_given_once_whatever_it_counts_and_names_as_a_sample(log: WatermarkLog) -> None:
    first = "3 of 10 names do not start with a time (such as 'a.json')"
    again = "1 of 2 names do not start with a time (such as 'b.json')"
    assert repeated_warnings(log, FLOW, [first]) == frozenset()
    assert repeated_warnings(log, FLOW, [again]) == {again}
    assert repeated_warnings(log, FLOW, []) == frozenset()
    assert repeated_warnings(log, FLOW, [first, "another"]) == {first}
    assert repeated_warnings(log, FLOW, [again, "another"]) == {again, "another"}


def test_a_warning_about_another_window_is_another_warning(log: WatermarkLog) -> None:
    first, other = (
        f"abstinence left a gap that no run has read: [2026-01-0{day}T00:00:00+00:00, 2026-01-09)"
        for day in (1, 2)
    )
    assert repeated_warnings(log, FLOW, [first]) == frozenset()
    assert repeated_warnings(log, FLOW, [first, other]) == {first}
