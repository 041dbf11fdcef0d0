"""Commits that a replay reads again, as the log of the table has them now (docs/reference/replay.md)."""

from __future__ import annotations

from collections.abc import Sequence

from partitions.errors import NeedsDecision
from partitions.log_position import LogPosition
from partitions.offset.commits import Commit
from partitions.offset.plan import read_as
from partitions.offset.slices import CommitRange, OffsetSlice
from partitions.offset.state import OffsetState
from partitions.request import ReplayCommits
from resources.kinds.offset.change_rows import keeps_changes
from resources.kinds.offset.source_log import SourceLog
from resources.tables.contract.commit_log import ReadPosition


def plan_again(log: SourceLog, state: OffsetState, request: ReplayCommits) -> OffsetSlice:
    """Return the slice of some commits, as the log has them now. Starts no Spark.

    Args:
        log: the log of the table.
        state: the state of the dataflow that loads them.
        request: the commits.

    Raises:
        NeedsDecision: code ``versions_gone``: the log no longer has them.
    """
    after = None if request.after is None else ReadPosition(*request.after)
    try:
        table, commits = log.commits_behind(after)
    except NeedsDecision as error:
        raise gone_for_replay(log, f"version {request.last[0]}") from error
    since = None if after is None else log.position_at(table, after)
    return replayed_slice(log, state, request, since, commits)


def replayed_slice(
    log: SourceLog,
    state: OffsetState,
    request: ReplayCommits,
    since: LogPosition | None,
    behind: Sequence[Commit],
) -> OffsetSlice:
    """Return the slice of some commits. For a table that is loaded by keys, with those up to the position.

    So a key that a later commit has changed gets the later row again, and not the earlier one.

    Args:
        log: the log of the table.
        state: the state of the dataflow that loads them.
        request: the commits.
        since: the position before them; None: there is none.
        behind: all commits behind that position, ascending.

    Raises:
        NeedsDecision: code ``versions_gone``: the log no longer has them.
    """
    numbers = [(commit.position.version, commit.position.id) for commit in behind]
    if request.last not in numbers:
        raise gone_for_replay(log, f"version {request.last[0]}")
    end = numbers.index(request.last) + 1
    commits = tuple(read_as(log.treatment, state, commit) for commit in behind)
    later: tuple[Commit, ...] = ()
    if not request.saves and not keeps_changes(log.dataflow) and state.position is not None:
        read = state.position.version
        later = tuple(commit for commit in commits[end:] if commit.position.version <= read)
    part = CommitRange(since, commits[:end], behind[end - 1].position, later)
    return OffsetSlice(state.watermark(), part, why="replay", replaces=request.replaces, saves=request.saves)


def gone_for_replay(log: SourceLog, words: str) -> NeedsDecision:
    """Return the error for commits that a replay cannot read any more.

    Args:
        log: the log of the table.
        words: the commits, for people.
    """
    name = log.dataflow.name
    return NeedsDecision(
        f"dataflow {name}: expected the commits of {words} of table {log.label}, which a replay reads again, found that they, or files of them, were"
        " cleaned. Nothing was read. Replay a range of later commits, or load the table as it is now with `state reset --replace`",
        code="versions_gone",
        choices=(f"strandline state reset {name} --replace --reason TEXT",),
    )
