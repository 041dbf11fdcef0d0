"""What a decision would lead to: shown before it is taken, on a rehearsal of the log (docs/reference/state.md, Decisions by hand)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import CorruptWatermark, StrandlineError
from partitions.plan import Plan
from resources.decisions.deciding import append_draft
from resources.decisions.draft import Draft, DraftBuilder
from resources.decisions.unguarded import leads_on
from resources.loop.table_guard import check_table
from resources.platform.opener import Opener
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.holder import RunIsLive


@dataclass(frozen=True)
class Preview:
    """What a decision would lead to.

    Attributes:
        draft: as it would be appended now.
        lines: sentences for people.
    """

    draft: Draft
    lines: tuple[str, ...]


def preview(
    platform: Opener,
    dataflow: Dataflow,
    build_draft: DraftBuilder,
    now: datetime,
    run_is_live: RunIsLive = lambda run_id: None,
    in_words: Callable[[str], str] = str,
) -> Preview:
    """What the next run would do if this was decided. Changes nothing, starts no Spark.

    Args:
        platform: the resources.
        dataflow: whose state it is.
        build_draft: the decision.
        now: the clock, aware.
        run_is_live: asks Dagster about a run on another machine.
        in_words: says a watermark, given as it is stored, for people.

    Raises:
        Held: while a living run works on a slice.
    """
    last, open_ = platform.unfinished(dataflow, now, run_is_live).preview()
    then = platform.rehearsal()
    if last is not None and open_ is not None:
        then.log.append(dataflow.name, last, expected=last.previous)
    draft = build_draft(then, dataflow, last)
    if not leads_on(dataflow, last, draft):
        check_table(dataflow, platform.log.newest(dataflow.name), platform.table(dataflow), open_)
    entry = append_draft(then, dataflow, draft)
    before, after = last.watermark if last else "{}", draft.entry.watermark
    lines = [_moved(before, after, in_words)]
    if open_ is not None:
        lines.insert(0, _ended(open_, last))
    if draft.dealt_with:
        lines.append(draft.dealt_with)
    lines.extend(draft.remarks)
    try:
        plan = then.kind(dataflow).planning.plan(entry, now)
    except StrandlineError as error:  # the decision may be what mends it, and needs no source
        return Preview(draft, (*lines, f"next run: fails, as things are: {error.message}"))
    lines.append(f"next run: {plan.why}")
    lines.extend(f"warning: {warning}" for warning in plan.warnings)
    # An adopted state tells what is in the table; the one before it may speak of rows that are gone.
    lines.extend(_again(then, dataflow, entry if entry.why == "adopt" else last, draft, plan))
    return Preview(draft, tuple(lines))


def _moved(before: str, after: str, in_words: Callable[[str], str]) -> str:
    """Return where the watermark goes; as it is stored if words do not tell the two apart."""
    if before == after:
        return f"the watermark stays as it is: {in_words(after)}"
    said = (in_words(before), in_words(after))
    begin, end = said if said[0] != said[1] else (before, after)
    return f"the watermark now: {begin}; after this decision: {end}"


def _ended(intent: Intent, last: Entry | None) -> str:
    """Return what becomes of an intent that was left open."""
    if intent.is_decision:
        return f"number {intent.number}, of another decision ({intent.why}) that was begun and not finished, is dropped"
    landed = last is not None and last.why != "abandon"
    ended = "appended: it was written" if landed else "given up: its work is planned again"
    return f"slice {intent.number}, which a run left unfinished, is {ended}"


def _again(
    platform: Opener, dataflow: Dataflow, known: Entry | None, draft: Draft, plan: Plan[Any]
) -> list[str]:
    """What happens to rows that were loaded before, as far as an entry knows; nothing if there is no table to hold them."""
    if not platform.table(dataflow).exists():
        return []
    try:
        count, part = platform.rules(dataflow).count_already_loaded(plan.slices, known)
    except CorruptWatermark as error:  # which a decision may be made for
        return [f"it is unknown how much of it was loaded before: {error.message}"]
    if not count:
        return []
    verb = "ingested" if part == "file" else "loaded"
    parts = "batches" if part == "batch" else f"{part}s"
    times_loaded = f"{count:,} of these {parts} {'was' if count == 1 else 'were'} {verb} before"
    if draft.entry.replace_table:
        return [f"{times_loaded}; the first commit empties the table, so their rows are there once"]
    adding = [slice_ for slice_ in plan.slices if not slice_.replaces]
    added, _ = platform.rules(dataflow).count_already_loaded(adding, known)
    target = dataflow.target
    if target.merges:
        return [f"{times_loaded}; load: {target.load} finds their rows in the table by merge_keys"]
    if draft.entry.replace_until or not target.only_adds or not added:
        own = "the rows of its own files" if part == "file" else "what it reads of them,"
        return [
            f"{times_loaded}; each commit deletes {own} and inserts {'them' if part == 'file' else 'it'} again"
        ]
    hint = " (--replace makes room for them)" if draft.entry.why in ("rewind", "reset") else ""
    return [f"{times_loaded}; load: {target.load} adds their rows a second time{hint}"]
