"""What all decisions share: the draft of an entry, what it would lead to, and appending it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, Conflict, CorruptWatermark, NeedsDecision
from partitions.path.quarantine import Quarantine
from partitions.plan import Plan
from partitions.watermark import is_empty
from resources.decisions.kinds import rules_of
from resources.loop import holder as holders
from resources.loop.entries import in_table, moved
from resources.loop.guards import check_definition, definition_of
from resources.loop.holder import RunIsLive
from resources.loop.loop import clock
from resources.loop.table_guard import check_table, expiring
from resources.platform import Platform
from resources.tables.table import TableCommit, adopted_state
from resources.watermarks.entry import Entry, Intent, Why, following, new_id
from resources.watermarks.lists import INGESTED_FILES, QUARANTINED_FILES, StoredList
from resources.watermarks.log import QUARANTINE


@dataclass(frozen=True)
class Draft:
    """An entry that is not appended yet, and the lists that go with it.

    Attributes:
        entry: names no list yet.
        files: what it deals with, as rows of path, size, version, modification time and reason.
        quarantine: all files in quarantine after it; None leaves them as they are.
        dealt_with: what becomes of files that no run loads any more, for people; "" if a run may.
        remarks: what else there is to know before it is decided, for people.
        takes_table: whether it takes the table as it is, although it builds on the state: there is nothing else to take.
    """

    entry: Entry
    files: Sequence[Sequence[Any]] = ()
    quarantine: Quarantine | None = None
    dealt_with: str = ""
    remarks: Sequence[str] = ()
    takes_table: bool = False


_ANEW: tuple[Why, ...] = ("adopt", "reset", "import")
"""Decisions that do not build on what the log says of the table."""


def _anew(dataflow: Dataflow, last: Entry | None, draft: Draft) -> bool:
    """Whether a decision takes the state anew, so that the table may be what it is: it leads on whatever became of the table."""
    return draft.entry.why in _ANEW or draft.takes_table or moved(dataflow, last)


DraftBuilder = Callable[[Platform, Dataflow, Entry | None], Draft]
"""Makes the draft on top of the newest entry. Raises what the decision's own function says."""


@dataclass(frozen=True)
class Preview:
    """What a decision would lead to.

    Attributes:
        draft: as it would be appended now.
        plan: what the next run would do then.
        lines: sentences for people.
    """

    draft: Draft
    plan: Plan[Any]
    lines: tuple[str, ...]


def preview(
    platform: Platform,
    dataflow: Dataflow,
    build_draft: DraftBuilder,
    now: datetime,
    run_is_live: RunIsLive = lambda run_id: None,
) -> Preview:
    """What the next run would do if this was decided. Changes nothing, starts no Spark.

    Raises:
        Held: while a living run works on a slice.
    """
    last, open_ = platform.unfinished(dataflow, now, run_is_live).preview()
    then = platform.rehearsal()
    if last is not None and open_ is not None:
        then.log.append(dataflow.name, last, expected=last.previous)
    draft = build_draft(then, dataflow, last)
    if not _anew(dataflow, last, draft):
        check_table(dataflow, platform.log.newest(dataflow.name), platform.table(dataflow), open_)
    entry = _appended(then, dataflow, draft)
    plan = then.kind(dataflow).plan(entry, now)
    before, after = last.watermark if last else "{}", draft.entry.watermark
    lines = [
        f"the watermark goes from {before} to {after}"
        if before != after
        else f"the watermark stays at {after}"
    ]
    if open_ is not None:
        lines.insert(0, _ended(open_, last))
    if draft.dealt_with:
        lines.append(draft.dealt_with)
    lines.extend(draft.remarks)
    lines.append(f"next run: {plan.why}")
    lines.extend(f"warning: {warning}" for warning in plan.warnings)
    # An adopted state tells what is in the table; the one before it may speak of rows that are gone.
    lines.extend(_again(then, dataflow, entry if entry.why == "adopt" else last, draft, plan))
    return Preview(draft, plan, tuple(lines))


def _ended(intent: Intent, last: Entry | None) -> str:
    """What becomes of an intent that somebody left open."""
    if intent.is_decision:
        return f"number {intent.number}, of another decision ({intent.why}) that was begun and not finished, is dropped"
    landed = last is not None and last.why != "abandon"
    ended = "appended: it was written" if landed else "given up: its work is planned again"
    return f"slice {intent.number}, which a run left unfinished, is {ended}"


def decide(
    platform: Platform,
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
            reason, new_state=_anew(dataflow, foreseen, build_draft(platform, dataflow, foreseen))
        )
    log, name = platform.log, dataflow.name
    last = log.newest(name)
    draft = build_draft(platform, dataflow, last)
    claim = _claim(dataflow, last, draft.entry)
    if not _anew(dataflow, last, draft):
        try:
            unfinished.check_table(
                last
            )  # with the numbers as they are: a decision's must not make somebody else's tag look known
        except Conflict as error:
            raise _overtaken(claim, log.intent(name, claim.number)) from error
    holders.mark_active(claim.id)
    try:
        winner = log.put_intent(claim)
        if winner.id != claim.id:
            raise _overtaken(claim, winner)
        return _appended(platform, dataflow, draft)
    finally:
        holders.mark_inactive(claim.id)


def _overtaken(claim: Intent, winner: Intent | None) -> Conflict:
    who = f" ({winner.why}, run {winner.run_id or 'unknown'})" if winner else ""
    return Conflict(
        f"dataflow {claim.dataflow}: number {claim.number} was begun by another run{who} while {claim.why} was decided. Nothing was"
        " appended; decide again when it is over"
    )


def _claim(dataflow: Dataflow, last: Entry | None, entry: Entry) -> Intent:
    """The intent of a decision. It takes the number after the newest, whichever the entry will have."""
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
        holder=holders.this_process(None),
        time=entry.time,
    )


def _appended(platform: Platform, dataflow: Dataflow, draft: Draft) -> Entry:
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


def draft_entry(
    platform: Platform,
    dataflow: Dataflow,
    last: Entry | None,
    why: Why,
    reason: str,
    *,
    takes_table: bool = False,
    **changes: Any,
) -> Entry:
    """The entry after ``last``, under the definition as it is now.

    Args:
        platform: the resources.
        dataflow: whose state it is.
        last: the newest entry.
        why: of the entry.
        reason: of the operator.
        takes_table: whether the table as it is now belongs to the state from here on.
        changes: other fields of the entry.

    Raises:
        ConfigurationError: if nobody says why.
        NeedsDecision: code ``tags_expire``.
    """
    if not reason.strip():
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a reason, which stays in the log, found none"
        )
    app_id = changes.get("app_id") or _app_id(platform, dataflow, last)
    tip = platform.table(dataflow).tip(app_id)
    if tip.tags_expire:
        raise expiring(dataflow, tip)
    decided: dict[str, Any] = {
        "kind": dataflow.kind,
        "app_id": app_id or new_id(),
        # Above the table's last tag, too: an idempotent writer would skip the next write in silence.
        "number": max(last.number if last else 0, tip.tag) + 1,
        "why": why,
        "reason": reason,
        "fingerprint": dataflow.fingerprint,
    }
    if takes_table:
        decided |= {**in_table(dataflow, tip.newest or TableCommit(None)), "new_columns": False}
    entry = following(last, **{**decided, **changes})
    before = None if tip.newest is None else _in_table(platform, dataflow, last, entry)
    watermark = rules_of(platform, dataflow).migrate_watermark(entry.watermark, clock(), before)
    return entry.model_copy(update={"watermark": watermark})


def _in_table(platform: Platform, dataflow: Dataflow, last: Entry | None, entry: Entry) -> Entry | None:
    """The newest entry that says which windows the table holds after a decision; None if only the decision itself says it.

    A reset that is to empty the table, and has not yet, says nothing of the rows that are there if the decision keeps them. A state that is
    adopted says it itself, unless no commit has told it.
    """
    if last is None or entry.replace_table or (entry.why == "adopt" and not is_empty(entry.state())):
        return None
    entries = chain([last], platform.log.history(dataflow.name))
    telling = next((past for past in entries if not past.replace_table), None)
    return telling if telling and telling.table == dataflow.table else None


def _app_id(platform: Platform, dataflow: Dataflow, last: Entry | None) -> str | None:
    """The dataflow's id in the table. If no entry knows the table, the table tells: a run that died may still write under the id there."""
    if last is None or last.table is None:
        with suppress(NeedsDecision):  # only its watermark is lost
            adopted = adopted_state(platform.table(dataflow))
            if adopted and adopted.app_id:
                return adopted.app_id
    return last.app_id if last else None


def require_entry(dataflow: Dataflow, last: Entry | None) -> Entry:
    """The newest entry.

    Raises:
        ConfigurationError: if there is none.
    """
    if last is None:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: there is no state yet, so run `strandline run {dataflow.name}` first"
        )
    return last


def require_current_definition(platform: Platform, dataflow: Dataflow, last: Entry | None) -> Entry:
    """The newest entry, made with the definition as it is now: only such a one may be built on without a word about it.

    Raises:
        ConfigurationError: if there is none.
        NeedsDecision: code ``definition_changed``.
    """
    last = require_entry(dataflow, last)
    check_definition(dataflow, last, platform.log)
    return last


def _again(
    platform: Platform, dataflow: Dataflow, known: Entry | None, draft: Draft, plan: Plan[Any]
) -> list[str]:
    """What happens to rows that were loaded before, as far as an entry knows; nothing if there is no table to hold them."""
    if not platform.table(dataflow).exists():
        return []
    try:
        count, part = rules_of(platform, dataflow).count_already_loaded(plan.slices, known)
    except CorruptWatermark as error:  # which a decision may be made for
        return [f"it is unknown how much of it was loaded before: {error.message}"]
    if not count:
        return []
    verb = "ingested" if part == "file" else "loaded"
    times_loaded = f"{count:,} of these {part}s {'was' if count == 1 else 'were'} {verb} before"
    if draft.entry.replace_table:
        return [f"{times_loaded}; the first commit empties the table, so their rows are there once"]
    adding = [slice_ for slice_ in plan.slices if not slice_.replaces]
    added, _ = rules_of(platform, dataflow).count_already_loaded(adding, known)
    if draft.entry.replace_until or dataflow.target.replace_by_watermark or not added:
        own = "the rows of its own files" if part == "file" else "what it reads of them,"
        return [
            f"{times_loaded}; each commit deletes {own} and inserts {'them' if part == 'file' else 'it'} again"
        ]
    hint = " (--replace makes room for them)" if draft.entry.why in ("rewind", "reset") else ""
    return [f"{times_loaded}; load: {dataflow.target.load} adds their rows a second time{hint}"]
