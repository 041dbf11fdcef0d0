"""Waiting for open transactions that may still write below the highest values.

See docs/reference/columns.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from partitions.column.definition import TRANSACTIONS, ColumnWatermark
from partitions.column.open_transactions import (
    AwaitedTransactions,
    TransactionsUnknown,
    WritingTransactions,
    bound_by_oldest,
    bound_by_open_transactions,
    has_waiting_times,
)
from partitions.column.plan import upper_bound
from partitions.column.source import SourceObservation
from partitions.column.state import ColumnState, ReadBound
from partitions.dataflow import Dataflow
from partitions.errors import PlanError
from partitions.unit_values import TIMES
from resources.sources.source import ReadsAbove, TellsWriters

_PATIENCE, _PAUSE = 2.0, 0.05
"""Seconds that a plan waits for the transactions that were open when it looked, and between two looks: most take milliseconds."""

_ANNOUNCED = 0.1
"""The seconds until a database reports a new transaction, which has taken its time a moment before."""


@dataclass(frozen=True)
class OpenTransactions:
    """The open transactions of one source.

    Attributes:
        dataflow: the definition.
        above: the source, as a reader of rows above a watermark.
        awaited: returns the values that the last run left to open transactions.
    """

    dataflow: Dataflow
    above: ReadsAbove
    awaited: Callable[[], AwaitedTransactions | None]

    @property
    def _definition(self) -> ColumnWatermark:
        return self.dataflow.column

    def settle(
        self, observed: SourceObservation, state: ColumnState
    ) -> tuple[SourceObservation, AwaitedTransactions | None]:
        """Bound each column below what open transactions can still write; return what the next run may read.

        The second value says what the next run may read once some of them have ended. Transactions are
        looked up after the highest values: one that took a lower number since then holds a lock. A short
        wait lets most of them end.

        Raises:
            PlanError: the source does not report its transactions, and the definition requires it.
        """
        definition = self._definition
        if not definition.waits_for_transactions or not isinstance(self.above, TellsWriters):
            return observed, None
        if not self._new_bounds(observed, state) and definition.settle is None:
            return observed, None
        if any(
            observed.kinds.get(name) in TIMES and _is_fresh(observed, name) for name in definition.columns
        ):
            time.sleep(_ANNOUNCED)
        first = self.above.writers(definition.columns)
        if isinstance(first, TransactionsUnknown):
            return self._warn_of_unknown(observed, first), None
        observed = bound_by_oldest(observed, first)
        waits = {name: first.oldest_words for name in definition.columns if has_waiting_times(observed, name)}
        observed = replace(observed, waits=waits)
        limits = self._new_bounds(observed, state)
        later, deadline = first, time.monotonic() + _PATIENCE
        while any(later.still_open(first, observed.kinds.get(name)) for name in limits):
            if time.monotonic() > deadline:
                break
            time.sleep(_PAUSE)
            again = self.above.writers(definition.columns)
            later = again if isinstance(again, WritingTransactions) else later
        return bound_by_open_transactions(observed, limits, state, (first, later), self.awaited())

    def _new_bounds(self, observed: SourceObservation, state: ColumnState) -> Mapping[str, ReadBound]:
        """Return the bounds of the columns that may have new values."""
        limits = {name: upper_bound(self._definition, name, observed) for name in self._definition.columns}
        return {
            name: limit
            for name, limit in limits.items()
            if limit is not None
            and not ((stored := state.bounds.get(name)) is not None and stored.covers(limit))
        }

    def _warn_of_unknown(self, observed: SourceObservation, untold: TransactionsUnknown) -> SourceObservation:
        """Warn that rows may come late; not for a database that never reports transactions."""
        remedy = (
            "let rows settle by time (`settle: PT5M`), or set a look-back with merge_keys (`backward: {by: "
            "1000}` for numbers, `{hours: 1}` for times)"
        )
        why = f"{self.dataflow.source.label} does not report its open transactions: {untold.why}"
        if self._definition.settle == TRANSACTIONS:
            raise PlanError(
                f"dataflow {self.dataflow.name}: watermark.settle: expected a source that reports its "
                f"open transactions, but {why}. Instead, {remedy}"
            )
        if untold.always:
            return observed
        warning = f"runs may miss rows that are committed late: {why}. {remedy[0].upper()}{remedy[1:]}"
        return replace(observed, warnings=(*observed.warnings, warning))


def _is_fresh(observed: SourceObservation, column: str) -> bool:
    """Return whether the highest time is so recent that an earlier transaction may not be visible yet.

    An unknown time counts as recent.
    """
    highest = observed.maxima.get(column)
    if column in observed.maxima and not isinstance(highest, datetime):
        return False
    if not isinstance(highest, datetime) or highest.tzinfo is None:
        return True
    return observed.now - highest < timedelta(seconds=1)
