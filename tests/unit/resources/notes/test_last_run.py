"""The note of the last attempt: how a run ended, since when runs fail, and which warnings were given already."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from partitions.errors import (
    BadFile,
    DataflowHeld,
    NeedsDecision,
    ProviderError,
    SourceError,
    StrandlineError,
    TargetError,
    UpstreamNotLoaded,
)
from partitions.path.bad_files import CHANGED_WHILE_READ
from partitions.plan import Plan, Slice
from resources.notes.last_run import (
    Attempt,
    last_attempt,
    note_attempt,
    note_failed_start,
    noted_look,
)
from resources.notes.repeated_warnings import repeated_warnings
from resources.outcome import LeftOut, Outcome
from resources.watermarks.blobs.local import LocalBlobs
from resources.watermarks.log import WatermarkLog

FLOW = "flow"


@pytest.fixture
def log(tmp_path: Path) -> WatermarkLog:
    return WatermarkLog(LocalBlobs(tmp_path / "state"))


def ended(log: WatermarkLog, error: StrandlineError | None = None, *, is_replay: bool = False) -> None:
    run_id = "replay-1" if is_replay else "run-1"
    note_attempt(log, Outcome(FLOW, run_id, {}, 0, error=error), is_replay=is_replay)


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


def test_a_replay_is_the_last_run_whether_it_fails_or_not(log: WatermarkLog) -> None:
    ended(log)
    ended(log, SourceError("bad file"), is_replay=True)
    first = last_attempt(log, FLOW)
    assert first
    assert (first.status, first.run_id, first.failing_since) == ("failed", "replay-1", first.time)
    look(log, SourceError("down"))
    look(log)
    assert last_attempt(log, FLOW) == first  # a look for new data reads nothing again
    ended(log, DataflowHeld("another run"))
    ended(log, SourceError("bad file"), is_replay=True)
    again = last_attempt(log, FLOW)
    assert again
    assert (again.failing_since, again.failures) == (first.time, 2)
    ended(log, is_replay=True)
    assert (summary(log), last_attempt(log, FLOW).failures) == (("nothing", None, 0), 0)  # type: ignore[union-attr]


@pytest.mark.parametrize("by_look", [False, True])
@pytest.mark.parametrize("replay_error", [None, SourceError("bad file")])
def test_a_replay_that_succeeds_hides_no_failure_of_runs_or_looks(
    log: WatermarkLog, by_look: bool, replay_error: StrandlineError | None
) -> None:
    (look if by_look else ended)(log, SourceError("down"))
    first = last_attempt(log, FLOW)
    assert first
    if replay_error is not None:
        ended(log, replay_error, is_replay=True)
    before = last_attempt(log, FLOW)
    ended(log, is_replay=True)
    after = last_attempt(log, FLOW)
    assert after
    assert after == before
    assert (after.status, after.failing_since) == ("failed", first.time)
    ended(log)
    assert summary(log) == ("nothing", None, 0)


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


def look(log: WatermarkLog, error: Exception | None = None, *, has_work: bool | None = False) -> None:
    def answer() -> bool | None:
        if error is not None:
            raise error
        return has_work

    with suppress(Exception):
        noted_look(log, FLOW, answer, lambda found: found)


def summary(log: WatermarkLog) -> tuple[str, str | None, int] | None:
    attempt = last_attempt(log, FLOW)
    if attempt is None:
        return None
    return attempt.status, attempt.error["message"] if attempt.error else None, attempt.failed_looks


def test_looks_that_fail_are_counted_since_the_first(log: WatermarkLog) -> None:
    look(log, SourceError("wrong password"))
    first = last_attempt(log, FLOW)
    look(log, SourceError("still wrong"))
    assert summary(log) == ("failed", "still wrong", 2)
    last = last_attempt(log, FLOW)
    assert first
    assert last
    assert (last.failing_since, last.run_id) == (first.time, None)


@pytest.mark.parametrize("has_work", [False, True])
def test_a_look_that_succeeds_ends_the_failure_of_looks(log: WatermarkLog, has_work: bool) -> None:
    ended(log)
    before = last_attempt(log, FLOW)
    look(log, SourceError("down"))
    look(log, has_work=has_work)
    assert last_attempt(log, FLOW) == before


@pytest.mark.parametrize(("has_work", "status"), [(False, "nothing"), (True, "failed")])
def test_a_look_ends_the_failure_of_a_run_that_had_no_source_if_nothing_is_left(
    log: WatermarkLog, has_work: bool, status: str
) -> None:
    ended(log, SourceError("down"))
    look(log, SourceError("down"))
    look(log, has_work=has_work)
    assert (summary(log) or ("",))[0] == status


def test_a_look_that_succeeds_does_not_hide_a_run_that_failed_later_on(log: WatermarkLog) -> None:
    ended(log, TargetError("disk full"))
    failed = last_attempt(log, FLOW)
    look(log, SourceError("down"))
    assert failed
    assert (summary(log), (last_attempt(log, FLOW) or failed).failing_since) == (
        ("failed", "down", 1),
        failed.time,
    )
    look(log)
    assert last_attempt(log, FLOW) == failed


def test_a_run_ends_the_looks_before_it(log: WatermarkLog) -> None:
    look(log, SourceError("down"))
    ended(log)
    assert summary(log) == ("nothing", None, 0)


def test_a_look_that_is_held_or_loses_the_store_has_not_failed(log: WatermarkLog) -> None:
    for error in (DataflowHeld("another run"), ProviderError("down")):
        look(log, error)
        assert last_attempt(log, FLOW) is None
    look(log, ValueError("a bug"))
    assert summary(log) == ("failed", "dataflow flow: ValueError: a bug", 1)


@pytest.mark.parametrize("failed", ["run", "look"])
def test_a_look_that_did_not_ask_the_source_ends_no_failure(log: WatermarkLog, failed: str) -> None:
    (ended if failed == "run" else look)(log, SourceError("down"))
    before = last_attempt(log, FLOW)
    look(log, has_work=None)
    assert last_attempt(log, FLOW) == before


def test_a_failed_look_that_the_store_does_not_take_is_reported_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file, not a folder")
    reported: list[Attempt] = []

    def fails() -> bool:
        raise SourceError("wrong password")

    log = WatermarkLog(LocalBlobs(tmp_path / "state"))
    with pytest.raises(SourceError):
        noted_look(log, FLOW, fails, bool, reported.append)
    assert [(attempt.status, attempt.failed_looks) for attempt in reported] == [("failed", 0)]


@pytest.mark.parametrize(
    ("kind", "code", "is_late", "status"),
    [
        ("path", "bad_file", False, "nothing"),
        ("path", "bad_file", True, "failed"),
        ("path", CHANGED_WHILE_READ, False, "failed"),
        ("window", "bad_file", False, "failed"),
    ],
)
def test_a_look_that_finds_nothing_ends_the_failure_of_a_bad_new_file_that_was_removed(
    log: WatermarkLog, kind: str, code: str, is_late: bool, status: str
) -> None:
    bad = BadFile("file b is bad", path="b", code=code)
    plan: Plan[Slice] = Plan(FLOW, kind, 1, datetime.now(UTC), "1 file above a")
    outcome = Outcome(FLOW, "run-1", {}, 0, plan, error=bad)
    if is_late:
        outcome.left_out["b"] = LeftOut("late", bad)
    note_attempt(log, outcome)
    look(log, has_work=True)
    assert (summary(log) or ("",))[0] == "failed"
    look(log, has_work=False)
    assert (summary(log) or ("",))[0] == status
