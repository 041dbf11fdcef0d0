"""The check that the ledger of windows has no gap."""

from __future__ import annotations

from partitions.checks import LEDGER
from partitions.dataflow import Dataflow
from platform_assets.factory.check_results import CheckFinding, TableCheck
from platform_assets.factory.kinds.window.pictures import ledger_metadata
from resources.kinds.window.unit_ledger import unit_ledger
from resources.loop.loop import clock
from resources.platform.platform import Platform


def _check_ledger(dataflow: Dataflow, platform: Platform) -> CheckFinding:
    """Check that every window that is over is loaded for every unit; list the gaps."""
    ledger = unit_ledger(platform, dataflow, clock())
    return CheckFinding(
        LEDGER, passed=not (ledger.missing or ledger.outdated), metadata=ledger_metadata(ledger)
    )


LEDGER_CHECK = TableCheck(
    LEDGER,
    "Every window that is over is loaded, for every unit, and no window was loaded by two grids.",
    _check_ledger,
    with_runs=True,
)
