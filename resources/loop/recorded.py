"""The slice and the commit of a number that another run has planned or committed.

See docs/explanation/protocol.md.
"""

from __future__ import annotations

from typing import Any

from resources.kinds.contract.kind import Kind
from resources.kinds.contract.slices import SliceT
from resources.outcome import Committed
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.lists import SEEN_WORK_UNITS
from resources.watermarks.log import WatermarkLog
from resources.watermarks.stored_objects import OBSERVED


def recorded_slice(log: WatermarkLog, kind: Kind[SliceT], intent: Intent) -> SliceT:
    """Return the slice of an intent, from the list that was stored with it.

    Raises:
        CorruptWatermark: the list is missing, or cannot be parsed.
        NeedsDecision: code ``newer_state``: another version of the product wrote it.
    """
    stored_slices = kind.stored_slices
    return stored_slices.from_rows(intent, log.get_list(intent.file_list, stored_slices.list_kind))


def committed_slice(log: WatermarkLog, dataflow: str, kind: Kind[Any], entry: Entry) -> Committed | None:
    """Return a slice as another run committed it; None if the log no longer holds its intent."""
    intent = log.intent(dataflow, entry.number)
    if intent is None or intent.id != entry.id:
        return None
    slice_ = recorded_slice(log, kind, intent)
    stored = log.find_list(dataflow, OBSERVED, f"{entry.number:010d}-{entry.id}", SEEN_WORK_UNITS)
    stats = {(start, unit): counts for start, unit, *counts in stored.rows} if stored else {}
    return Committed(entry, entry.rows, entry.files, 0, 0.0, slice=slice_, stats=stats)
