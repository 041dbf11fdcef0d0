"""Which decisions skip the checks of a run, so that they work whatever became of the table.

See docs/reference/state.md.
"""

from __future__ import annotations

from partitions.dataflow import Dataflow
from resources.decisions.draft import Draft
from resources.loop.entries import names_other_table
from resources.watermarks.entry import Entry, Why

_NEW_STATE: tuple[Why, ...] = ("adopt", "reset", "import")
"""Decisions that do not build on what the log says of the table."""


def skips_guards(dataflow: Dataflow, last: Entry | None, draft: Draft) -> bool:
    """Return whether a decision replaces the state, so that state and table need not match."""
    return draft.entry.why in _NEW_STATE or draft.takes_table or names_other_table(dataflow, last)
