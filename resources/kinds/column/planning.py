"""Planning of rows above columns: the bounds up to which a run reads (docs/reference/columns.md)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, ClassVar

from typing_extensions import override

from partitions.column.slices import ColumnSlice
from partitions.column.state import ColumnState
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.instants import milliseconds
from partitions.plan import Plan
from partitions.request import DUE, Forced, LateOnly, Repair, Replay, Request
from partitions.sentinels import Watermark, deserialise
from resources.kinds.column.look import ColumnLook
from resources.kinds.contract.planning import Planning
from resources.watermarks.entry import Entry


@dataclass(frozen=True)
class ColumnPlanning(Planning[ColumnSlice]):
    """Plans of rows above the values that were read.

    Attributes:
        dataflow: the definition.
        look: the look at its source.
    """

    replans_after_load: ClassVar[bool] = False
    """A run reads up to bounds that are fixed once; what comes later is the next run's."""
    pacing: ClassVar[timedelta] = timedelta(0)

    dataflow: Dataflow
    look: ColumnLook

    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[ColumnSlice]:
        """Look at the source, fix the bounds, and cut slices.

        Raises:
            ConfigurationError: the request is not for due work.
            PlanError: a column cannot have a watermark, or has NULLs that are forbidden.
            NeedsDecision: code ``source_replaced`` or ``source_behind``: the source was set back.
            Conflict: the state has changed since a repair looked at it.
            SourceError: the source refuses, or does not answer.
        """
        number, look = entry.number if entry else 0, self.look
        if isinstance(request, LateOnly):
            return Plan(self.dataflow.name, "column", number, now, "a column watermark has no late rows")
        if isinstance(request, Forced):
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: a forced run needs windows, and a column watermark has "
                "none. To read rows again, use `strandline replay`"
            )
        if isinstance(request, Repair):
            return look.in_one_look(lambda once: once.plan_repair(entry, now, request))
        if isinstance(request, Replay):
            return look.in_one_look(lambda once: once.plan_replay(entry, now, request))
        return look.in_one_look(lambda once: once.plan_due(entry, now))

    def covers(self, state: str, other: str) -> bool:
        """Return whether no column's value falls from ``other`` to ``state``."""
        return ColumnState.of(deserialise(state)).covers(ColumnState.of(deserialise(other)))

    @override
    def modified(self, slice_: ColumnSlice, before: Watermark, now: datetime) -> int | None:
        """Return the upper bound of columns with times; None for what is read again.

        Rows that are read again say nothing about how far the source is loaded.
        """
        if not slice_.saves:
            return None
        times = [_milliseconds(range_.upper, self.dataflow) for range_ in slice_.ranges]
        return max((time for time in times if time is not None), default=None)


def _milliseconds(value: Any, dataflow: Dataflow) -> int | None:
    if isinstance(value, datetime):
        return milliseconds(value if value.tzinfo else value.replace(tzinfo=dataflow.zone))
    if isinstance(value, date):
        return milliseconds(datetime(value.year, value.month, value.day, tzinfo=dataflow.zone))
    return None
