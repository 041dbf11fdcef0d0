"""The commits that a replay reads again (docs/reference/replay.md, Commits)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from partitions.errors import ConfigurationError
from partitions.log_position import LogPosition
from partitions.offset.changes import CHANGE_COLUMNS
from partitions.offset.commits import Commit
from partitions.predicate import AllOf, Among, Between, Predicate, any_of
from partitions.replay.bounds import typed_bounds
from partitions.replay.column_bounds import arrival_range

CommitBound = int | datetime
"""A version, or a time."""

_, _VERSION, _TIME = CHANGE_COLUMNS


def commit_bounds(start: str, end: str) -> tuple[CommitBound, CommitBound]:
    """Return two versions, or two times, of which a text without a zone is in UTC.

    Args:
        start: the lower bound as text, inclusive.
        end: the upper bound as text, exclusive.

    Raises:
        ConfigurationError: they are neither, or start does not lie below end.
    """
    lower, upper = typed_bounds(start, end)
    if isinstance(lower, int) and isinstance(upper, int):
        return lower, upper
    return arrival_range(start, end)


class PastCommits(NamedTuple):
    """Commits of a range.

    Attributes:
        since: the position before the first one; None: there is none.
        commits: the commits, ascending.
        unread: the number of commits of the range that no run has read yet.
    """

    since: LogPosition | None
    commits: tuple[Commit, ...]
    unread: int = 0


def commits_between(
    commits: Sequence[Commit], lower: CommitBound, upper: CommitBound, read: LogPosition | None
) -> PastCommits:
    """Return the commits of a range: from the first one in it to the last.

    Those between them belong to it, whatever the clocks of their writers said.

    Args:
        commits: all that the log has, ascending.
        lower: a version or a time, inclusive.
        upper: the same, exclusive.
        read: the position up to which runs have read the log; None: it does not matter.
    """
    inside = [number for number, commit in enumerate(commits) if _lies_between(commit, lower, upper)]
    if not inside:
        return PastCommits(None, ())
    first, last = inside[0], inside[-1]
    since = commits[first - 1].position if first else None
    chosen = commits[first : last + 1]
    read_before = [commit for commit in chosen if read is None or commit.position.version <= read.version]
    return PastCommits(since, tuple(read_before), len(chosen) - len(read_before))


def check_log_reaches(commits: Sequence[Commit], lower: CommitBound, chosen: PastCommits, table: str) -> None:
    """Raise ConfigurationError if the log no longer has commits of the range.

    Args:
        commits: all that the log has, ascending.
        lower: the lower bound of the range, inclusive.
        chosen: the commits of the range.
        table: the name of the table.
    """
    if not commits or not commits[0].is_whole:
        return
    oldest = commits[0]
    begins_below = isinstance(lower, int) and lower <= oldest.position.version
    if begins_below or (chosen.commits and chosen.since is None):
        time = f" of {oldest.time:%Y-%m-%d %H:%M:%S} UTC" if oldest.time is not None else ""
        raise ConfigurationError(
            f"expected a start behind {oldest.position.words}{time}, the oldest of which the log of table {table} knows all rows, found"
            f" {lower if isinstance(lower, int) else lower.isoformat()}: what earlier commits changed is no longer known"
        )


def rows_of_commits(commits: Sequence[Commit]) -> Predicate:
    """Return the rows of a table of changes that some commits have brought.

    A commit is known by its number and its time. Numbers that follow each other are one range: those of
    another lineage of an Iceberg table lie between numbers that do not.

    Args:
        commits: ascending.
    """
    runs: list[list[Commit]] = []
    for commit in commits:
        if runs and runs[-1][-1].position.version + 1 == commit.position.version:
            runs[-1].append(commit)
        else:
            runs.append([commit])
    return any_of([_rows_of_run(run) for run in runs])


def _rows_of_run(run: Sequence[Commit]) -> Predicate:
    first, last = run[0].position.version, run[-1].position.version
    times = [commit.time for commit in run if commit.time is not None]
    of_times: list[Predicate] = []
    if times:
        of_times.append(Between(_TIME, min(times), max(times), upper_inclusive=True))
    if len(times) < len(run):
        of_times.append(Among(_TIME, (None,)))
    return AllOf((Between(_VERSION, first, last, upper_inclusive=True), any_of(of_times)))


def _lies_between(commit: Commit, lower: CommitBound, upper: CommitBound) -> bool:
    if isinstance(lower, int) and isinstance(upper, int):
        return lower <= commit.position.version < upper
    assert isinstance(lower, datetime)
    assert isinstance(upper, datetime)
    return commit.time is not None and lower <= commit.time < upper
