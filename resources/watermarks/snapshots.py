"""Store long watermarks as changes since a snapshot (docs/explanation/watermarks.md, The log).

Readers of the log get whole watermarks.
"""

from __future__ import annotations

import json

from partitions.difference import apply_difference, json_difference
from resources.watermarks.entry import Entry, corrupt_record_error

SNAPSHOT_EVERY = 100
"""Entries after which a long watermark is stored whole again."""

_LONG = 2048
"""Characters of a watermark below which it is always stored whole."""


def assign_snapshot(entry: Entry) -> Entry:
    """Return the entry with the number of its snapshot.

    It is the snapshot that it continues from, the entry itself, or None for a short watermark.
    """
    start = entry.snapshot
    if len(entry.watermark) < _LONG:
        return entry if start is None else entry.model_copy(update={"snapshot": None})
    whole = start is None or entry.number - start >= SNAPSHOT_EVERY
    return entry.model_copy(update={"snapshot": entry.number}) if whole else entry


def keep_changes_only(entry: Entry, snapshot: Entry) -> Entry:
    """Return the entry with the changes since its snapshot instead of its watermark."""
    changes = json_difference(json.loads(snapshot.watermark), json.loads(entry.watermark))
    return entry.model_copy(update={"watermark": "", "changes": changes})


def restore_whole(entry: Entry, snapshot: Entry, where: str) -> Entry:
    """Return the entry with its whole watermark; ``where`` describes it in errors.

    Raises:
        CorruptWatermark: its changes do not belong to this snapshot.
    """
    try:
        watermark = json.dumps(
            apply_difference(json.loads(snapshot.watermark), entry.changes or {}), sort_keys=True
        )
    except ValueError as error:
        raise corrupt_record_error(where, f"changes: {error}") from error
    return entry.model_copy(update={"watermark": watermark, "changes": None})
