"""Abandoning a number: a fence in the table against slow writers, then the entry.

See docs/explanation/protocol.md.
"""

from __future__ import annotations

from partitions.errors import Conflict, StrandlineError, TargetError
from resources.kinds.contract.slices import SliceT
from resources.loop.appending import append, append_abandoned, append_loaded, foreseen_entry
from resources.loop.context import RunContext
from resources.loop.entries import abandoned_entry, dropped_entry, names_other_table
from resources.loop.intents import holding
from resources.loop.rows.slice_rows import slice_rows
from resources.loop.verifying import head_with_intent, is_guarded, skipped_write, unguarded_head
from resources.outcome import Step
from resources.spark.failures import root_cause
from resources.tables.contract.commits import TableHead, Tag, TaggedCommit
from resources.watermarks.entry import Entry, Intent, new_id


def give_up(
    run: RunContext[SliceT],
    entry: Entry | None,
    intent: Intent,
    reason: str,
) -> Entry | None:
    """Abandon a number; return its entry, or None if a writer has committed the slice meanwhile.

    The caller then finishes the slice like any other.

    Args:
        run: the run.
        entry: the newest entry.
        intent: the number's intent.
        reason: the reason for the log.

    Raises:
        TargetError: the table refuses the fence.
        NeedsDecision: state and table no longer match; an entry based on the fence would hide it.
        Conflict: another run appended the number.
    """
    fence = Tag(intent.app_id, intent.number, new_id(), gives_up=True, writer=run.writer)
    is_new = unguarded_head(run, entry, intent).newest is None
    try:
        first_rows = (lambda: slice_rows(run, entry, intent, None)) if is_new else None
        run.table.give_up(run.spark, fence, intent.before, first_rows)
    except Exception as error:
        if unguarded_head(run, entry, intent).find_tagged_commit(intent.number) is None:
            raise TargetError(
                f"dataflow {run.name}: slice {intent.number} was not loaded ({reason}), and abandoning it "
                f"failed: {root_cause(error)}. Run again; a second try does no harm"
            ) from error
    commit = head_with_intent(run, entry, intent).find_tagged_commit(intent.number)
    if commit is None or commit.owner == intent.id:
        return None
    run.notify(Step.FENCED, f"slice {intent.number} abandoned: {reason}")
    return append_abandoned(run, entry, intent, commit, reason)


def close_intent(
    run: RunContext[SliceT],
    entry: Entry | None,
    intent: Intent,
    reason: str,
    *,
    new_state: bool = False,
) -> Entry:
    """End a dead run's intent: append the entry if the slice was written, else abandon the number.

    Args:
        run: a run of the dataflow.
        entry: the newest entry.
        intent: the open intent, whose holder is gone.
        reason: the reason for the log.
        new_state: whether a decision replaces the state afterwards. Then state and table need not match,
            and a table that refuses the fence does not stop the decision.

    Raises:
        NeedsDecision: state, open intent and table do not match.
        TargetError: a table refuses the fence.
        Conflict: another run appended the number.
    """
    with holding(run, intent):
        # What a run had begun for another table is not looked for in the one that the definition names now.
        new_state = new_state or names_other_table(run.dataflow, entry)
        head = unguarded_head(run, entry, intent) if new_state else head_with_intent(run, entry, intent)
        commit, guarded = _known_commit(head, intent), is_guarded(run, entry, intent)
        if commit is None and (not new_state or _can_fence(entry, head)):
            try:
                if abandoned := give_up(run, entry, intent, reason):
                    return abandoned
                commit = unguarded_head(run, entry, intent).find_tagged_commit(intent.number)
            except Conflict:
                raise
            except StrandlineError:
                if not new_state:
                    raise
        if commit is not None and commit.owner == intent.id:
            return append_loaded(run, entry, intent, commit, guarded=guarded)[0]
        if new_state or (commit is not None and commit.gives_up):
            return append_abandoned(
                run, entry, intent, commit if guarded else None, reason, new_state=new_state
            )
        raise skipped_write(run, intent)


def drop_decision(run: RunContext[SliceT], entry: Entry | None, intent: Intent) -> Entry:
    """End the intent of a decision whose process died before its entry: abandon its number.

    Raises:
        Conflict: another process appended the number.
    """
    dropped = append(run, dropped_entry(entry, intent))
    run.notify(Step.ABANDONED, f"number {dropped.number} abandoned: {dropped.reason}")
    return dropped


def preview_close(run: RunContext[SliceT], entry: Entry | None, intent: Intent) -> Entry:
    """Return the entry that :func:`close_intent` or :func:`drop_decision` would append. Changes nothing."""
    if intent.is_decision:
        return dropped_entry(entry, intent)
    commit, guarded = (
        _known_commit(unguarded_head(run, entry, intent), intent),
        is_guarded(run, entry, intent),
    )
    if commit is not None and commit.owner == intent.id:
        return foreseen_entry(run, entry, intent, commit, guarded=guarded)[0]
    return abandoned_entry(run.dataflow, entry, intent, commit if guarded else None, "foreseen", run.job_id)


def _can_fence(entry: Entry | None, head: TableHead) -> bool:
    """Return whether a fence can be written: into the state's table, or where no table exists yet."""
    is_known = entry is not None and entry.table is not None
    return head.has_recorded and (head.newest is not None or not is_known)


def _known_commit(head: TableHead, intent: Intent) -> TaggedCommit | None:
    """Return the commit that carries an intent's number in the state's table; other tables do not count."""
    return head.find_tagged_commit(intent.number) if head.has_recorded else None
