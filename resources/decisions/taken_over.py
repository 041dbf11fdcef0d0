"""Shared parts of decisions that take a watermark from outside: ``state set`` and ``state import``.

See docs/reference/state.md.
"""

from __future__ import annotations

from contextlib import suppress

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from partitions.sentinels import deserialise
from resources.decisions.draft import Draft, app_id_of, draft_entry
from resources.decisions.files_in_table import missing_note, name_files
from resources.decisions.other_names import describe_doubtful_names, other_names
from resources.decisions.pending_reset import files_before_reset, take_back_reset
from resources.decisions.reasons import IN_TABLE, SET
from resources.kinds.contract.decisions import KnowsFiles, NeverGoesBack, OtherNames, StateRules
from resources.kinds.contract.lost_rows import fields_of_counts, lost_by_log
from resources.loop.guards.definition import check_watermark_form
from resources.platform.opener import Opener
from resources.tables.contract.adopting import adopted_state
from resources.watermarks.entry import Entry


def draft_of_set(
    platform: Opener,
    dataflow: Dataflow,
    last: Entry | None,
    reason: str,
    watermark: str,
    *,
    takes_table: bool,
) -> Draft:
    """Return the draft of a watermark that an operator typed. The files that it skips count as handled.

    Args:
        platform: the resources.
        dataflow: the dataflow whose state changes.
        last: the newest entry.
        reason: the operator's reason.
        watermark: sentinel JSON text.
        takes_table: whether the current table belongs to the state from now on.
    """
    rules = platform.rules(dataflow)
    check_not_behind(platform, dataflow, rules, last, watermark)
    files = rules.files_up_to(deserialise(watermark), above=last) if isinstance(rules, KnowsFiles) else ()
    table = platform.table(dataflow)
    lost_rows = lost_by_log(table, last, app_id_of(platform, dataflow, last))
    held_files = files_before_reset(rules, last, watermark)
    kept_rows = take_back_reset(platform, dataflow, last, watermark, held_files)
    entry = draft_entry(
        platform,
        dataflow,
        last,
        "set",
        reason,
        watermark=watermark,
        takes_table=takes_table,
        **fields_of_counts(table, lost_rows),
        **kept_rows.fields,
    )
    files_note = f"passed over, so neither loaded nor late: {name_files(files)}" if files else ""
    counts = held_files.counts or {}
    missing = (
        rules.not_ingested(held_files.absent or (), last) if isinstance(rules, KnowsFiles) and last else ()
    )
    listed = [(*file.row, IN_TABLE if file.path in counts else SET) for file in files]
    names = other_names(rules, last, watermark) if last and last.era else OtherNames()
    doubtful_names = describe_doubtful_names(OtherNames(above=names.above, unsure_above=names.unsure_above))
    notes = (*kept_rows.notes, *((missing_note(missing),) if missing else ()), *doubtful_names)
    rows = [*listed, *((*file.row, IN_TABLE) for file in missing)]
    return Draft(entry, rows, files_note=files_note, notes=notes)


def check_not_behind(
    platform: Opener, dataflow: Dataflow, rules: StateRules, last: Entry | None, watermark: str
) -> None:
    """Raise if the kind cannot go back, and a watermark lies below the newest entry's or table commit's.

    Raises:
        NeedsDecision: code ``no_rewind``; ``definition_changed``: the definition no longer fits the state.
    """
    if not isinstance(rules, NeverGoesBack):
        return
    if last is not None:
        check_watermark_form(dataflow, last, platform.log, platform.folder)
    planning = platform.kind(dataflow).planning
    watermarks = [last.watermark] if last is not None else []
    with suppress(NeedsDecision):  # the table's log tells no state
        adopted = adopted_state(platform.table(dataflow), last.app_id if last else None)
        watermarks += [adopted.state] if adopted and adopted.state else []
    if not all(planning.covers(watermark, known_watermark) for known_watermark in watermarks):
        rules.check_rewind()
