"""Step 4, commit: the entry of a number is appended once the table's commit was looked up (docs/explanation/protocol.md)."""

from __future__ import annotations

from partitions.errors import TargetError
from resources.kinds.contract.slices import SliceT
from resources.kinds.contract.writing import SavesHighest, WriteStats
from resources.loop.context import RunContext
from resources.loop.entries import abandoned_entry, claimed, loaded_entry
from resources.loop.side_tables import fence_asides
from resources.outcome import Step
from resources.tables.contract.commits import TaggedCommit
from resources.tables.contract.table import FollowsUp
from resources.watermarks.entry import Entry, Intent


def append_loaded(
    run: RunContext[SliceT],
    entry: Entry | None,
    intent: Intent,
    commit: TaggedCommit,
    *,
    stats: WriteStats | None = None,
    guarded: bool = True,
) -> tuple[Entry, TaggedCommit]:
    """Append the entry of a slice that is in the table; return it, and the commit with all of its counts.

    Args:
        run: of the dataflow.
        entry: the newest one.
        intent: of the slice.
        commit: that carries it.
        stats: what the write counted; nothing if another process has written the slice.
        guarded: whether state and table belong together; only then the table's commit is what they go on from.

    Raises:
        Conflict: another run was faster.
    """
    made, counted = foreseen_entry(run, entry, intent, commit, stats=stats, guarded=guarded)
    return append(run, made), counted


def foreseen_entry(
    run: RunContext[SliceT],
    entry: Entry | None,
    intent: Intent,
    commit: TaggedCommit,
    *,
    stats: WriteStats | None = None,
    guarded: bool = True,
) -> tuple[Entry, TaggedCommit]:
    """Return the entry that :func:`append_loaded` would append, and the commit with all of its counts."""
    counted = run.table.complete_counts(commit, entry.total_rows if entry else 0)
    until = replaced_until(run, entry, intent)
    made = loaded_entry(
        run.dataflow,
        entry,
        intent,
        counted,
        watermark=_watermark_after(run, intent, stats or {}),
        replace_until=until,
        job_id=run.job_id,
        guarded=guarded,
    )
    return made, counted


def _watermark_after(run: RunContext[SliceT], intent: Intent, stats: WriteStats) -> str:
    """The state after a slice: the intent's, unless its rows tell more exactly how far it came."""
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
    """Append a number with an unchanged watermark: the work is planned again under the next one. Its side tables take the number before.

    Args:
        run: of the dataflow.
        entry: the newest one.
        intent: of the number.
        fence: the commit that carries the number, in a table that belongs to the state; None if there is none.
        reason: for the log.
        new_state: whether a decision takes the state anew after it, so that no side table may stop it.

    Raises:
        TargetError: a side table refuses the fence.
        Conflict: another run was faster.
    """
    try:
        fence_asides(run, intent)
    except TargetError:
        if not new_state:
            raise
    made = append(run, abandoned_entry(run.dataflow, entry, intent, fence, reason, run.job_id))
    run.notify(Step.ABANDONED, f"number {intent.number} abandoned: {reason}")
    return made


def append(run: RunContext[SliceT], entry: Entry) -> Entry:
    """Append an entry, then do what the table's format leaves for after it.

    Raises:
        Conflict: another run was faster.
    """
    appended = run.log.append(run.name, entry, expected=entry.previous)
    follow_up(run, appended)
    return appended


def follow_up(run: RunContext[SliceT], entry: Entry | None) -> None:
    """Do what the table's format leaves for after an entry; also at the beginning of a run, since the one before may have died there."""
    if isinstance(run.table, FollowsUp) and (commit := claimed(entry)) is not None:
        run.table.after_append(commit, run.name)


def replaced_until(run: RunContext[SliceT], entry: Entry | None, intent: Intent) -> str | None:
    """Return up to where rows are replaced after an intent, if they were before it; None once it has come there."""
    until = entry.replace_until if entry else None
    return None if until is None or run.kind.planning.covers(intent.watermark, until) else until
