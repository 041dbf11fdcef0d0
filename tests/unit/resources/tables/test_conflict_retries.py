"""Conflicts with other writers of a table are outlasted by one rule, which does not multiply."""

from __future__ import annotations

import pytest

from partitions.errors import TargetError, WriteConflict
from resources.tables.contract import conflict_retries
from resources.tables.contract.conflict_retries import retry_conflicts


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds in ("_FIRST", "_LONGEST", "_JITTER"):
        monkeypatch.setattr(conflict_retries, seconds, 0.0)


def test_a_write_that_meets_conflicts_is_tried_until_it_comes_through() -> None:
    conflicts_ahead = [WriteConflict("first"), WriteConflict("second")]

    def write() -> str:
        if conflicts_ahead:
            raise conflicts_ahead.pop(0)
        return "written"

    assert (retry_conflicts(write), conflicts_ahead) == ("written", [])


def test_nested_writes_that_never_come_through_have_as_many_attempts_as_one() -> None:
    attempts: list[int] = []

    def write() -> None:
        attempts.append(len(attempts))
        raise WriteConflict("another writer was first")

    with pytest.raises(WriteConflict, match="another writer was first"):
        retry_conflicts(lambda: retry_conflicts(lambda: retry_conflicts(write)))
    assert len(attempts) == conflict_retries._ATTEMPTS


def test_another_error_of_a_write_is_not_tried_again() -> None:
    attempts: list[int] = []

    def write() -> None:
        attempts.append(1)
        raise TargetError("the disk is full")

    with pytest.raises(TargetError, match="the disk is full"):
        retry_conflicts(write)
    assert len(attempts) == 1
