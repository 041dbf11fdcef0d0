"""Which decisions pass the guards of a run, and which lead on whatever became of the table (docs/reference/state.md, Which decisions pass the guards)."""

from __future__ import annotations

from partitions.dataflow import Dataflow
from resources.decisions.draft import Draft
from resources.loop.entries import moved
from resources.watermarks.entry import Entry, Why

_ANEW: tuple[Why, ...] = ("adopt", "reset", "import")
"""Decisions that do not build on what the log says of the table."""


def leads_on(dataflow: Dataflow, last: Entry | None, draft: Draft) -> bool:
    """Return whether a decision takes the state anew, so that the table may be what it is; all others pass the guards of a run first."""
    return draft.entry.why in _ANEW or draft.takes_table or moved(dataflow, last)
