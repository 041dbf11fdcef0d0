"""The preview of a decision, made on a rehearsal of the log.

See docs/reference/state.md, Decisions by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import CorruptWatermark, StrandlineError
from partitions.plan import Plan
from partitions.spelling import first_few
from partitions.target import Target
from resources.decisions.checksums import checksums_of_draft, unknown_contents_note
from resources.decisions.deciding import foresee_end, put_lists
from resources.decisions.deleted_rows_in_table import describe_deletes
from resources.decisions.draft import Draft, DraftBuilder
from resources.decisions.reset import describe_emptied_files
from resources.decisions.unguarded import check_writer, describe_take_over, skips_guards
from resources.kinds.contract.decisions import FreesCopies, LoadedBefore
from resources.kinds.contract.lost_rows import lost_in_all
from resources.loop.guards.table import check_table
from resources.platform.opener import Opener
from resources.watermarks.entry import DELETES, Entry, Intent
from resources.watermarks.holder import RunIsLive

_NAMED = 5
_HISTORY = 1_000_000


@dataclass(frozen=True)
class Preview:
    """The consequences of a decision.

    Attributes:
        draft: the draft that would be appended now.
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
    """Return the draft of a decision and its consequences, the next run's plan included. Change nothing.

    Spark starts only to count rows that a delete in force names.

    Args:
        platform: the resources.
        dataflow: the dataflow whose state would change.
        build_draft: the decision.
        now: the clock, aware.
        run_is_live: asks Dagster about a run on another machine.
        in_words: turns a stored watermark into text for people.

    Raises:
        StrandlineError: as ``build_draft`` raises.
        DataflowHeld: a living run or another decision works on the next number.
        NeedsDecision: state and table do not match, and the decision builds on the state; code
            ``other_writer``.
    """
    rehearsal = platform.rehearsal()
    last, open_intent = foresee_end(rehearsal, dataflow, build_draft, now, run_is_live)
    draft = build_draft(rehearsal, dataflow, last)
    check_writer(platform, dataflow, last, draft)
    if not skips_guards(dataflow, last, draft):
        check_table(dataflow, platform.log.newest(dataflow.name), platform.table(dataflow), open_intent)
    unknown_contents = unknown_contents_note(
        dataflow, draft.files, checksums_of_draft(rehearsal.log, dataflow.name, draft)
    )
    entry = put_lists(rehearsal, dataflow, draft)
    entry = rehearsal.log.append(dataflow.name, entry, expected=entry.previous)
    before, after = last.watermark if last else "{}", draft.entry.watermark
    lines = [_describe_move(before, after, in_words)]
    if open_intent is not None:
        lines.insert(0, _describe_end(open_intent, last))
    lines.extend(describe_take_over(platform, dataflow, draft))
    if draft.files_note:
        lines.append(draft.files_note)
    if draft.entry.replace_table:
        lines.extend(describe_emptied_files(rehearsal, dataflow, last))
    lines.extend((*draft.notes, *unknown_contents))
    lines.extend(describe_deletes(rehearsal, dataflow, last, open_intent, draft, entry, now))
    lines.extend(rehearsal.table_effects(dataflow, entry, last))
    try:
        plan = rehearsal.kind(dataflow).planning.plan(entry, now)
    except StrandlineError as error:  # the decision may be what mends it, and needs no source
        return Preview(draft, (*lines, f"next run: fails, as things are: {error.message}"))
    lines.append(f"next run: {plan.why}")
    lines.extend(f"warning: {warning}" for warning in plan.warnings)
    # An adopted state tells what is in the table; the one before it may speak of rows that are gone.
    known_entry = entry if entry.why == "adopt" else last
    lines.extend(_describe_reload(rehearsal, dataflow, known_entry, draft, plan))
    rules = rehearsal.rules(dataflow)
    if isinstance(rules, FreesCopies) and not draft.entry.replace_table:
        with suppress(CorruptWatermark):  # which a decision may be made for
            lines.extend(rules.describe_freed_copies(plan.slices, known_entry))
    return Preview(draft, tuple(lines))


def _describe_move(before: str, after: str, in_words: Callable[[str], str]) -> str:
    """Describe how the watermark moves; in its stored form if both read the same in words."""
    if before == after:
        return f"the watermark stays as it is: {in_words(after)}"
    texts = (in_words(before), in_words(after))
    before_text, after_text = texts if texts[0] != texts[1] else (before, after)
    return f"the watermark now: {before_text}; after this decision: {after_text}"


def _describe_end(intent: Intent, last: Entry | None) -> str:
    """Describe how the decision ends an open intent."""
    if intent.is_decision:
        return f"number {intent.number}, of an unfinished decision ({intent.why}), is dropped"
    if intent.predicate is not None and last is not None and last.why != "abandon":
        return f"delete {intent.number}, which is unfinished, is finished: rows where {intent.predicate}"
    was_written = last is not None and last.why != "abandon"
    outcome = "appended: it was written" if was_written else "given up: its work is planned again"
    return f"slice {intent.number}, which a run left unfinished, is {outcome}"


def _describe_reload(
    platform: Opener, dataflow: Dataflow, known_entry: Entry | None, draft: Draft, plan: Plan[Any]
) -> list[str]:
    """Describe what happens to rows that are loaded a second time; nothing if the table does not exist."""
    if not platform.table(dataflow).exists():
        return []
    try:
        loaded = platform.rules(dataflow).count_already_loaded(plan.slices, known_entry)
    except CorruptWatermark as error:  # which a decision may be made for
        return [f"it is unknown how much of it was loaded before: {error.message}"]
    lines = []
    if loaded.without_rows:
        fate = _fate_of_missing_rows(platform, dataflow, known_entry)
        lines = [f"of these files the table holds no row; {fate}: {first_few(loaded.without_rows, _NAMED)}"]
    return [*lines, *_describe_second_load(platform, dataflow, known_entry, draft, plan, loaded)]


def _fate_of_missing_rows(platform: Opener, dataflow: Dataflow, known_entry: Entry | None) -> str:
    """Return whether rows that the table lost come back, for people: a delete and an expiry are final."""
    others = (
        "later files have replaced their rows, or others deleted them, and a key comes back if no later file holds it"
        if dataflow.target.merges
        else "if others deleted their rows, they come back"
    )
    past_entries = platform.log.history(dataflow.name, _HISTORY)
    if not any(entry.why in DELETES for entry in past_entries):
        return others
    own = "what a delete in force or the retention names stays away"
    return own if lost_in_all(platform.table(dataflow), known_entry).are_none else f"{own}; {others}"


def _describe_second_load(
    platform: Opener,
    dataflow: Dataflow,
    known_entry: Entry | None,
    draft: Draft,
    plan: Plan[Any],
    loaded: LoadedBefore,
) -> list[str]:
    """Describe whether rows that are loaded again take the place of the old ones, or join them."""
    count, part, names, _ = loaded
    if not count:
        return []
    verb = "ingested" if part == "file" else "loaded"
    parts = "batches" if part == "batch" else f"{part}s"
    times_loaded = f"{count:,} of these {parts} {'was' if count == 1 else 'were'} {verb} before"
    named = f": {first_few(names, _NAMED)}" if names else ""
    if draft.entry.replace_table:
        return [f"{times_loaded}; the first commit empties the table, so their rows are there once{named}"]
    adding = [slice_ for slice_ in plan.slices if not slice_.replaces]
    added = platform.rules(dataflow).count_already_loaded(adding, known_entry).amount
    target = dataflow.target
    if target.merges:
        return [f"{times_loaded}; {_describe_merge(target, part, draft)}{named}"]
    if draft.entry.replace_until or not target.only_adds or not added:
        own = "the rows of its own files" if part == "file" else "what it reads of them,"
        again = "them" if part == "file" else "it"
        return [f"{times_loaded}; each commit deletes {own} and inserts {again} again{named}"]
    hint = " (--replace makes room for them)" if draft.entry.why in ("rewind", "reset") else ""
    return [f"{times_loaded}; load: {target.load} adds their rows a second time{hint}{named}"]


def _describe_merge(target: Target, part: str, draft: Draft) -> str:
    """Describe what a load by keys does with rows that are loaded again."""
    if target.load == "scd2":
        return "load: scd2 adds the versions that the history lacks, and deletes none"
    by_keys = f"load: {target.load} finds their rows in the table by merge_keys"
    if draft.entry.replace_until is None:
        return by_keys
    own = "of its own files" if part == "file" else "that it reads again"
    return f"{by_keys}; each commit also deletes the rows {own} whose keys the source no longer holds there"
