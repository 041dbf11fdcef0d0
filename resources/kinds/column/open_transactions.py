"""Wait for transactions of a database that may still write below the highest values that a look has seen (docs/reference/columns.md)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from partitions.column.definition import TRANSACTIONS, ColumnWatermark
from partitions.column.plan import upper_bound
from partitions.column.source import SourceObservation
from partitions.column.state import ColumnState, ReadBound
from partitions.column.writers import (
    AwaitedTransactions,
    TransactionsUnknown,
    WritingTransactions,
    bound_by_oldest,
    bound_by_open_transactions,
    has_waiting_times,
)
from partitions.dataflow import Dataflow
from partitions.errors import PlanError
from partitions.unit_values import TIMES
from resources.sources.source import ReadsAbove, TellsWriters

_PATIENCE, _PAUSE = 2.0, 0.05
"""Seconds that a plan waits for the transactions that were open when it looked, and between two looks: most take milliseconds."""

_ANNOUNCED = 0.1
"""Seconds after which a transaction is among those that a database tells: its time is taken a moment before."""


@dataclass(frozen=True)
class OpenTransactions:
    """Those of one source.

    Attributes:
        dataflow: what the user declared.
        above: its source, as rows above a watermark are read from it.
        awaited: looks up what the last run has left to open transactions.
    """

    dataflow: Dataflow
    above: ReadsAbove
    awaited: Callable[[], AwaitedTransactions | None]

    @property
    def _definition(self) -> ColumnWatermark:
        return self.dataflow.column

    def settled(
        self, seen: SourceObservation, state: ColumnState
    ) -> tuple[SourceObservation, AwaitedTransactions | None]:
        """Return the look, with each column bounded by what no open transaction can still write, and what the next run may read once some have ended.

        Transactions are looked up after the highest values: whoever has taken a lower number since has a lock. A short wait lets most end.

        Raises:
            PlanError: the source does not tell its transactions, and the definition wants it.
        """
        definition = self._definition
        if not definition.waits_for_transactions or not isinstance(self.above, TellsWriters):
            return seen, None
        if not self._new_bounds(seen, state) and definition.settle is None:
            return seen, None
        if any(seen.kinds.get(name) in TIMES and _is_fresh(seen, name) for name in definition.columns):
            time.sleep(_ANNOUNCED)
        first = self.above.writers(definition.columns)
        if isinstance(first, TransactionsUnknown):
            return self._untold(seen, first), None
        seen = bound_by_oldest(seen, first)
        waits = {name: first.oldest_words for name in definition.columns if has_waiting_times(seen, name)}
        seen = replace(seen, waits=waits)
        limits = self._new_bounds(seen, state)
        later, deadline = first, time.monotonic() + _PATIENCE
        while any(later.still_open(first, seen.kinds.get(name)) for name in limits):
            if time.monotonic() > deadline:
                break
            time.sleep(_PAUSE)
            again = self.above.writers(definition.columns)
            later = again if isinstance(again, WritingTransactions) else later
        return bound_by_open_transactions(seen, limits, state, (first, later), self.awaited())

    def _new_bounds(self, seen: SourceObservation, state: ColumnState) -> Mapping[str, ReadBound]:
        """How far each column would be read that may have new values."""
        limits = {name: upper_bound(self._definition, name, seen) for name in self._definition.columns}
        return {
            name: limit
            for name, limit in limits.items()
            if limit is not None
            and not ((stored := state.bounds.get(name)) is not None and stored.covers(limit))
        }

    def _untold(self, seen: SourceObservation, untold: TransactionsUnknown) -> SourceObservation:
        """The look, with a warning that rows may come late; none of a database that never tells."""
        remedy = "let rows settle by time (`settle: PT5M`), or look back (`backward: {by: 1000}` of numbers, `{hours: 1}` of times) with merge_keys"
        why = f"{self.dataflow.source.label} does not tell its open transactions: {untold.why}"
        if self._definition.settle == TRANSACTIONS:
            raise PlanError(
                f"dataflow {self.dataflow.name}: watermark.settle: expected a source that tells its open transactions, found that {why}. Instead {remedy}"
            )
        if untold.always:
            return seen
        warning = f"rows that are committed late may be missed: {why}. {remedy[0].upper()}{remedy[1:]}"
        return replace(seen, warnings=(*seen.warnings, warning))


def _is_fresh(seen: SourceObservation, column: str) -> bool:
    """Whether the highest time is so young that a transaction may have begun before it and not be announced yet; unknown ones may be."""
    highest = seen.maxima.get(column)
    if column in seen.maxima and not isinstance(highest, datetime):
        return False
    if not isinstance(highest, datetime) or highest.tzinfo is None:
        return True
    return seen.now - highest < timedelta(seconds=1)
