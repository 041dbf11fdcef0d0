"""The commits that a replay reads again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from partitions.errors import ConfigurationError
from partitions.log_position import LogPosition
from partitions.offset.commits import Commit
from partitions.offset.past_commits import (
    check_log_reaches,
    commit_bounds,
    commits_between,
    rows_of_commits,
)
from partitions.predicate import matches

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def commit(version: int, day: float | None = None, *, is_whole: bool = False) -> Commit:
    time = None if day is None else DAY + timedelta(days=day)
    return Commit(LogPosition("t", version, str(version)), 1, 1, time=time, is_whole=is_whole)


def versions(commits: Any) -> list[int]:
    return [one.position.version for one in commits]


LOG = [commit(version, version) for version in range(6)]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("1", "3", [1, 2]),
        ("0", "99", [0, 1, 2, 3, 4, 5]),
        ("6", "9", []),
        ("2026-01-02", "2026-01-04", [1, 2]),
        ("2026-01-02T01:00:00+01:00", "2026-01-03T00:00:00Z", [1]),
        ("2026-01-02T00:00:01", "2026-01-03T00:00:01", [2]),
    ],
)
def test_a_range_is_half_open_by_version_or_by_time_in_utc(start: str, end: str, expected: list[int]) -> None:
    chosen = commits_between(LOG, *commit_bounds(start, end), None)
    assert versions(chosen.commits) == expected
    assert (chosen.since and chosen.since.version) == (expected[0] - 1 if expected and expected[0] else None)


@pytest.mark.parametrize(
    ("start", "end"), [("3", "3"), ("2026-01-02", "2026-01-02"), ("1", "2026-01-02"), ("a", "b")]
)
def test_bounds_that_are_no_range_of_commits_are_refused(start: str, end: str) -> None:
    with pytest.raises(ConfigurationError):
        commit_bounds(start, end)


def test_commits_that_no_run_has_read_are_counted_and_left_out() -> None:
    chosen = commits_between(LOG, 2, 9, LogPosition("t", 3, "3"))
    assert (versions(chosen.commits), chosen.unread) == ([2, 3], 2)


def test_a_commit_between_others_of_the_range_belongs_to_it_whatever_its_writers_clock_said() -> None:
    log = [commit(0, 0), commit(1, 5), commit(2, 1), commit(3, None), commit(4, 6), commit(5, 9)]
    chosen = commits_between(log, DAY + timedelta(days=5), DAY + timedelta(days=7), None)
    assert versions(chosen.commits) == [1, 2, 3, 4]


def test_a_log_whose_older_commits_are_gone_has_all_commits_behind_its_oldest_one() -> None:
    log = [commit(4, 4, is_whole=True), *LOG[5:]]
    for lower in (0, 4, DAY):
        upper = 9 if isinstance(lower, int) else DAY + timedelta(days=9)
        with pytest.raises(
            ConfigurationError, match="expected a start behind version 4 of 2026-01-05 00:00:00 UTC"
        ):
            check_log_reaches(log, lower, commits_between(log, lower, upper, None), "bronze/x")
    check_log_reaches(log, 5, commits_between(log, 5, 9, None), "bronze/x")
    check_log_reaches([], 0, commits_between([], 0, 9, None), "bronze/x")


def row(version: int, time: datetime | None) -> dict[str, Any]:
    return {"_commit_version": version, "_commit_timestamp": time}


def test_change_rows_are_known_by_number_and_time_of_their_commit() -> None:
    where = rows_of_commits([commit(1, 1), commit(2, 2), commit(7, 7)])
    assert all(matches(where, row(version, DAY + timedelta(days=version))) for version in (1, 2, 7))
    others = [
        row(3, DAY + timedelta(days=2)),  # of another lineage of the table
        row(2, None),  # a rollback from version 2
        row(1, DAY - timedelta(days=9)),  # of the table that had the name before
        row(7, DAY + timedelta(days=2)),
    ]
    assert not any(matches(where, other) for other in others)
    assert matches(rows_of_commits([commit(1)]), row(1, None))
