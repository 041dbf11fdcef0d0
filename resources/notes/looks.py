"""Notes beside a log of what the last run saw of its source.

If only Spark can read a source: without the note, a sensor would have to read all files to know that
nothing is new. If the note is missing, one run too many is requested. For a database: the transactions
that rows wait for. If the note is missing, rows wait for the transactions of the next run.
"""

from __future__ import annotations

from contextlib import suppress

from partitions.column.open_transactions import AwaitedTransactions
from partitions.errors import CorruptWatermark, StrandlineError
from partitions.last_look import SourceSnapshot
from resources.outcome import Outcome
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog

_LOOK, _AWAITED = "look", "awaited"


def note_look(log: WatermarkLog, outcome: Outcome) -> None:
    """Note what a run saw of its source, unless the run failed.

    If the store fails, the previous note stays, and one run too many is requested.
    """
    look = outcome.plan.snapshot if outcome.plan else None
    if look is None or outcome.error is not None:
        return
    with suppress(StrandlineError):
        log.put_note(outcome.dataflow, _LOOK, {"id": _id(outcome.newest), **look.as_json()})


def last_look(log: WatermarkLog, dataflow: str, entry: Entry | None) -> SourceSnapshot | None:
    """Return what the last run saw of its source; None without a note, or if the state has changed since.

    Raises:
        ProviderError: if the store cannot be read.
    """
    note = log.note(dataflow, _LOOK) or {}
    try:
        return SourceSnapshot.of(note) if note["id"] == _id(entry) else None
    except (KeyError, TypeError):
        return None


def note_awaited(log: WatermarkLog, outcome: Outcome) -> None:
    """Note the transactions that skipped rows wait for.

    If the store fails, the rows wait for the transactions of the next run.
    """
    awaited = outcome.plan.awaited if outcome.plan else None
    if awaited is not None:
        with suppress(StrandlineError):
            log.put_note(outcome.dataflow, _AWAITED, {"id": _id(outcome.newest), **awaited.as_json()})


def last_awaited(log: WatermarkLog, dataflow: str) -> AwaitedTransactions | None:
    """Return the transactions that rows of the last run wait for.

    None if there is no note, or the state has changed since.

    Raises:
        ProviderError: if the store cannot be read.
    """
    note = log.note(dataflow, _AWAITED) or {}
    try:
        return AwaitedTransactions.of(note) if note["id"] == _id(log.newest(dataflow)) else None
    except (KeyError, TypeError, ValueError, CorruptWatermark):
        return None


def _id(entry: Entry | None) -> str:
    return entry.id if entry else ""
