"""End the open intent of a process that died, for a decision that needs its number.

See docs/explanation/protocol.md, Recovery.
"""

from __future__ import annotations

from resources.kinds.contract.slices import SliceT
from resources.loop.context import RunContext
from resources.loop.deleting import finish_delete, foreseen_delete
from resources.loop.giving_up import close_intent, drop_decision, preview_close
from resources.loop.holder_wait import HolderPolicy, abandoned_intent
from resources.loop.rules.releasing import finish_release, foreseen_release
from resources.loop.verifying import is_guarded, unguarded_head
from resources.watermarks.entry import Entry, Intent


def end_abandoned(run: RunContext[SliceT], patience: HolderPolicy, purpose: str, reason: str) -> Entry | None:
    """Wait for the holder of the next number, and end a dead holder's intent; return the newest entry.

    Args:
        run: a run of the dataflow.
        patience: how long to wait for a live holder.
        purpose: what needs the number, for the log.
        reason: the operator's reason.

    Raises:
        DataflowHeld: the holder still lives.
        Conflict, NeedsDecision, TargetError: as :func:`end_intent`.
    """
    entry, intent = abandoned_intent(run, run.log.newest(run.name), patience)
    if intent is None:
        return entry
    return end_intent(run, entry, intent, f"unfinished by a run that died; ended for {purpose}: {reason}")


def end_intent(
    run: RunContext[SliceT], entry: Entry | None, intent: Intent, reason: str, *, new_state: bool = False
) -> Entry:
    """End an open intent without loading anything; return the entry that ends it.

    A delete is finished: its rows were to go, and nothing plans it again. A slice is appended if it was
    written, else abandoned.

    Args:
        run: a run of the dataflow.
        entry: the newest entry.
        intent: the open intent, whose holder is gone.
        reason: the operator's reason.
        new_state: whether a decision replaces the state afterwards. Then a delete of a table that does not
            match the state is abandoned.

    Raises:
        Conflict, NeedsDecision, TargetError: as :func:`resources.loop.giving_up.close_intent` describes.
    """
    if intent.is_decision:
        return drop_decision(run, entry, intent)
    if intent.writes_apart and (not new_state or is_guarded(run, entry, intent)):
        return finish_apart(run, entry, intent)
    return close_intent(run, entry, intent, reason, new_state=new_state)


def preview_end(run: RunContext[SliceT], entry: Entry | None, intent: Intent) -> Entry:
    """Return the entry that :func:`end_intent` would append. Changes nothing, starts no Spark."""
    if not intent.writes_apart or not is_guarded(run, entry, intent):
        return preview_close(run, entry, intent)
    commit = unguarded_head(run, entry, intent).find_tagged_commit(intent.number)
    if commit is not None and commit.owner != intent.id:
        return preview_close(run, entry, intent)
    if intent.released is not None:
        # Uncounted, unless it is written: Spark must read its rows first.
        return (
            preview_close(run, entry, intent)
            if commit is None
            else foreseen_release(run, entry, intent, commit)
        )
    return foreseen_delete(run, entry, intent, commit)


def finish_apart(run: RunContext[SliceT], entry: Entry | None, intent: Intent) -> Entry:
    """Finish the delete or the release of an intent, which no plan has; return its entry.

    Raises:
        NeedsDecision, Conflict, TargetError, ConfigurationError: as
            :func:`resources.loop.deleting.commit_delete` and
            :func:`resources.loop.rules.releasing.commit_release` describe.
    """
    finish = finish_release if intent.released is not None else finish_delete
    return finish(run, entry, intent)
