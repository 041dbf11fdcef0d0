"""Count the rows of a table that match a delete in force, before a decision takes the table as it is.

A RESTORE to a version before a delete brings its rows back, and so does a program that writes them. No load
meets them again, so the preview counts them and names the command that deletes them.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from partitions.plan import pluralize
from resources.decisions.delete_condition import own_rows
from resources.decisions.draft import Draft
from resources.decisions.unguarded import NEW_STATE, skips_guards
from resources.loop.rows.delete_marks import MARK, marked_rows, no_columns
from resources.loop.rows.deletes_of_table import deletes_of_table
from resources.platform.opener import Opener
from resources.spark.failures import root_cause
from resources.watermarks.deleted_rows import DeleteInForce, deletes_in_force, forgotten_deletes, united
from resources.watermarks.entry import Entry, Intent


def describe_deletes(
    platform: Opener,
    dataflow: Dataflow,
    last: Entry | None,
    unfinished: Intent | None,
    draft: Draft,
    entry: Entry,
    now: datetime,
) -> list[str]:
    """Describe the deletes in force after a decision, and the rows of the table that match them.

    Spark starts only for a decision that takes the table as it is, while deletes are in force.

    Args:
        platform: the resources, whose log may be a rehearsal.
        dataflow: the dataflow whose state changes.
        last: the newest entry before the decision.
        unfinished: the intent that the decision ends first, which may be a delete that still removes its
            rows; None if there is none.
        draft: the decision's draft.
        entry: its entry, with its lists.
        now: the clock, aware.
    """
    deletes = deletes_in_force(platform.log, entry)
    lines = []
    if entry.why in NEW_STATE and entry.deletes is not None:
        verb = "stays" if len(deletes) == 1 else "stay"
        lines.append(f"{pluralize(len(deletes), 'delete')} {verb} in force: no load writes such a row")
    lines += _describe_forgotten(platform, dataflow, last, draft, entry)
    takes_table = entry.why == "accept" or skips_guards(dataflow, last, draft)
    if takes_table and deletes and not entry.replace_table and platform.table(dataflow).exists():
        finished = unfinished.predicate if unfinished and last and last.why == "delete" else None
        committed = [delete for delete in deletes if delete.predicate != finished]
        lines += _describe_rows(platform, dataflow, entry, committed, now) if committed else []
    return lines


def _describe_forgotten(
    platform: Opener, dataflow: Dataflow, last: Entry | None, draft: Draft, entry: Entry
) -> list[str]:
    """Return a line for each delete of an export, or of an older table, that was forgotten later."""
    forgotten = forgotten_deletes(platform.log, entry) if entry.why in NEW_STATE else {}
    if not forgotten:
        return []
    deletes = united(
        deletes_in_force(platform.log, last),
        draft.deletes or (),
        deletes_of_table(platform.table(dataflow), entry.app_id),
    )
    return [
        f"the delete of entry {delete.number} ({delete.predicate}) was forgotten later, by entry {forgotten[delete.predicate]}, and stays"
        " forgotten"
        for delete in deletes
        if delete.predicate in forgotten
    ]


def _describe_rows(
    platform: Opener, dataflow: Dataflow, entry: Entry, deletes: Sequence[DeleteInForce], now: datetime
) -> list[str]:
    """Return a line for each delete that rows of the table match, or one that says why it is unknown."""
    from pyspark.sql import functions as F

    run = platform.loop(dataflow, now).context
    unknown = "it is unknown which rows of the table the deletes in force name"
    try:
        marked = marked_rows(dataflow.name, own_rows(run, run.table), deletes, no_columns)
        counts = marked.where(F.col(MARK).isNotNull()).groupBy(MARK).count().orderBy(MARK).collect()
    except NeedsDecision:
        return [f"{unknown}: one of them does not fit the table's columns"]
    except Exception as error:  # noqa: BLE001 - the decision may be what mends it, and needs no rows
        return [f"{unknown}: {root_cause(error)}"]
    is_read_again = entry.replace_until is not None
    return [
        _describe_match(dataflow.name, deletes[place], count, is_read_again=is_read_again)
        for place, count in counts
    ]


def _describe_match(name: str, delete: DeleteInForce, count: int, *, is_read_again: bool) -> str:
    verb, stay, them = ("matches", "stays", "it") if count == 1 else ("match", "stay", "them")
    until = " unless loads above the watermark read over them" if is_read_again else ""
    command = f"strandline delete {name} --where {shlex.quote(delete.predicate)} --reason TEXT"
    return (
        f"{pluralize(count, 'row')} of the table {verb} the delete of entry {delete.number}, and"
        f" {stay}{until}. To delete {them} again: {command}"
    )
