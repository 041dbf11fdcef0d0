"""What the last run has seen of its source: notes beside its log.

Of a source that only Spark can read: without it a sensor would have to read all files to know that nothing is new. It is a chore and no
truth: if it is gone, a run too many is requested. Of a database: the transactions that rows wait for; if it is gone, they wait for those of
the next run.
"""

from __future__ import annotations

from contextlib import suppress

from partitions.column.writers import Awaited
from partitions.errors import CorruptWatermark, StrandlineError
from partitions.last_look import SourceLook
from resources.outcome import Outcome
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog

_LOOK, _AWAITED = "look", "awaited"


def note_look(log: WatermarkLog, outcome: Outcome) -> None:
    """Note what a run has seen, unless it failed. If the store fails, the note before stands, and a run too many is requested."""
    look = outcome.plan.look if outcome.plan else None
    if look is None or outcome.error is not None:
        return
    with suppress(StrandlineError):
        log.put_note(outcome.dataflow, _LOOK, {"id": _id(outcome.newest), **look.as_json()})


def last_look(log: WatermarkLog, dataflow: str, entry: Entry | None) -> SourceLook | None:
    """Return what the last run has seen; None if there is no note, or the state has changed since.

    Raises:
        ProviderError: if the store cannot be read.
    """
    note = log.note(dataflow, _LOOK) or {}
    try:
        return SourceLook.of(note) if note["id"] == _id(entry) else None
    except (KeyError, TypeError):
        return None


def note_awaited(log: WatermarkLog, outcome: Outcome) -> None:
    """Note which transactions the rows wait for that a run has left. If the store fails, they wait for those of the next run."""
    awaited = outcome.plan.awaited if outcome.plan else None
    if awaited is not None:
        with suppress(StrandlineError):
            log.put_note(outcome.dataflow, _AWAITED, {"id": _id(outcome.newest), **awaited.as_json()})


def last_awaited(log: WatermarkLog, dataflow: str) -> Awaited | None:
    """Return what the last run has left to open transactions; None if there is no note, or the state has changed since.

    Raises:
        ProviderError: if the store cannot be read.
    """
    note = log.note(dataflow, _AWAITED) or {}
    try:
        return Awaited.of(note) if note["id"] == _id(log.newest(dataflow)) else None
    except (KeyError, TypeError, ValueError, CorruptWatermark):
        return None


def _id(entry: Entry | None) -> str:
    return entry.id if entry else ""
