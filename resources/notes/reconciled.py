"""A note beside the log of the last comparison of source and table. No decision depends on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from partitions.reconcile.result import Level, Reconciliation
from partitions.sentinels import Watermark, deserialise, serialise
from resources.notes.last_run import find_decision_since
from resources.watermarks.entry import utc_now
from resources.watermarks.log import WatermarkLog

_RECONCILED = "reconciled"


@dataclass(frozen=True)
class Verified:
    """The last comparison of all rows up to a watermark.

    Attributes:
        time: when it ended, ISO in UTC.
        up_to: the watermark, as sentinel JSON text.
        level: what was compared: ``counts``, ``keys`` or ``rows``.
        state_number: number of the entry.
        missing: rows that the table lacked.
        extra: rows that the source lacked.
        different: rows that differed.
    """

    time: str
    up_to: str
    level: Level
    state_number: int
    missing: int
    extra: int
    different: int

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Verified:
        """Return the comparison that a JSON form or a note describes.

        Raises:
            KeyError: it lacks a field.
        """
        values = {field.name: document[field.name] for field in fields(cls)}
        up_to = values["up_to"]
        return cls(**{**values, "up_to": up_to if isinstance(up_to, str) else json.dumps(up_to)})

    @property
    def is_equal(self) -> bool:
        """Whether no row differed."""
        return not (self.missing or self.extra or self.different)

    @property
    def watermark(self) -> Watermark:
        """The watermark up to which rows were compared."""
        return deserialise(self.up_to)

    def as_json(self) -> dict[str, Any]:
        """Return the public JSON form (docs/reference/cli.md, list)."""
        return {**asdict(self), "up_to": json.loads(self.up_to), "equal": self.is_equal}


def note_reconciled(log: WatermarkLog, result: Reconciliation) -> None:
    """Note a comparison of all rows; one of a range says nothing about the others.

    Raises:
        ProviderError: the store cannot be written.
    """
    if not result.is_whole:
        return
    totals = result.totals
    verified = Verified(
        utc_now(),
        serialise(result.watermark),
        result.level,
        result.position.state_number,
        totals.missing,
        totals.extra,
        totals.different,
    )
    log.put_note(result.dataflow, _RECONCILED, asdict(verified))


def last_reconciled(log: WatermarkLog, dataflow: str) -> Verified | None:
    """Return the last comparison; None without one, or if a decision has changed the state since.

    Raises:
        ProviderError: the store cannot be read.
    """
    note: Mapping[str, Any] = log.note(dataflow, _RECONCILED) or {}
    try:
        verified = Verified.of(note)
    except (KeyError, TypeError):
        return None
    return None if find_decision_since(log, dataflow, verified.time) else verified
