"""How far a retention has taken rows out of a table: deleted them, or held them back.

Each entry carries it on, so that a retention that was lengthened or removed is not forgotten. See
docs/how-to/chains.md, Limits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from typing import Any

from partitions.instants import milliseconds
from partitions.sentinels import deserialise
from resources.watermarks.entry import Entry


@dataclass(frozen=True)
class Expiry:
    """The rows that a retention has taken out.

    Attributes:
        number: number of the newest entry under which it took rows out.
        id: that entry's id.
        before: by the retention's column, the instant in UTC before which rows went, epoch milliseconds.
        earlier: what went under earlier entries beyond these instants, newest first: a retention that was
            lengthened since. Windows that were loaded again after such an entry have their rows.
    """

    number: int
    id: str
    before: dict[str, int] = field(default_factory=dict)
    earlier: tuple[Expiry, ...] = ()

    @classmethod
    def of(cls, entry: Entry | None) -> Expiry | None:
        """Return what an entry carries; None if no retention took rows out, or nothing tells."""
        return None if entry is None or entry.expiry is None else cls.from_text(entry.expiry)

    @classmethod
    def from_text(cls, text: str) -> Expiry:
        """Parse what an entry carries."""
        stored = json.loads(text)
        earlier = tuple(cls(**step) for step in stored.pop("earlier", ()))
        return cls(**stored, earlier=earlier)

    def to_text(self) -> str:
        """Return it as an entry carries it."""
        steps = [_stored(step) for step in self.earlier]
        return json.dumps(_stored(self) | ({"earlier": steps} if steps else {}))

    @property
    def steps(self) -> tuple[Expiry, ...]:
        """The expiry without earlier ones, and these, newest first."""
        return replace(self, earlier=()), *self.earlier


def carry_expiry(before: Entry | None, number: int, entry_id: str, column: str, bound: object) -> str:
    """Return what an entry carries under which rows below a bound went.

    Args:
        before: the entry before it.
        number: its number.
        entry_id: its id.
        column: the retention's column.
        bound: the first instant whose rows stay; a date or a time without a zone is in UTC.
    """
    return _carried(Expiry.of(before), number, entry_id, {column: _milliseconds(bound)})


def carry_exported(entry: Entry, exported: Expiry | None) -> str | None:
    """Return what an entry carries that takes the state of an export: what had gone by then, too.

    The export's numbers mean nothing in another log, so the rows count as taken out under this entry.
    """
    if exported is None:
        return entry.expiry
    bounds: dict[str, int] = {}
    for column, bound in (bound for step in exported.steps for bound in step.before.items()):
        bounds[column] = max(bound, bounds.get(column, bound))
    return _carried(Expiry.of(entry), entry.number, entry.id, bounds)


def _carried(carried: Expiry | None, number: int, entry_id: str, before: dict[str, int]) -> str:
    beyond = (_beyond(step, before) for step in (carried.steps if carried else ()))
    return Expiry(number, entry_id, before, tuple(step for step in beyond if step.before)).to_text()


def _beyond(step: Expiry, limits: Mapping[str, int]) -> Expiry:
    """Return an expiry without the instants up to the limits of their columns."""
    before = {name: bound for name, bound in step.before.items() if bound > limits.get(name, bound - 1)}
    return replace(step, before=before)


def _stored(step: Expiry) -> dict[str, Any]:
    return {"number": step.number, "id": step.id, "before": step.before}


def carry_expired(before: Entry | None, number: int, entry_id: str, upper: str) -> str:
    """Return what the entry of an expiry carries; ``upper`` is its bound by its column, sentinel JSON."""
    ((column, bound),) = deserialise(upper).items()
    return carry_expiry(before, number, entry_id, column, bound)


def find_expiry(entry: Entry | None, history: Iterable[Entry]) -> Expiry | None:
    """Return how far a retention has taken rows out of a table; None if none did.

    Args:
        entry: the newest entry.
        history: the entries, newest first: entries of older versions carry nothing, and only name the rows
            that they have deleted.
    """
    carried = Expiry.of(entry)
    if carried is not None or entry is None or not entry.expired:
        return carried
    expired = next((older for older in history if older.why == "expire" and older.upper is not None), None)
    if expired is None or expired.upper is None:
        return None
    return Expiry.from_text(carry_expired(None, expired.number, expired.id, expired.upper))


def _milliseconds(bound: Any) -> int:
    at = bound if isinstance(bound, datetime) else datetime.combine(_date(bound), time.min)
    return milliseconds(at if at.tzinfo else at.replace(tzinfo=UTC))


def _date(bound: Any) -> date:
    if not isinstance(bound, date):
        raise TypeError(f"expected a date or a time, found {bound!r}")
    return bound
