"""Notes beside the log of comparisons of source and table. No decision depends on them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any

from partitions.column.state import ColumnState, ReadBound
from partitions.reconcile.result import Level, Reconciliation
from partitions.sentinels import Watermark, deserialise, serialise
from resources.notes.last_run import find_decision_since
from resources.watermarks.entry import utc_now
from resources.watermarks.log import WatermarkLog

_RECONCILED, _COMPARED = "reconciled", "compared"

MAX_COMPARED = 50
"""Most comparisons that the note of all of them keeps."""


@dataclass(frozen=True)
class Verified:
    """A comparison of rows up to a watermark, or of a range.

    Attributes:
        time: when it ended, ISO in UTC.
        up_to: the watermark, or the end of the range, as sentinel JSON text.
        level: what was compared: ``counts``, ``keys``, ``rows`` or ``files``.
        state_number: number of the entry.
        missing: rows that the table lacked.
        extra: rows that the source lacked.
        different: rows that differed.
        repaired: number of the entry that has repaired them; None: none has.
        lower: start of the range, inclusive, as sentinel JSON text; None: all rows up to the watermark.
    """

    time: str
    up_to: str
    level: Level
    state_number: int
    missing: int
    extra: int
    different: int
    repaired: int | None = None
    lower: str | None = None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Verified:
        """Return the comparison that a JSON form or a note describes.

        Raises:
            KeyError: it lacks a field.
        """
        values = {
            field.name: document[field.name]
            for field in fields(cls)
            if field.name in document or field.default is MISSING
        }
        texts = {
            name: text if text is None or isinstance(text, str) else json.dumps(text)
            for name, text in values.items()
            if name in ("up_to", "lower")
        }
        return cls(**{**values, **texts})

    @property
    def is_equal(self) -> bool:
        """Whether no row differed."""
        return not (self.missing or self.extra or self.different)

    @property
    def is_settled(self) -> bool:
        """Whether no row differed, or what differed was repaired."""
        return self.is_equal or self.repaired is not None

    @property
    def watermark(self) -> Watermark:
        """The watermark up to which rows were compared, or the end of the range."""
        return deserialise(self.up_to)

    def as_json(self) -> dict[str, Any]:
        """Return the public JSON form (docs/reference/cli.md, list)."""
        texts = {"up_to": json.loads(self.up_to), "lower": self.lower and json.loads(self.lower)}
        return {**asdict(self), **texts, "equal": self.is_equal}


def note_reconciled(log: WatermarkLog, result: Reconciliation) -> None:
    """Note a comparison; one of a range says nothing about the other rows.

    Raises:
        ProviderError: the store cannot be written.
    """
    verified = _verified(result)
    if result.is_whole:
        log.put_note(result.dataflow, _RECONCILED, asdict(verified))
    others = [
        past
        for past in compared(log, result.dataflow)
        if past.lower != verified.lower or (not result.is_whole and past.up_to != verified.up_to)
    ]
    _put_compared(log, result.dataflow, [verified, *others])


def note_repaired(log: WatermarkLog, dataflow: str, number: int) -> None:
    """Note that an entry has repaired all that the newest comparison had found.

    Raises:
        ProviderError: the store cannot be read or written.
    """
    past = compared(log, dataflow)
    if not past or past[0].is_equal:
        return
    repaired = replace(past[0], repaired=number)
    _put_compared(log, dataflow, [repaired, *past[1:]])
    whole = last_reconciled(log, dataflow)
    if whole is not None and whole.time == repaired.time:
        log.put_note(dataflow, _RECONCILED, asdict(repaired))


def last_reconciled(log: WatermarkLog, dataflow: str) -> Verified | None:
    """Return the last comparison of all rows; None without one, or if a decision came since.

    Raises:
        ProviderError: the store cannot be read.
    """
    verified = _read(log.note(dataflow, _RECONCILED) or {})
    return None if verified is None or find_decision_since(log, dataflow, verified.time) else verified


def compared(log: WatermarkLog, dataflow: str) -> Sequence[Verified]:
    """Return the comparisons since the last decision, newest first; of the same range only the last.

    Raises:
        ProviderError: the store cannot be read.
    """
    stored = (log.note(dataflow, _COMPARED) or {}).get("comparisons")
    documents = stored if isinstance(stored, list) else []
    past = [verified for document in documents if (verified := _read(document)) is not None]
    if past and find_decision_since(log, dataflow, past[-1].time):
        past = [verified for verified in past if not find_decision_since(log, dataflow, verified.time)]
    return past


def _verified(result: Reconciliation) -> Verified:
    totals, lower, up_to = result.totals, None, result.watermark
    bounded = [range_.range for range_ in result.ranges if not range_.range.holds_nulls]
    if not result.is_whole and bounded:
        first, last = bounded[0], bounded[-1]
        lower = serialise({} if first.lower is None else {first.column: first.lower})
        up_to = {}
        if last.upper is not None:
            bound = ReadBound(last.upper, inclusive=last.upper_inclusive)
            up_to = ColumnState({last.column: bound}).watermark()
    return Verified(
        utc_now(),
        serialise(up_to),
        result.level,
        result.position.state_number,
        totals.missing,
        totals.extra,
        totals.different,
        lower=lower,
    )


def _put_compared(log: WatermarkLog, dataflow: str, verified: Sequence[Verified]) -> None:
    documents = [asdict(comparison) for comparison in verified[:MAX_COMPARED]]
    log.put_note(dataflow, _COMPARED, {"comparisons": documents})


def _read(document: Any) -> Verified | None:
    """Return the comparison of a note; None if it does not read."""
    try:
        return Verified.of(document)
    except (KeyError, TypeError):
        return None
