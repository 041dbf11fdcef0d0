"""The ledger of windows: the loaded and missing windows of each unit."""

from __future__ import annotations

from datetime import datetime

from partitions.dataflow import Dataflow
from partitions.window.ledger import Ledger, ledger
from partitions.window.state import WindowState
from resources.kinds.window.opening import units_of, windows_of
from resources.platform.opener import Opener


def unit_ledger(opener: Opener, dataflow: Dataflow, now: datetime) -> Ledger:
    """Return the loaded and missing windows of each unit of a window watermark. Starts no Spark.

    Raises:
        ConfigurationError: the dataflow has another kind of watermark.
        NeedsDecision: as a run would.
    """
    entry = opener.checked_entry(dataflow)
    state = WindowState.of(entry.state() if entry else None)
    return ledger(
        windows_of(opener, dataflow), state, units_of(opener, dataflow), now, dataflow=dataflow.name
    )
