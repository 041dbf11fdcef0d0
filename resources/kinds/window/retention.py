"""Refuse windows that lie below the retention (docs/how-to/deleting-and-keeping.md, Keep 90 days)."""

from __future__ import annotations

from datetime import datetime

from partitions.dataflow import Dataflow
from partitions.instants import as_datetime
from partitions.retention import refuse_below_retention
from resources.kinds.window.columns import WINDOW_START


def refuse_expired_windows(dataflow: Dataflow, end: int, now: datetime) -> None:
    """Raise ConfigurationError if all windows up to an end lie below the retention.

    Args:
        dataflow: the definition.
        end: the exclusive end, epoch milliseconds.
        now: the clock, aware.
    """
    retention = dataflow.target.retention
    for column in (getattr(dataflow.source, "window_column", None), WINDOW_START):
        refuse_below_retention(dataflow.name, retention, column, as_datetime(end, dataflow.window.zone), now)
