"""Find what the live log holds of a promote: its entry, and the entries since the replay began."""

from __future__ import annotations

from partitions.errors import (
    NeedsDecision,
)
from resources.replay.isolated.standing import (
    IsolatedReplay,
    drop_command,
    is_marked,
    replay_command,
)
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog

_MAX_ENTRIES = 1_000_000
"""All that the log has."""


def promoted_entry(log: WatermarkLog, isolated: IsolatedReplay, newest: Entry | None) -> Entry | None:
    """Return the entry that promoted a replay; None if there is none.

    Raises:
        NeedsDecision: code ``promote_unknown``: a promote was begun, and the log no longer shows whether
            it was committed.
    """
    if newest is None or not is_marked(log, isolated, "promoting"):
        return None
    for entry in entries_since(log, isolated):
        if entry.why == "promote" and entry.id == isolated.intent_id(entry.number):
            return entry
    if log.floor(isolated.dataflow) > isolated.number:
        raise NeedsDecision(
            f"dataflow {isolated.dataflow}: a promote of {isolated.table} began, and later entries were removed from the log, so it is unknown whether the promote was"
            " committed. Compare the two tables. If the live table lacks the rows, replay into another table",
            code="promote_unknown",
            choices=(drop_command(isolated), replay_command(isolated)),
        )
    return None


def entries_since(log: WatermarkLog, isolated: IsolatedReplay) -> list[Entry]:
    """Return the live entries since a replay began, newest first."""
    entries = []
    for entry in log.history(isolated.dataflow, _MAX_ENTRIES):
        if entry.number <= isolated.number:
            break
        entries.append(entry)
    return entries
