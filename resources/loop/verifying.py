"""Step 3, verify: which table commit carries a number (docs/explanation/protocol.md).

A write without an error proves nothing.
"""

from __future__ import annotations

from partitions.errors import NeedsDecision
from resources.kinds.contract.slices import SliceT
from resources.loop.context import RunContext
from resources.loop.guards.table import check_table, known_commit
from resources.loop.intents import lost_number_error
from resources.tables.contract.commits import TableHead, TaggedCommit
from resources.watermarks.entry import Entry, Intent


def guarded_head(run: RunContext[SliceT], entry: Entry | None) -> TableHead:
    """Return what the table's log says; raise unless state and table match.

    Raises:
        NeedsDecision: they do not match.
        Conflict, DataflowHeld: they do not match because of another run, whose intent is open.
    """
    try:
        return check_table(run.dataflow, entry, run.table, own_state=run.own_state)
    except NeedsDecision:
        winner = run.log.open_intent(run.name, entry)
        if winner is None:
            raise
        raise lost_number_error(run, winner) from None


def find_commit(run: RunContext[SliceT], entry: Entry | None, intent: Intent) -> TaggedCommit | None:
    """Return the commit that carries an intent's number; None if there is none.

    Raises:
        NeedsDecision: state, open intent and table do not match; or the table holds the number, and it is
            unknown whose it is.
    """
    return head_with_intent(run, entry, intent).find_tagged_commit(intent.number)


def verified_commit(run: RunContext[SliceT], entry: Entry | None, intent: Intent) -> TaggedCommit:
    """Return the commit that carries the number of a written intent, whoever committed it.

    Raises:
        NeedsDecision: code ``skipped_write``: there is none; or as :func:`find_commit` describes.
    """
    commit = find_commit(run, entry, intent)
    if commit is None:
        raise skipped_write(run, intent)
    return commit


def head_with_intent(run: RunContext[SliceT], entry: Entry | None, intent: Intent) -> TableHead:
    """Return what the table's log says, if state, open intent and table match.

    Raises:
        NeedsDecision: as :func:`find_commit` describes.
    """
    try:
        head = check_table(run.dataflow, entry, run.table, intent, run.own_state)
    except NeedsDecision:
        newest = run.log.newest(run.name)
        if newest is None or newest.number < intent.number:
            raise
        # Another run took this one for dead, finished the intent or gave it up, and went on: the table is ahead because of it.
        head = unguarded_head(run, entry, intent)
    if (
        head.commits_cleaned
        and head.highest_tag >= intent.number
        and head.find_tagged_commit(intent.number) is None
    ):
        raise NeedsDecision(
            f"dataflow {run.name}: table {run.dataflow.table} holds number {intent.number} under this "
            "dataflow's tag, but the commit that names its writer was cleaned from the table's log. Run "
            "`state adopt` to take the watermark from the table, or `state reset --replace` to reload it",
            code="unknown_commit",
            choices=_new_state(run),
        )
    return head


def is_guarded(run: RunContext[SliceT], entry: Entry | None, intent: Intent) -> bool:
    """Return whether state, open intent and table match, as :func:`head_with_intent` checks."""
    try:
        head_with_intent(run, entry, intent)
    except NeedsDecision:
        return False
    return True


def unguarded_head(run: RunContext[SliceT], entry: Entry | None, intent: Intent) -> TableHead:
    """Return what the table's log says, whether it matches the state or not."""
    return run.table.head(known_commit(entry, intent), intent.app_id)


def check_log(run: RunContext[SliceT], intent: Intent) -> None:
    """Raise if the log has lost the intent: a new entry would hide the loss.

    Raises:
        NeedsDecision: code ``state_lost``.
    """
    stored = run.log.intent(run.name, intent.number)
    if stored is None or stored.id != intent.id:
        raise NeedsDecision(
            f"dataflow {run.name}: expected the intent of slice {intent.number} in the watermark log, "
            f"found {'none' if stored is None else 'another one'}: the state was lost or restored while "
            "the slice was being written. The slice's rows are in the table. Run `state adopt` to take "
            "the watermark from the table, or `state reset --replace` to reload it",
            code="state_lost",
            choices=_new_state(run),
        )


def skipped_write(run: RunContext[SliceT], intent: Intent) -> NeedsDecision:
    """Return the error for a write that reported success and committed nothing."""
    return NeedsDecision(
        f"dataflow {run.name}: the write of slice {intent.number} reported success, but table "
        f"{run.dataflow.table} has no commit for it. A table silently skips a number that it already "
        "holds under this tag. Run `state adopt` to take the watermark from the table, or `state reset "
        "--replace` to reload it",
        code="skipped_write",
        choices=_new_state(run),
    )


def _new_state(run: RunContext[SliceT]) -> tuple[str, str]:
    """Return the commands that replace the state."""
    return (
        f"strandline state adopt {run.name} --reason TEXT",
        f"strandline state reset {run.name} --replace --reason TEXT",
    )
