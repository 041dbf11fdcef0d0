"""Step 4, commit: append a number's entry after its table commit was looked up.

See docs/explanation/protocol.md.
"""

from __future__ import annotations

from typing import NamedTuple

from partitions.errors import TargetError
from resources.kinds.contract.slices import SliceT
from resources.kinds.contract.writing import SavesHighest, WriteStats
from resources.loop.context import RunContext
from resources.loop.entries import abandoned_entry, loaded_entry, required_commit
from resources.loop.rows.deletes_of_table import finish_deletes_of_table
from resources.loop.rules.rejected_rows import follow_up_rejected, undo_rejected
from resources.loop.rules.row_rules import counts_of
from resources.loop.side_tables import fence_side_tables
from resources.outcome import Step
from resources.tables.contract.commits import TaggedCommit
from resources.tables.contract.table import FollowsUp
from resources.watermarks.entry import Entry, Intent


class LoadedSlice(NamedTuple):
    """A slice that is in the table, and its entry.

    Attributes:
        entry: the entry in the log.
        commit: the slice's commit, with all its counts.
        is_own: whether this run appended the entry; else another run did, which counts the slice.
    """

    entry: Entry
    commit: TaggedCommit
    is_own: bool = True


def append_loaded(
    run: RunContext[SliceT],
    entry: Entry | None,
    intent: Intent,
    commit: TaggedCommit,
    *,
    stats: WriteStats | None = None,
    guarded: bool = True,
) -> LoadedSlice:
    """Append the entry of a slice that is in the table; return it with the commit and all its counts.

    Args:
        run: the run.
        entry: the newest entry.
        intent: the slice's intent.
        commit: the commit that carries the slice.
        stats: the statistics of the write; None if another process wrote the slice.
        guarded: whether state and table match; only then do later runs build on this commit.

    Raises:
        Conflict: another run was faster.
    """
    next_entry, counted_commit = foreseen_entry(run, entry, intent, commit, stats=stats, guarded=guarded)
    appended = append(run, next_entry)
    # Of two runs that finish one slice, the log keeps the entry of one.
    is_own = (appended.time, appended.job_id) == (next_entry.time, next_entry.job_id)
    return LoadedSlice(appended, counted_commit, is_own)


def foreseen_entry(
    run: RunContext[SliceT],
    entry: Entry | None,
    intent: Intent,
    commit: TaggedCommit,
    *,
    stats: WriteStats | None = None,
    guarded: bool = True,
) -> tuple[Entry, TaggedCommit]:
    """Return the entry that :func:`append_loaded` would append, and the commit with all its counts."""
    counted_commit = run.table.complete_counts(commit, entry.total_rows if entry else 0)
    until = replaced_until(run, entry, intent)
    next_entry = loaded_entry(
        run.dataflow,
        entry,
        intent,
        counted_commit,
        watermark=_watermark_after(run, intent, stats or {}),
        replace_until=until,
        withheld=run.withheld.of_slice(intent.number),
        counts=counts_of(run, intent),
        job_id=run.job_id,
        now=run.now,
        guarded=guarded,
    )
    return next_entry, counted_commit


def _watermark_after(run: RunContext[SliceT], intent: Intent, stats: WriteStats) -> str:
    """Return the state after a slice: the intent's, or a more exact one if the rows show it."""
    writing = run.kind.writing
    if not isinstance(writing, SavesHighest):
        return intent.watermark
    return writing.state_after(intent, stats, run.table)


def append_abandoned(
    run: RunContext[SliceT],
    entry: Entry | None,
    intent: Intent,
    fence: TaggedCommit | None,
    reason: str,
    *,
    new_state: bool = False,
) -> Entry:
    """Append the entry of an abandoned number: the watermark stays, and the work is planned again.

    The side tables are fenced first.

    Args:
        run: the run.
        entry: the newest entry.
        intent: the number's intent.
        fence: the commit that carries the number, in a table that matches the state; None if there is
            none.
        reason: the reason for the log.
        new_state: whether a decision replaces the state afterwards, so that no side table may stop it.

    Raises:
        TargetError: a side table refuses the fence.
        Conflict: another run was faster.
    """
    try:
        fence_side_tables(run, intent)
        undo_rejected(run, intent)
    except TargetError:
        if not new_state:
            raise
    abandoned = append(run, abandoned_entry(run.dataflow, entry, intent, fence, reason, run.job_id))
    run.notify(Step.ABANDONED, f"number {intent.number} abandoned: {reason}")
    return abandoned


def append(run: RunContext[SliceT], entry: Entry) -> Entry:
    """Append an entry, then run the table format's follow-up work.

    Raises:
        Conflict: another run was faster.
    """
    appended = run.log.append(run.name, entry, expected=entry.previous)
    follow_up(run, appended)
    return appended


def follow_up(run: RunContext[SliceT], entry: Entry | None) -> None:
    """Run the table format's follow-up work for an entry, and list its deletes beside the table.

    Runs also call it when they start, since the run before may have died between append and follow-up.
    """
    finish_deletes_of_table(run.table, run.log, entry)
    if isinstance(run.table, FollowsUp) and (commit := required_commit(entry)) is not None:
        run.table.after_append(commit, run.name)
    if entry is not None:
        follow_up_rejected(run, entry)


def replaced_until(run: RunContext[SliceT], entry: Entry | None, intent: Intent) -> str | None:
    """Return the state up to which loads replace rows after an intent; None if they no longer do."""
    until = entry.replace_until if entry else None
    return None if until is None or run.kind.planning.covers(intent.watermark, until) else until
