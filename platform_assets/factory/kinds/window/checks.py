"""The check that the ledger of windows has no gap."""

from __future__ import annotations

from dagster import AssetCheckResult, AssetChecksDefinition, AssetCheckSeverity, asset_check

from partitions.dataflow import Dataflow
from platform_assets.factory.dagster_names import table_key
from platform_assets.factory.kinds.window.pictures import ledger_metadata
from resources.kinds.window.unit_ledger import unit_ledger
from resources.loop.loop import clock
from resources.platform.platform import Platform

LEDGER = "ledger"


def ledger_check(dataflow: Dataflow, platform: Platform) -> AssetChecksDefinition:
    """Return the check that every window that is over is loaded for every unit; it lists the gaps."""

    @asset_check(
        asset=table_key(dataflow),
        name=LEDGER,
        description="Every window that is over is loaded, for every unit, and no window was loaded by two grids.",
    )
    def complete() -> AssetCheckResult:
        ledger = unit_ledger(platform, dataflow, clock())
        return AssetCheckResult(
            passed=not ledger.missing, severity=AssetCheckSeverity.WARN, metadata=ledger_metadata(ledger)
        )

    return complete
