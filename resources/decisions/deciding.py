"""How a decision is appended: under its own intent, after an open intent was ended.

See docs/reference/state.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from partitions.dataflow import Dataflow
from partitions.errors import Conflict
from resources.decisions.checksums import checksums_of_draft
from resources.decisions.draft import Draft, DraftBuilder, as_restoring
from resources.decisions.reasons import LOADED_REASONS
from resources.decisions.unguarded import NEW_STATE, check_writer, skips_guards, take_over
from resources.loop.guards.definition import definition_of
from resources.loop.loop import clock
from resources.loop.rows.deletes_of_table import (
    add_deletes_of_table,
    deletes_of_table,
    forgotten_of_table,
    renew_lists_of_table,
)
from resources.platform.opener import Opener
from resources.watermarks import holder as holders
from resources.watermarks.deleted_rows import (
    DeleteInForce,
    deletes_in_force,
    forgotten_deletes,
    put_deletes,
    put_forgotten,
    united,
    without_forgotten,
)
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.holder import RunIsLive
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.lists import CHECKSUMS, INGESTED_FILES, QUARANTINED_FILES, StoredList
from resources.watermarks.log import WatermarkLog
from resources.watermarks.stored_objects import QUARANTINE


def decide(
    platform: Opener,
    dataflow: Dataflow,
    build_draft: DraftBuilder,
    reason: str,
    run_is_live: RunIsLive = lambda run_id: None,
) -> Entry:
    """End the open intent, which has the next number; then append a decision and return its entry.

    The decision's own intent is stored first, so no run can begin the same number and write rows that the
    entry does not know.

    Args:
        platform: the resources.
        dataflow: the dataflow whose state changes.
        build_draft: the decision.
        reason: the operator's reason, also for ending a run's intent.
        run_is_live: asks Dagster about a run on another machine.

    Raises:
        StrandlineError: as ``build_draft`` raises.
        DataflowHeld: a living run or another decision works on the next number.
        Conflict: another writer was faster.
        NeedsDecision: state and table do not match, and the decision builds on the state; code
            ``other_writer``.
        TargetError: the open intent cannot be ended.
    """
    rehearsal = platform.rehearsal()
    foreseen_entry, open_intent = foresee_end(rehearsal, dataflow, build_draft, clock(), run_is_live)
    restoring = as_restoring(build_draft)
    if open_intent is not None or restoring is not None:
        foreseen = build_draft(rehearsal, dataflow, foreseen_entry)  # raises before anything is changed
    if restoring is not None:
        restoring.restore(platform.log, dataflow)
    unfinished = platform.unfinished_intent(dataflow, clock(), run_is_live)
    if open_intent is not None:
        check_writer(platform, dataflow, foreseen_entry, foreseen)
        unfinished.close(reason, new_state=skips_guards(dataflow, foreseen_entry, foreseen))
    log, name = platform.log, dataflow.name
    last = log.newest(name)
    draft = build_draft(platform, dataflow, last)
    check_writer(platform, dataflow, last, draft)
    claim = claim_of(dataflow, last, draft.entry)
    if not skips_guards(dataflow, last, draft):
        try:
            # With the numbers as they are: a decision's must not make the tag of another writer look known.
            unfinished.check_table(last)
        except Conflict as error:
            raise _conflict(claim, log.intent(name, claim.number)) from error
    unfinished.follow_up(last)
    entry = _append_claimed(platform, dataflow, claim, draft)
    take_over(platform, dataflow, entry)
    return entry


def foresee_end(
    rehearsal: Opener, dataflow: Dataflow, build_draft: DraftBuilder, now: datetime, run_is_live: RunIsLive
) -> tuple[Entry | None, Intent | None]:
    """Return the newest entry after a decision has ended the open intent, and that intent.

    A decision that restores the log does so before: an intent of the log as it is must not be held then.

    Args:
        rehearsal: resources whose log retains nothing: it holds that entry afterwards.
        dataflow: the dataflow whose state would change.
        build_draft: the decision.
        now: the clock, aware.
        run_is_live: asks Dagster about a run on another machine.

    Raises:
        DataflowHeld: a living run or another decision works on the next number.
    """
    unfinished = rehearsal.unfinished_intent(dataflow, now, run_is_live)
    restoring = as_restoring(build_draft)
    if restoring is not None:
        unfinished.check_not_held()
        restoring.restore(rehearsal.log, dataflow)
    entry, open_intent = unfinished.preview()
    if entry is not None and open_intent is not None:
        rehearsal.log.append(dataflow.name, entry, expected=entry.previous)
    return entry, open_intent


def _append_claimed(platform: Opener, dataflow: Dataflow, claim: Intent, draft: Draft) -> Entry:
    """Store the decision's intent and append its entry; this process holds the number meanwhile."""
    holders.mark_active(claim.id)
    try:
        winner = platform.log.put_intent(claim)
        if winner.id != claim.id:
            raise _conflict(claim, winner)
        entry = put_lists(platform, dataflow, draft)
        table, log = platform.table(dataflow), platform.log
        if entry.deletes is not None:
            add_deletes_of_table(table, entry.app_id, deletes_in_force(log, entry))
        entry = log.append(dataflow.name, entry, expected=entry.previous)
        if entry.deletes is not None or entry.forgotten is not None:
            renew_lists_of_table(table, log, entry)
        return entry
    finally:
        holders.mark_inactive(claim.id)


def _conflict(claim: Intent, winner: Intent | None) -> Conflict:
    who = f" ({winner.why}, run {winner.run_id or 'unknown'})" if winner else ""
    return Conflict(
        f"dataflow {claim.dataflow}: another run{who} took number {claim.number} while {claim.why} was decided. Nothing was appended."
        " Decide again when that run has ended"
    )


def claim_of(dataflow: Dataflow, last: Entry | None, entry: Entry) -> Intent:
    """Return the intent of an entry that writes no rows. It claims the number after the newest entry.

    The entry itself may have a higher number.
    """
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


def put_lists(platform: Opener, dataflow: Dataflow, draft: Draft) -> Entry:
    """Store the lists of a draft; return its entry, which names them and is not appended yet."""
    log, name = platform.log, dataflow.name
    entry, objects = draft.entry, f"{draft.entry.number:010d}-{draft.entry.id}"
    entry = entry.model_copy(update={"total_files": _count_loaded_files(log, name, draft)})
    if draft.files:
        checksums = checksums_of_draft(log, name, draft)
        head = {CHECKSUMS: [checksums.get(path) for path, *_ in draft.files]} if checksums else {}
        stored = StoredList(INGESTED_FILES, draft.files, head)
        entry = entry.model_copy(update={"file_list": log.put_list(name, objects, stored)})
    if draft.quarantine is not None:
        rows = draft.quarantine.rows()
        list_name = (
            log.put_list(name, objects, StoredList(QUARANTINED_FILES, rows), QUARANTINE) if rows else None
        )
        entry = entry.model_copy(update={"quarantine": list_name})
    deletes, forgotten = _deletes_after(platform, dataflow, draft)
    if deletes is not None:
        entry = entry.model_copy(update={"deletes": put_deletes(log, name, objects, deletes)})
    if forgotten is not None:
        entry = entry.model_copy(update={"forgotten": put_forgotten(log, name, objects, forgotten)})
    return entry


def _count_loaded_files(log: WatermarkLog, dataflow: str, draft: Draft) -> int:
    """Return how many files count as loaded after a decision, as the ledger counts their records."""
    entry = draft.entry
    listed = sum(_is_loaded(reason) for *_, reason in draft.files)
    if entry.era >= entry.number - 1:  # only its own list counts from now on
        return listed
    if not draft.files:
        return entry.total_files
    record = IngestedFiles(log, dataflow, log.newest(dataflow))
    earlier = record.find_records([path for path, *_ in draft.files]).values()
    return entry.total_files + listed - sum(_is_loaded(file.reason) for file in earlier)


def _is_loaded(reason: str | None) -> bool:
    return reason is None or reason in LOADED_REASONS


def _deletes_after(
    platform: Opener, dataflow: Dataflow, draft: Draft
) -> tuple[Sequence[DeleteInForce] | None, Mapping[str, int] | None]:
    """Return the deletes in force after a decision, and the forgotten ones; None if they stay as they are.

    A decision that takes its state from elsewhere also takes the deletes that the table knows. What the log
    has forgotten later than an export, or an older table, stays forgotten.
    """
    entry = draft.entry
    forgotten = forgotten_deletes(platform.log, entry)
    if entry.why == "forget" and entry.predicate is not None:
        return draft.deletes, {**forgotten, entry.predicate: entry.number}
    if entry.why not in NEW_STATE:
        return draft.deletes, None
    table, in_force = platform.table(dataflow), deletes_in_force(platform.log, entry)
    of_table = forgotten_of_table(table, entry.app_id)
    all_forgotten = {
        predicate: max(forgotten.get(predicate, 0), of_table.get(predicate, 0))
        for predicate in (*forgotten, *of_table)
    }
    is_restored = entry.why == "import" and draft.deletes is None  # the log itself comes from the export
    after = united(
        without_forgotten(in_force, all_forgotten if is_restored else {}),
        without_forgotten(draft.deletes or (), all_forgotten),
        without_forgotten(deletes_of_table(table, entry.app_id), forgotten),
    )
    ended = dict(all_forgotten)
    for delete in after:
        ended.pop(delete.predicate, None)
    return (None if after == in_force else after, None if ended == forgotten else ended)
