"""How a decision is appended: by an intent of its own, after what a run had left open was ended (docs/reference/state.md, Decisions by hand)."""

from __future__ import annotations

from partitions.dataflow import Dataflow
from partitions.errors import Conflict
from resources.decisions.draft import Draft, DraftBuilder
from resources.decisions.unguarded import leads_on
from resources.loop.definition_guard import definition_of
from resources.loop.loop import clock
from resources.platform.opener import Opener
from resources.watermarks import holder as holders
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.holder import RunIsLive
from resources.watermarks.lists import INGESTED_FILES, QUARANTINED_FILES, StoredList
from resources.watermarks.stored_objects import QUARANTINE


def decide(
    platform: Opener,
    dataflow: Dataflow,
    build_draft: DraftBuilder,
    reason: str,
    run_is_live: RunIsLive = lambda run_id: None,
) -> Entry:
    """Append the decision, after what a run had left open was ended: its number would be the decision's.

    Its intent is put first. So no run can begin the same number, and write rows that the entry knows nothing of.

    Args:
        platform: the resources.
        dataflow: whose state it is.
        build_draft: the decision.
        reason: of the operator; also of giving up what a run had left open.
        run_is_live: asks Dagster about a run on another machine.

    Raises:
        Held: while a living run, or another decision, works on the next number.
        Conflict: if another writer was faster.
    """
    unfinished = platform.unfinished(dataflow, clock(), run_is_live)
    foreseen, open_ = unfinished.preview()
    if open_ is not None:
        unfinished.close(
            reason, new_state=leads_on(dataflow, foreseen, build_draft(platform, dataflow, foreseen))
        )
    log, name = platform.log, dataflow.name
    last = log.newest(name)
    draft = build_draft(platform, dataflow, last)
    claim = claim_of(dataflow, last, draft.entry)
    if not leads_on(dataflow, last, draft):
        try:
            # With the numbers as they are: a decision's must not make the tag of another writer look known.
            unfinished.check_table(last)
        except Conflict as error:
            raise _overtaken(claim, log.intent(name, claim.number)) from error
    unfinished.follow_up(last)
    return _append_claimed(platform, dataflow, claim, draft)


def _append_claimed(platform: Opener, dataflow: Dataflow, claim: Intent, draft: Draft) -> Entry:
    """Put the decision's intent, then append its entry; this process holds the number until that is done."""
    holders.mark_active(claim.id)
    try:
        winner = platform.log.put_intent(claim)
        if winner.id != claim.id:
            raise _overtaken(claim, winner)
        return append_draft(platform, dataflow, draft)
    finally:
        holders.mark_inactive(claim.id)


def _overtaken(claim: Intent, winner: Intent | None) -> Conflict:
    who = f" ({winner.why}, run {winner.run_id or 'unknown'})" if winner else ""
    return Conflict(
        f"dataflow {claim.dataflow}: number {claim.number} was begun by another run{who} while {claim.why} was decided. Nothing was"
        " appended; decide again when it is over"
    )


def claim_of(dataflow: Dataflow, last: Entry | None, entry: Entry) -> Intent:
    """Return the intent of an entry that writes no rows. It takes the number after the newest, whichever the entry will have."""
    return Intent(
        id=entry.id,
        number=last.number + 1 if last else 1,
        dataflow=dataflow.name,
        kind=dataflow.kind,
        app_id=entry.app_id,
        why=entry.why,
        before=last.watermark if last else "{}",
        watermark=entry.watermark,
        definition=definition_of(dataflow),
        fingerprint=entry.fingerprint,
        pinned="",
        file_list="",
        holder=holders.current_holder(None),
        time=entry.time,
    )


def append_draft(platform: Opener, dataflow: Dataflow, draft: Draft) -> Entry:
    """Put the lists that the entry names, then append it."""
    log, name = platform.log, dataflow.name
    entry, objects = draft.entry, f"{draft.entry.number:010d}-{draft.entry.id}"
    if draft.files:
        entry = entry.model_copy(
            update={"file_list": log.put_list(name, objects, StoredList(INGESTED_FILES, draft.files))}
        )
    if draft.quarantine is not None:
        rows = draft.quarantine.rows()
        kept = log.put_list(name, objects, StoredList(QUARANTINED_FILES, rows), QUARANTINE) if rows else None
        entry = entry.model_copy(update={"quarantine": kept})
    return log.append(name, entry, expected=entry.previous)
