"""What `state accept` makes of a log that cannot be read as it is (docs/reference/offsets.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from partitions.errors import NeedsDecision
from partitions.offset.state import OffsetState, SnapshotProgress
from partitions.sentinels import serialise
from resources.kinds.contract.decisions import AcceptedSource
from resources.kinds.offset.source_log import SourceLog
from resources.tables.contract.commit_log import LoggedCommit, ReadPosition


def accept_log(log: SourceLog, state: OffsetState) -> AcceptedSource:
    """Return the state that takes the table as it is now.

    Changes that a run stopped at are passed over, and so are commits that can no longer be read. The rows
    of another table are new.

    Raises:
        NeedsDecision: the rest of a first read is gone, and nothing tells its rows.
    """
    if state.position is None:
        return AcceptedSource(serialise(state.watermark()))
    notes: tuple[str, ...] = ()
    try:
        log.tail(state)
    except NeedsDecision as error:
        state, notes = _behind_gap(log, state, error)
    if state.position is not None and state.snapshot is None:
        state, unreadable = _with_unreadable(log, state)
        notes += unreadable
    if state.position is not None:
        state, changes = _with_accepted_changes(log, state)
        notes += changes
    return AcceptedSource(serialise(state.watermark()), notes)


def _behind_gap(
    log: SourceLog, state: OffsetState, error: NeedsDecision
) -> tuple[OffsetState, tuple[str, ...]]:
    """Return the state behind a gap in the log, or before the first read if the table is another one."""
    assert state.position is not None
    if state.snapshot is not None:
        raise error
    if error.code == "versions_gone":
        logged = log.commits.since(None)
        first = next(iter(logged.commits), None)
        if first is not None and logged.table == state.position.table:
            # The summary of an expired snapshot is gone, and with it the number that it had.
            before = ReadPosition(first.version - 1, first.before.id if first.before else None)
            behind = log.position_at(logged.table, before)
            note = f"commits of table {log.label} between {state.position.words} and version {first.version} are never read: its log no longer has them"
            return state.at(behind, state.unreadable), (note,)
    note = f"table {log.label} is another one than the one read before: all of its rows are read as new ones"
    return _first_read(log, state), (note,)


def _first_read(log: SourceLog, before: OffsetState) -> OffsetState:
    """Return the state that has all rows of the table before it, wherever ``source.from`` begins."""
    table, position = log.commits.newest()
    files = len(log.commits.snapshot_files(position))
    progress = SnapshotProgress(position.version, 0, files)
    empty = OffsetState(number=before.last_number)
    return empty.in_snapshot(log.position_at(table, position), progress, empty.number_of(position.version))


def _with_unreadable(log: SourceLog, state: OffsetState) -> tuple[OffsetState, tuple[str, ...]]:
    """Return the state that passes over commits whose rows are gone, although the log still names them.

    Those before the first readable one lie below its position; it names the others.
    """
    assert state.position is not None
    logged = log.commits.since(ReadPosition.of(state.position), table=state.position.table)
    read = [commit for commit in logged.commits if _is_read(log, commit)]
    unreadable = _unreadable(log, read)
    first_readable = next((commit for commit in read if commit not in unreadable), None)
    leading = list(takewhile(lambda commit: commit != first_readable, logged.commits if unreadable else ()))
    while leading and leading[-1] not in unreadable:
        leading.pop()
    passed = [log.position_at(logged.table, commit.read_position) for commit in leading]
    named = tuple(log.position_at(logged.table, commit.read_position) for commit in unreadable)
    state = replace(state, unreadable=named)
    notes = tuple(f"never read: {commit.description}" for commit in unreadable)
    return (state.at(passed[-1], passed) if passed else state), notes


def _unreadable(log: SourceLog, commits: Sequence[LoggedCommit]) -> list[LoggedCommit]:
    """Return the commits of which files, or the state before them, are gone."""
    if _can_be_read(log, commits):
        return []
    return [commit for commit in commits if not _can_be_read(log, [commit])]


def _can_be_read(log: SourceLog, commits: Sequence[LoggedCommit]) -> bool:
    try:
        log.commits.check_files(commits)
    except NeedsDecision:
        return False
    return True


def _is_read(log: SourceLog, commit: LoggedCommit) -> bool:
    is_passed_over = commit.changes is not None and log.treatment in ("stop", "skip")
    return bool(commit.files) and not is_passed_over


def _with_accepted_changes(log: SourceLog, state: OffsetState) -> tuple[OffsetState, tuple[str, ...]]:
    """Return the state with the changes accepted that a run stops at."""
    changing = [
        commit
        for commit in log.tail(state).commits
        if commit.changes and commit.position not in state.unreadable
    ]
    if log.treatment != "stop" or not changing:
        return state, ()
    accepted = replace(state, accepted=changing[-1].position)
    return accepted, tuple(f"passed over: {commit.changes}" for commit in changing)
