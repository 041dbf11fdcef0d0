"""Which dataflow ``strandline watch`` runs when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from partitions.pauses import FIRST
from partitions.watch.due_runs import Finding, WatchedDataflow, is_about_to_change

NOON = datetime(2026, 1, 28, 12, tzinfo=UTC)


def found(work: str = "a.json", seconds: float = 0, progress: str = "1", upstream: str = "") -> Finding:
    return Finding(NOON + timedelta(seconds=seconds), work, progress, upstream)


def after_failure(watched: WatchedDataflow, finding: Finding, *, held: bool = False) -> WatchedDataflow:
    return watched.after_run(finding, watched.attempted(finding), was_held=held, has_read=False)


def test_work_is_run_and_nothing_is_not() -> None:
    assert WatchedDataflow().may_run(found())
    assert not WatchedDataflow().may_run(found(""))


def test_work_that_failed_is_run_again_after_growing_pauses() -> None:
    watched, seconds, pauses = WatchedDataflow(), 0.0, []
    for _ in range(4):
        assert watched.may_run(found(seconds=seconds))
        watched = after_failure(watched, found(seconds=seconds))
        pause = next(pause for pause in range(4000) if watched.may_run(found(seconds=seconds + pause)))
        pauses.append(pause)
        seconds += pause
    assert pauses == [FIRST, FIRST * 2, FIRST * 4, FIRST * 8]


@pytest.mark.parametrize("repaired", [found("b.json", 1), found(progress="2", seconds=1)])
def test_other_work_or_progress_ends_a_pause(repaired: Finding) -> None:
    failed = after_failure(WatchedDataflow(), found())
    assert not failed.may_run(found(seconds=1))
    assert failed.may_run(repaired)


def test_an_entry_that_makes_no_progress_ends_no_pause() -> None:
    failed = after_failure(WatchedDataflow(), found())
    assert not failed.may_run(found(seconds=1, progress=""))


def test_a_run_that_another_one_held_up_was_no_attempt() -> None:
    assert after_failure(WatchedDataflow(), found(), held=True).may_run(found(seconds=1))


def test_a_load_upstream_wakes_a_dataflow_until_it_is_read() -> None:
    watched = WatchedDataflow()
    assert watched.is_woken("load 1")
    assert after_failure(watched, found(upstream="load 1")).is_woken("load 1")
    finding = found(upstream="load 1")
    loaded = watched.after_run(finding, watched.attempted(finding), was_held=False, has_read=True)
    assert not loaded.is_woken("load 1")
    assert loaded.is_woken("load 2"), "it came while load 1 was read"
    nothing = loaded.after_nothing(found("", upstream="load 2"))
    assert not nothing.is_woken("load 2")
    assert not watched.is_woken(""), "a dataflow without upstream sleeps"


def test_a_dataflow_waits_for_what_is_being_loaded_upstream() -> None:
    assert is_about_to_change({"orders", "customers"}, {"orders": 1})
    assert not is_about_to_change({"orders"}, {"visits": 1})
