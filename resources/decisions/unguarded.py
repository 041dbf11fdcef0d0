"""Which decisions skip the checks of a run, so that they work whatever became of table or state.

See docs/reference/state.md.
"""

from __future__ import annotations

from contextlib import suppress

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from resources.decisions.draft import Draft
from resources.loop.entries import names_other_table
from resources.loop.guards.table import find_other_writer, known_commit
from resources.loop.table_errors import TableErrors
from resources.platform.stores import Stores
from resources.watermarks.entry import Entry, Why

NEW_STATE: tuple[Why, ...] = ("adopt", "reset", "import")
"""Decisions that do not build on what the log says of the table."""

_TAKE_OVER: tuple[Why, ...] = ("accept", *NEW_STATE)
"""Decisions after which this state counts as the one that writes the table."""


def check_writer(platform: Stores, dataflow: Dataflow, last: Entry | None, draft: Draft) -> None:
    """Raise if the table's last commit names another state, unless the decision takes the table over.

    Raises:
        NeedsDecision: code ``other_writer``.
    """
    if last is None or draft.entry.why in _TAKE_OVER:
        return
    head, own_state = (
        platform.table(dataflow).head(known_commit(last, None), last.app_id),
        platform.own_state(dataflow),
    )
    if not own_state.knows(head.writer):
        raise TableErrors(dataflow, last).other_writer(head, own_state.writer)


def take_over(platform: Stores, dataflow: Dataflow, entry: Entry) -> None:
    """Count the state that the table's last commit names as this one, if a decision takes the table over.

    If the process dies before, the next run stops again, and the same decision ends it.
    """
    if entry.why in _TAKE_OVER:
        with suppress(StrandlineError):  # of a table that cannot be read the next run speaks
            head = platform.table(dataflow).head(known_commit(entry, None), entry.app_id)
            platform.own_state(dataflow).take_over(head.writer)


def describe_take_over(platform: Stores, dataflow: Dataflow, draft: Draft) -> list[str]:
    """Return a line that names the other state that writes the table, if the decision takes it over."""
    own_state = platform.own_state(dataflow)
    writer = find_other_writer(platform.table(dataflow), own_state) if draft.entry.why in _TAKE_OVER else None
    if writer is None:
        return []
    deleted = " and deletes its rows" if draft.entry.replace_table else ""
    warning = (
        f"warning: the state {writer.state} of project {writer.project} has written the table {dataflow.table}. "
        f"This decision takes it over{deleted}. If that state still loads it, say no, and give this project a "
        "lake of its own"
    )
    return [warning]


def skips_guards(dataflow: Dataflow, last: Entry | None, draft: Draft) -> bool:
    """Return whether a decision replaces the state, so that state and table need not match."""
    return draft.entry.why in NEW_STATE or draft.takes_table or names_other_table(dataflow, last)
