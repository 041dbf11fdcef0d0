"""The planner of offsets: which commits a run reads, in which slices, and what it passes over.

See docs/reference/offsets.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from partitions.errors import NeedsDecision
from partitions.offset.commits import Commit, LogTail
from partitions.offset.definition import CommitCheckpoint, OffsetWatermark
from partitions.offset.slices import CommitRange, OffsetSlice, SnapshotRange, cut_commits, cut_files
from partitions.offset.state import OffsetState
from partitions.plan import Plan, Skip, pluralize
from partitions.sources.table import OnChange

_NAMED = 3
"""The most commits that a message names."""


def plan(
    definition: OffsetWatermark,
    on_change: OnChange,
    state: OffsetState,
    tail: LogTail,
    now: datetime,
    *,
    dataflow: str,
    table: str,
    state_number: int,
    begins_with_snapshot: bool = True,
    cuts_snapshot: bool = True,
) -> Plan[OffsetSlice]:
    """Return the plan of the next slices.

    Args:
        definition: the watermark's definition.
        on_change: what becomes of commits that change or remove rows.
        state: the state after the newest entry.
        tail: what the log has behind it.
        now: the clock, aware.
        dataflow: the dataflow's name.
        table: the name of the table that is read, ``<layer>/<name>``.
        state_number: the number of the newest entry; 0 if there is none.
        begins_with_snapshot: whether a dataflow without a state begins with the rows that are there.
        cuts_snapshot: whether a first read may be cut between its files; else it is one slice.

    Raises:
        NeedsDecision: code ``source_changed``: a commit changes or removes rows, and ``on_change`` is
            ``stop``.
    """
    if on_change == "stop":
        _check_only_adds(dataflow, table, state, tail.commits, begins_with_snapshot=begins_with_snapshot)
    commits = [read_as(on_change, state, commit) for commit in tail.commits]
    ranges: list[SnapshotRange | CommitRange] = [
        *_file_ranges(definition.checkpoint if cuts_snapshot else None, state, tail),
        *_commit_ranges(definition, state, tail, commits),
    ]
    planned = ranges[: definition.max_slices]
    slices: list[OffsetSlice] = []
    before = state.watermark()
    for part in planned:
        slices.append(OffsetSlice(before, part))
        before = slices[-1].upper
    why_passed = "source.on_change: skip" if on_change == "skip" else "accepted"
    warnings = [
        f"{change}; it is passed over ({why_passed})" for slice_ in slices for change in slice_.passes_over
    ]
    skips = []
    if remaining := len(ranges) - len(planned):
        most = f"a run makes at most {definition.max_slices} (max_slices)"
        skips.append(Skip(pluralize(remaining, "slice"), most))
    why = _why(table, slices, tail)
    return Plan(dataflow, "offset", state_number, now, why, tuple(slices), tuple(skips), tuple(warnings))


def _file_ranges(
    checkpoint: CommitCheckpoint | None, state: OffsetState, tail: LogTail
) -> list[SnapshotRange]:
    """Return the ranges of a first read that are left; without a checkpoint, one."""
    if tail.snapshot is None:
        return []
    done = state.snapshot.files_done if state.snapshot else 0
    return list(cut_files(checkpoint, tail.snapshot, done))


def _commit_ranges(
    definition: OffsetWatermark, state: OffsetState, tail: LogTail, commits: Sequence[Commit]
) -> list[CommitRange]:
    """Return the ranges with rows, and the last one without any if it has grown long.

    A position that never moves could be cleaned from the log, and each look would read these commits again.
    A dataflow that begins behind all commits records where.
    """
    since = tail.snapshot.position if tail.snapshot is not None else state.position or tail.start
    ranges = list(cut_commits(definition.checkpoint, since, commits))
    if ranges and not _is_worth_a_slice(definition, ranges[-1]):
        ranges.pop()
    if not ranges and state.position is None and tail.start is not None:
        return [CommitRange(None, (), tail.start)]
    return ranges


def _is_worth_a_slice(definition: OffsetWatermark, part: CommitRange) -> bool:
    has_work = any(commit.files or commit.changes for commit in part.commits)
    return has_work or len(part.commits) >= definition.checkpoint.commits


def read_as(on_change: OnChange, state: OffsetState, commit: Commit) -> Commit:
    """Return a commit as it is read: one that is passed over has no files."""
    is_unreadable = commit.position in state.unreadable
    if not is_unreadable and (on_change not in ("skip", "stop") or commit.changes is None):
        return commit
    changes = commit.changes or f"{commit.position.words}, whose files are gone"
    return replace(commit, files=0, bytes=0, rows=0, changes=changes, is_passed_over=True)


def _check_only_adds(
    dataflow: str, table: str, state: OffsetState, commits: Sequence[Commit], *, begins_with_snapshot: bool
) -> None:
    """Raise NeedsDecision if a commit behind the accepted ones changes or removes rows."""
    positions = [commit.position for commit in commits]
    first = positions.index(state.accepted) + 1 if state.accepted in positions else 0
    changing = [
        str(commit.changes)
        for commit in commits[first:]
        if commit.changes and commit.position not in state.unreadable
    ]
    if not changing:
        return
    more = f"; and {pluralize(len(changing) - _NAMED, 'more')}" if len(changing) > _NAMED else ""
    anew = f"strandline state reset {dataflow} --replace --reason TEXT"
    accepts = f"strandline state accept {dataflow} --reason TEXT"
    as_it_is = "load the table as it is now with `state reset --replace`"
    snapshot = "begin with the rows as they are now (source.from: snapshot)"
    choices: tuple[str, ...]
    if state.position is None:
        remedy, choices = f"{snapshot.capitalize()}, or set source.on_change", ()
    elif begins_with_snapshot:
        remedy, choices = (
            f"Pass over these changes with `state accept`, {as_it_is}, or set source.on_change",
            (accepts, anew),
        )
    else:
        remedy = f"Pass over these changes with `state accept`, or set source.from: snapshot and {as_it_is}, or set source.on_change"
        choices = (accepts,)
    raise NeedsDecision(
        f"dataflow {dataflow}: expected commits of table {table} that only add rows, found {'; '.join(changing[:_NAMED])}{more}. Nothing behind"
        f" the position was read. {remedy}",
        code="source_changed",
        choices=choices,
    )


def _why(table: str, slices: Sequence[OffsetSlice], tail: LogTail) -> str:
    """Return what the next run reads, in a sentence."""
    if not slices:
        return f"table {table} has no new commit" if tail.newest else f"table {table} has no rows yet"
    files = [slice_.input for slice_ in slices if isinstance(slice_.input, SnapshotRange)]
    commits = sum(len(slice_.input.commits) for slice_ in slices if isinstance(slice_.input, CommitRange))
    parts = []
    if files:
        count = sum(part.files for part in files)
        parts.append(f"{pluralize(count, 'file')} of the first read of table {table}")
    if commits:
        parts.append(f"{pluralize(commits, 'new commit')} of table {table}")
    if not parts:
        return (
            f"the position of table {table} is recorded; later runs read what comes behind it (source.from)"
        )
    return " and ".join(parts)
