"""Bound a read by the open transactions of its source, which may still write below it.

See docs/reference/columns.md, Rows that are committed late; ADR 0035.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Self

from partitions.column.source import SourceObservation
from partitions.column.state import ColumnState, ReadBound
from partitions.sentinels import deserialise, serialise
from partitions.spelling import first_few
from partitions.unit_values import TIMES, ValueType
from partitions.watermark import compare_values

_SHOWN = 3
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True)
class OpenTransaction:
    """An open transaction of a database.

    Attributes:
        id: the identity of its session; no other transaction gets it while the server runs.
        number: its number once it has written, which it keeps when it is prepared; None if it has none
        yet.
        prepared: whether its session is done with it, and it waits for COMMIT PREPARED.
        words: the transaction's owner, in words.
    """

    id: str
    number: str | None = None
    prepared: bool = False
    words: str = ""


@dataclass(frozen=True)
class WritingTransactions:
    """The open transactions at one moment that may write rows of a source.

    Attributes:
        server: the server's start time; ids start again with it.
        writing: transactions with a write lock on a table of the source, or on a sequence of its column.
        hidden: other transactions whose start this user may not see.
        oldest: the start of the oldest other transaction, aware; None if there is none.
        oldest_words: the owner of the oldest one, for people.
    """

    server: str
    writing: tuple[OpenTransaction, ...] = ()
    hidden: tuple[OpenTransaction, ...] = ()
    oldest: datetime | None = None
    oldest_words: str = ""

    def blocking(self, value_type: ValueType | None) -> tuple[OpenTransaction, ...]:
        """Return the transactions that may still commit values below their own start.

        An open transaction takes numbers above those handed out before it wrote, and times above its
        start.
        """
        if value_type not in TIMES:
            return self.writing
        return (*(transaction for transaction in self.writing if transaction.prepared), *self.hidden)

    def still_open(
        self, earlier: WritingTransactions, value_type: ValueType | None
    ) -> tuple[OpenTransaction, ...]:
        """Return the transactions that blocked at an earlier moment and may still be open."""
        now = (*self.writing, *self.hidden)
        ids = {transaction.id for transaction in now} if self.server == earlier.server else set()
        numbers = {transaction.number for transaction in now if transaction.number is not None}
        known_numbers = {transaction.number for transaction in earlier.writing if transaction.prepared}
        # One that had no number then may have got one, and been prepared since.
        may_be_any = any(
            transaction.prepared and transaction.number not in known_numbers for transaction in self.writing
        )
        return tuple(
            transaction
            for transaction in earlier.blocking(value_type)
            if transaction.id in ids
            or (may_be_any if transaction.number is None else transaction.number in numbers)
        )


@dataclass(frozen=True)
class TransactionsUnknown:
    """The reason why a source does not show its open transactions.

    Attributes:
        why: the reason in words.
        always: whether no source of its kind shows them; if false, a user would expect it to.
    """

    why: str
    always: bool = False


@dataclass(frozen=True)
class AwaitedTransactions:
    """How far the next run may read once some transactions have ended.

    Attributes:
        state: the highest values at the time.
        writers: the open transactions at the time.
    """

    state: ColumnState
    writers: WritingTransactions

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "state": serialise(self.state.watermark()),
            "server": self.writers.server,
            "writing": [_as_list(transaction) for transaction in self.writers.writing],
            "hidden": [_as_list(transaction) for transaction in self.writers.hidden],
        }

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """Read it back from plain data.

        Raises:
            KeyError, TypeError, ValueError, CorruptWatermark: the data is something else.
        """
        writing, hidden = (
            tuple(OpenTransaction(*row) for row in stored[name]) for name in ("writing", "hidden")
        )
        return cls(
            ColumnState.of(deserialise(stored["state"])),
            WritingTransactions(stored["server"], writing, hidden),
        )


def _as_list(transaction: OpenTransaction) -> list[Any]:
    return [transaction.id, transaction.number, transaction.prepared, transaction.words]


def bound_by_oldest(observation: SourceObservation, writers: WritingTransactions) -> SourceObservation:
    """Return the observation with times bounded by the start of the oldest open transaction.

    That transaction writes nothing older.
    """
    if writers.oldest is None or writers.oldest > observation.now:
        return observation
    return replace(observation, settled=writers.oldest - _INSTANT)


def bound_by_open_transactions(
    observation: SourceObservation,
    bounds: Mapping[str, ReadBound],
    state: ColumnState,
    looks: tuple[WritingTransactions, WritingTransactions],
    earlier: AwaitedTransactions | None,
) -> tuple[SourceObservation, AwaitedTransactions | None]:
    """Return the observation with safe bounds, and what the next run may read up to.

    A bound is safe if all transactions that blocked it have ended. Otherwise the values of an earlier
    run's observation are safe once its own transactions have ended. Otherwise the stored value stays the
    bound, and nothing above it is read.

    Args:
        observation: the observation of the source.
        bounds: how far each column with new values would be read.
        state: the state before the run.
        looks: the open transactions directly after the observation, and some time later.
        earlier: the note of an earlier run.
    """
    first, later = looks
    maxima, waits, blocked = dict(observation.maxima), dict(observation.waits), dict[str, ReadBound]()
    for column, bound in bounds.items():
        value_type = observation.kinds.get(column)
        still_open = later.still_open(first, value_type)
        if not still_open:
            continue
        blocked[column] = bound
        stored = state.bounds.get(column)
        safe_bound = _settled_before(earlier, later, column, value_type)
        if safe_bound is None or (stored is not None and stored.covers(safe_bound)):
            safe_bound = stored
        elif safe_bound.covers(bound):
            safe_bound = bound
        maxima[column] = _inclusive(safe_bound)
        waits[column] = describe_transactions(still_open)
    if not blocked:
        return observation, None
    waiting = earlier is not None and any(
        later.still_open(earlier.writers, observation.kinds.get(column)) for column in blocked
    )
    awaited = earlier if waiting else AwaitedTransactions(ColumnState(blocked), first)
    return replace(observation, maxima=maxima, waits=waits), awaited


def _settled_before(
    earlier: AwaitedTransactions | None, later: WritingTransactions, column: str, value_type: ValueType | None
) -> ReadBound | None:
    """Return the value of an earlier observation, if all transactions that blocked it have ended."""
    if earlier is None or later.still_open(earlier.writers, value_type):
        return None
    return earlier.state.bounds.get(column)


def _inclusive(bound: ReadBound | None) -> Any:
    """Return the highest value that a bound covers; for an unfinished day, the day before."""
    if bound is None or bound.inclusive or not isinstance(bound.value, date):
        return bound.value if bound is not None else None
    if isinstance(bound.value, datetime):
        return bound.value - _INSTANT
    return bound.value - timedelta(days=1)


def has_waiting_times(observation: SourceObservation, column: str) -> bool:
    """Return whether a column's highest known time lies above the start of the oldest open transaction."""
    highest = observation.maxima.get(column)
    if observation.settled is None or not isinstance(highest, datetime) or highest.tzinfo is None:
        return False
    return compare_values(highest, observation.settled) > 0


def describe_transactions(transactions: Sequence[OpenTransaction]) -> str:
    """Return some transactions for people."""
    return first_few([transaction.words or transaction.id for transaction in transactions], _SHOWN)
