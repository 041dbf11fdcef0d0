"""Windows that wait for a column watermark: up to when the rows of its table are loaded.

See docs/how-to/chains.md, Wait for complete windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, time

from partitions.column.state import ColumnState
from partitions.dataflow import Dataflow
from partitions.errors import PlanError
from resources.kinds.state_of_entry import state_of
from resources.kinds.window.expired import find_expired
from resources.kinds.window.stream_completeness import Waits, describe_change, has_changed, holds_loaded
from resources.tables.contract.table import Table
from resources.watermarks.log import WatermarkLog


def find_column_bound(
    dataflow: Dataflow,
    makers: Sequence[Dataflow],
    log: WatermarkLog,
    table_of: Callable[[Dataflow], Table],
    now: datetime,
) -> Waits:
    """Return up to when the table of column watermarks is loaded: the lowest value, less its look-back.

    Args:
        dataflow: the dataflow whose windows wait.
        makers: the dataflows that load the table.
        log: the watermark log.
        table_of: opens the table that a dataflow loads.
        now: the clock, aware.
    """
    bounds = [_bound(dataflow, maker, log, table_of, now) for maker in makers]
    unknown = [bound for bound in bounds if bound.reached is None]
    lowest = min(unknown or bounds, key=lambda bound: bound.reached or now)
    expired = [bound.expired for bound in bounds if bound.expired is not None]
    return replace(lowest, expired=max(expired, key=lambda rows: rows.everything()[0][1], default=None))


def _bound(
    dataflow: Dataflow,
    maker: Dataflow,
    log: WatermarkLog,
    table_of: Callable[[Dataflow], Table],
    now: datetime,
) -> Waits:
    entry, (column,) = log.newest(maker.name), maker.column.columns
    if has_changed(maker, entry):
        return Waits(maker.name, None, problem=describe_change(maker))
    if entry is not None and not holds_loaded(table_of(maker), entry):
        return Waits(maker.name, None, lacks_rows=True)
    bound = state_of(ColumnState, maker, entry).bounds.get(column)
    if bound is None:
        return Waits(maker.name, None)
    back = maker.column.backward
    value = bound.value if back is None else back.lower_bound(bound.value, now.astimezone(maker.zone))
    if not isinstance(value, date):
        raise PlanError(
            f"dataflow {dataflow.name}: definition.range.to: expected upstream over a table whose watermark is a time, found {column} of"
            f" {maker.name}, which is {value!r}. Use to: -",
            code="no_time",
        )
    at = value if isinstance(value, datetime) else datetime.combine(value, time.min)
    expired = find_expired(log, maker, entry, now, frozenset({column.casefold()}), dataflow.zone)
    # Values without a zone belong to the windows as the reader cuts them, in its own zone.
    return Waits(maker.name, at if at.tzinfo else at.replace(tzinfo=dataflow.zone), expired=expired)
