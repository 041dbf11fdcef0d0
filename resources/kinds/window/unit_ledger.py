"""The ledger of windows: the loaded and missing windows of each unit."""

from __future__ import annotations

from datetime import datetime

from partitions.dataflow import Dataflow
from partitions.window.ledger import Ledger
from partitions.window.state import WindowState
from resources.kinds.window.awaited import ledger_of
from resources.platform.opener import Opener


def unit_ledger(opener: Opener, dataflow: Dataflow, now: datetime) -> Ledger:
    """Return the loaded and missing windows of each unit of a window watermark. Starts no Spark.

    Raises:
        ConfigurationError: the dataflow has another kind of watermark.
        NeedsDecision: as a run would.
    """
    entry = opener.checked_entry(dataflow)
    state = WindowState.of(entry.state() if entry else None)
    return ledger_of(opener, dataflow, state, now)
