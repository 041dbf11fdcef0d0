"""What the last run that ended well has seen of a source that only Spark can read: a note beside its log.

Without it a sensor would have to read all files to know that nothing is new. It is a chore and no truth: if it is gone, a run too many is
requested.
"""

from __future__ import annotations

from contextlib import suppress

from partitions.errors import StrandlineError
from partitions.look import Look
from resources.loop.outcome import Outcome
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog

_LOOK = "look"


def note_look(log: WatermarkLog, outcome: Outcome) -> None:
    """Note what a run has seen, unless it failed. If the store fails, the note before stands, and a run too many is requested."""
    look = outcome.plan.look if outcome.plan else None
    if look is None or outcome.error is not None:
        return
    with suppress(StrandlineError):
        log.put_note(outcome.dataflow, _LOOK, {"id": _id(outcome.newest), **look.as_json()})


def last_look(log: WatermarkLog, dataflow: str, entry: Entry | None) -> Look | None:
    """Return what the last run has seen; None if there is no note, or the state has changed since.

    Raises:
        ProviderError: if the store cannot be read.
    """
    note = log.note(dataflow, _LOOK) or {}
    try:
        return Look.of(note) if note["id"] == _id(entry) else None
    except (KeyError, TypeError):
        return None


def _id(entry: Entry | None) -> str:
    return entry.id if entry else ""
