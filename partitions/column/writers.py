"""Transactions that are open at a source: up to where none of them can still write (docs/reference/columns.md, Rows that are committed late; ADR 0035)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Self

from partitions.column.source import Observed
from partitions.column.state import ColumnState, Mark
from partitions.sentinels import deserialise, serialise
from partitions.spelling import first_few
from partitions.unit_values import TIMES, Kind
from partitions.watermark import compare_values

_SHOWN = 3
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True)
class Transaction:
    """An open transaction of a database.

    Attributes:
        id: of its session; no other transaction gets it while the server runs.
        number: of one that has written; it keeps it when it is prepared. None: it has none yet.
        prepared: whether it has ended its session's part, and waits for COMMIT PREPARED.
        words: who it is, for people.
    """

    id: str
    number: str | None = None
    prepared: bool = False
    words: str = ""


@dataclass(frozen=True)
class Writers:
    """The open transactions of a database that may write rows of a source, of one moment.

    Attributes:
        server: when the server was started: ids begin anew with it.
        writing: those that hold a lock for writing on a table of the source, or on a sequence of its column.
        hidden: all others whose beginning this user may not see.
        oldest: when the oldest of all others began, aware; None: there is none.
        oldest_words: who that is, for people.
    """

    server: str
    writing: tuple[Transaction, ...] = ()
    hidden: tuple[Transaction, ...] = ()
    oldest: datetime | None = None
    oldest_words: str = ""

    def blocking(self, kind: Kind | None) -> tuple[Transaction, ...]:
        """Return those that may still commit values which their own beginning does not bound.

        An open transaction takes numbers above those that were given out before it wrote, and times above its beginning.
        """
        if kind not in TIMES:
            return self.writing
        return (*(each for each in self.writing if each.prepared), *self.hidden)

    def still_open(self, earlier: Writers, kind: Kind | None) -> tuple[Transaction, ...]:
        """Return those that blocked at an earlier look and have not ended by this one; in doubt a transaction is open."""
        now = (*self.writing, *self.hidden)
        ids = {each.id for each in now} if self.server == earlier.server else set()
        numbers = {each.number for each in now if each.number is not None}
        known = {each.number for each in earlier.writing if each.prepared}
        # One that had no number then may have got one, and been prepared since.
        may_be_any = any(each.prepared and each.number not in known for each in self.writing)
        return tuple(
            each
            for each in earlier.blocking(kind)
            if each.id in ids or (may_be_any if each.number is None else each.number in numbers)
        )


@dataclass(frozen=True)
class Untold:
    """Why a source does not tell its open transactions.

    Attributes:
        why: in words.
        always: whether no source of its kind does; else a user would expect it to.
    """

    why: str
    always: bool = False


@dataclass(frozen=True)
class Awaited:
    """How far a source may be read once some transactions have ended: what a run leaves to the next.

    Attributes:
        state: the highest values that were there.
        writers: that were open then.
    """

    state: ColumnState
    writers: Writers

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "state": serialise(self.state.watermark()),
            "server": self.writers.server,
            "writing": [_as_list(each) for each in self.writers.writing],
            "hidden": [_as_list(each) for each in self.writers.hidden],
        }

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Read it back.

        Raises:
            KeyError, TypeError, ValueError, CorruptWatermark: it is something else.
        """
        writing, hidden = (
            tuple(Transaction(*each) for each in given[name]) for name in ("writing", "hidden")
        )
        return cls(ColumnState.of(deserialise(given["state"])), Writers(given["server"], writing, hidden))


def _as_list(transaction: Transaction) -> list[Any]:
    return [transaction.id, transaction.number, transaction.prepared, transaction.words]


def before_oldest(seen: Observed, writers: Writers) -> Observed:
    """Return the look with times bounded by the beginning of the oldest open transaction: what it writes is not older."""
    if writers.oldest is None or writers.oldest > seen.now:
        return seen
    return replace(seen, settled=writers.oldest - _INSTANT)


def up_to_settled(
    seen: Observed,
    bounds: Mapping[str, Mark],
    state: ColumnState,
    looks: tuple[Writers, Writers],
    earlier: Awaited | None,
) -> tuple[Observed, Awaited | None]:
    """Return the look with each column bounded by what no open transaction can still write, and what the next run may read up to.

    A bound holds if all transactions that blocked it have ended. If some have not, the values of an earlier run's look hold once those of
    that look have ended; else the stored value does, and nothing above it is read.

    Args:
        seen: the look.
        bounds: how far each column with new values would be read.
        state: what is read so far.
        looks: the open transactions right after the look, and some time later.
        earlier: what an earlier run has left.
    """
    first, later = looks
    maxima, waits, blocked = dict(seen.maxima), dict(seen.waits), dict[str, Mark]()
    for column, bound in bounds.items():
        kind = seen.kinds.get(column)
        still_open = later.still_open(first, kind)
        if not still_open:
            continue
        blocked[column] = bound
        stored = state.marks.get(column)
        held = _settled_before(earlier, later, column, kind)
        if held is None or (stored is not None and stored.covers(held)):
            held = stored
        elif held.covers(bound):
            held = bound
        maxima[column] = _inclusive(held)
        waits[column] = in_words(still_open)
    if not blocked:
        return seen, None
    waiting = earlier is not None and any(
        later.still_open(earlier.writers, seen.kinds.get(column)) for column in blocked
    )
    awaited = earlier if waiting else Awaited(ColumnState(blocked), first)
    return replace(seen, maxima=maxima, waits=waits), awaited


def _settled_before(earlier: Awaited | None, later: Writers, column: str, kind: Kind | None) -> Mark | None:
    """The value of an earlier look, if all that blocked it has ended."""
    if earlier is None or later.still_open(earlier.writers, kind):
        return None
    return earlier.state.marks.get(column)


def _inclusive(mark: Mark | None) -> Any:
    """The highest value that a mark covers; of a day that is not over the day before."""
    if mark is None or mark.inclusive or not isinstance(mark.value, date):
        return mark.value if mark is not None else None
    if isinstance(mark.value, datetime):
        return mark.value - _INSTANT
    return mark.value - timedelta(days=1)


def has_waiting_times(seen: Observed, column: str) -> bool:
    """Return whether the known highest value of a column is a time that the oldest open transaction bounds."""
    highest = seen.maxima.get(column)
    if seen.settled is None or not isinstance(highest, datetime) or highest.tzinfo is None:
        return False
    return compare_values(highest, seen.settled) > 0


def in_words(transactions: Sequence[Transaction]) -> str:
    """Some transactions for people."""
    return first_few([transaction.words or transaction.id for transaction in transactions], _SHOWN)
